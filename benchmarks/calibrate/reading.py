"""Measures reading rows by position, and scanning."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hudi_index_parquet import Footer

from benchmarks.calibrate.sample import Sample
from benchmarks.calibrate.timing import Stopwatch, explained
from hudi_index_service.config import Settings
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.metadata.manifest import PARQUET_METADATA
from hudi_index_service.index.packed_file import read_member
from hudi_index_service.optimizer.cost.constants import TESTS_OF_TEXT
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.predicate import keep, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.base_file.file_scan import FileScan
from hudi_index_service.read.base_file.row_reader import RowReader
from hudi_index_service.read.statistics import SliceStatistics

_WHERES = {
    ("group",): "group <> 'none'",
    ("number",): "number > -1",
    ("text",): "text <> 'none'",
    ("key", "group", "number", "price", "text"): "number > -1",
}
"""Columns to read, with large and small pages → a predicate that is TRUE for all rows."""

_ROW_COUNTS = (1, 10, 100, 1_000, 5_000, 20_000, 50_000)
_MIB = 2**20
_PICKED = ("pages_ms", "page_ms", "picked_mib_ms", "value_ms")
_SCANNED = ("scan_ms", "scanned_mib_ms", "scanned_value_ms")
_TESTED = ("tested_mib_ms", "tested_value_ms")

Counted = Callable[[], SliceStatistics]


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads the sample with the code of queries, including the predicate, and counts the work."""

    sample: Sample
    settings: Settings
    footer: Footer
    predicate: Predicate

    def by_position(self, rows: np.ndarray, columns: pa.Schema) -> Counted:
        """A function that reads these rows."""
        base_file = self.sample.base_file
        reader = RowReader(self.sample.storage, base_file, self.footer, columns)

        def read() -> SliceStatistics:
            statistics = SliceStatistics(base_file.path, Access.INDEX)
            for each in reader.batches(rows):
                statistics.add_read(each.did)
                for batch in each.batches:
                    self._check(batch, statistics)
            return statistics

        return read

    def by_scan(self, base_file: BaseFile, columns: pa.Schema) -> Counted:
        """A function that reads all rows."""

        def read() -> SliceStatistics:
            statistics = SliceStatistics(base_file.path, Access.SCAN)
            scan = FileScan(self.sample.storage, base_file, columns, self.settings, statistics)
            for _, batch, _ in scan.candidates(None):
                self._check(batch, statistics)
            return statistics

        return read

    def by_test(self, base_file: BaseFile, columns: pa.Schema) -> Counted:
        """A function that counts the rows by tests of the values where they lie."""

        def count() -> SliceStatistics:
            statistics = SliceStatistics(base_file.path, Access.SCAN)
            scan = FileScan(
                self.sample.storage,
                base_file,
                columns,
                self.settings,
                statistics,
                output=[],
                numbered=False,
            )
            for _, batch, are_results in scan.candidates(self.predicate):
                assert are_results, "the row reader tests the whole predicate"
                statistics.rows_checked += batch.num_rows
            return statistics

        return count

    def _check(self, batch: pa.RecordBatch, statistics: SliceStatistics) -> None:
        statistics.rows_checked += batch.num_rows
        statistics.rows_returned += keep(self.predicate, batch).num_rows


def reading_costs(sample: Sample, settings: Settings, watch: Stopwatch) -> dict[str, float]:
    """Constant → value, for `pages_ms`, `page_ms`, `picked_mib_ms`, `value_ms`, `scan_ms`,
    `scanned_mib_ms`, `scanned_value_ms`, `tested_mib_ms` and `tested_value_ms`."""
    footer = Footer(read_member(sample.indexes["lucene"].packed, PARQUET_METADATA))
    picks: dict[str, Counted] = {}
    scans: dict[str, Counted] = {}
    tests: dict[str, Counted] = {}
    columns_of: dict[str, int] = {}
    tests_of: dict[str, int] = {}
    for names, where in _WHERES.items():
        predicate = parse_predicate(where, sample.schema, time_zone="UTC")
        reading = _Reading(sample, settings, footer, predicate)
        columns = pa.schema([sample.schema.field(name) for name in names])
        for rows in _row_sets(sample.rows):
            name = f"{names} {len(rows)} rows"
            picks[name], columns_of[name] = reading.by_position(rows, columns), len(columns)
        for base_file in (sample.small, sample.base_file):
            name = f"{names} {base_file.path}"
            scans[name], columns_of[name] = reading.by_scan(base_file, columns), len(columns)
            if len(columns) == 1:
                tests[f"{name} tested"] = reading.by_test(base_file, columns)
                columns_of[f"{name} tested"] = 1
                tests_of[f"{name} tested"] = TESTS_OF_TEXT if names == ("text",) else 1
    every_work = picks | scans | tests
    times = watch.least(every_work)
    statistics = {name: work() for name, work in every_work.items()}

    def values(name: str) -> int:
        return statistics[name].rows_checked * columns_of[name]

    pick_costs = explained(
        [
            (1.0, statistics[name].pages, statistics[name].bytes_read / _MIB, values(name))
            for name in picks
        ],
        [times[name] for name in picks],
    )
    scan_costs = explained(
        [(1.0, statistics[name].bytes_read / _MIB, values(name)) for name in scans],
        [times[name] for name in scans],
    )
    _, *test_costs = explained(
        [
            (1.0, statistics[name].bytes_read / _MIB, tests_of[name] * values(name))
            for name in tests
        ],
        [times[name] for name in tests],
    )
    names = (*_PICKED, *_SCANNED, *_TESTED)
    return dict(zip(names, (*pick_costs, *scan_costs, *test_costs), strict=True))


def _row_sets(total: int) -> list[np.ndarray]:
    """Sets of few to many rows, each spread over the whole file."""
    counts = [count for count in _ROW_COUNTS if count <= total // 4]
    return [np.linspace(0, total - 1, count).astype(np.int64) for count in counts]
