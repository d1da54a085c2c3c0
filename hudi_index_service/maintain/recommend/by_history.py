"""Advice from the history of a table's queries: columns on which queries scanned and selected few
rows, indexes that no query used, and writer settings. The evidence is numbers from the history, the
definitions, the entries, and the footers of base files."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from hudi_index_service.build.estimate import due_with, estimate
from hudi_index_service.build.executor import LocalExecutor
from hudi_index_service.build.sample import Sample
from hudi_index_service.columns import column_type, root_column
from hudi_index_service.config import Settings
from hudi_index_service.errors import ColumnNotIndexable, EntryInvalid, IndexDefinitionInvalid
from hudi_index_service.hudi.files.parquet_file import footers
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.build_records import BuildRecord
from hudi_index_service.index.metadata.definitions import IndexDefinition
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.index.metadata.requirements import names_by_use, requirements
from hudi_index_service.index.stored_column import refuse_special
from hudi_index_service.maintain.recommend.results import (
    Advice,
    BuildCost,
    IndexAdvice,
    UnusedAdvice,
)
from hudi_index_service.maintain.recommend.writer import measured_codecs, writer_settings
from hudi_index_service.optimizer.cost.constants import MIB, load_constants
from hudi_index_service.optimizer.cost.pages import PAGE_ROWS, pages_holding
from hudi_index_service.optimizer.decide import are_few
from hudi_index_service.optimizer.history.history import History
from hudi_index_service.optimizer.history.record import HistoryShape
from hudi_index_service.read.whole_snapshot import on_a_whole_snapshot

_USING = "lucene"  # the type of advised indexes
_LEAST_QUERIES = 2.5  # that scanned, weighted by age
_TIMES_CHEAPER = 1.25
_LEAST_SAVED_MS = 1.0
_LEAST_QUERIES_SINCE = 20  # a build; fewer without use are not significant


def advise(
    table: HudiTable,
    definitions: Sequence[IndexDefinition],
    records: Sequence[BuildRecord],
    history: History,
    settings: Settings,
) -> Advice:
    """The advice. Changes nothing.

    Args:
        definitions: The live definitions.
        records: The table's builds, newest first.

    Raises:
        TableFeatureUnsupported: the table cannot be read completely here.
        PermissionDenied, StorageFailed, NeedsSpark: a base file's footer cannot be read.
        SnapshotChanged: see `HudiTable.snapshot`; or Hudi cleaned base files meanwhile, twice.
    """
    return on_a_whole_snapshot(
        lambda: _Advisor(table, definitions, records, history, settings).advice()
    )


class _Advisor:
    def __init__(
        self,
        table: HudiTable,
        definitions: Sequence[IndexDefinition],
        records: Sequence[BuildRecord],
        history: History,
        settings: Settings,
    ) -> None:
        self._storage = table.storage
        self._definitions = definitions
        self._records = records
        self._history = history
        self._snapshot = table.snapshot()
        self._base_files = self._snapshot.base_files()
        self._shapes = history.shapes(self._storage.uri)
        self._footers = footers(self._storage, self._base_files)
        self._constants = load_constants(settings)
        self._sample = Sample(self._storage, self._base_files, settings.build)
        self._executor = LocalExecutor(settings.build.parallelism)

    def advice(self) -> Advice:
        return Advice(
            self._storage.uri,
            sum(each.queries for each in self._shapes),
            tuple(sorted(self._indexes(), key=lambda each: -each.saves_ms * each.queries)),
            tuple(self._unused()),
            writer_settings(
                self._shapes,
                self._footers,
                self._constants,
                lambda codecs: measured_codecs(self._storage, self._footers, codecs),
            ),
        )

    def _indexes(self) -> Iterator[IndexAdvice]:
        """The columns worth indexing, those of the same queries together."""
        shapes_by_columns: defaultdict[tuple[str, ...], list[HistoryShape]] = defaultdict(list)
        for shape in self._shapes:
            if shape.unindexed and shape.sums["scanned"]:
                shapes_by_columns[tuple(sorted(shape.unindexed))].append(shape)
        for columns, shapes in shapes_by_columns.items():
            specs = self._specs(columns)
            advice = None if specs is None else self._index(columns, specs, shapes)
            if advice is not None:
                yield advice

    def _specs(self, columns: Sequence[str]) -> list[ColumnSpec] | None:
        """What an index holds of the columns; None if it cannot hold all of them."""
        specs = []
        for name in columns:
            type = column_type(self._snapshot.schema, name)
            if type is None:
                return None
            try:
                refuse_special(name, self._snapshot.schema)
                specs.append(ColumnSpec(name, type, index_type(_USING).fields(name, type, {})))
            except (ColumnNotIndexable, IndexDefinitionInvalid):
                return None
        return specs

    def _index(
        self, columns: tuple[str, ...], specs: Sequence[ColumnSpec], shapes: Sequence[HistoryShape]
    ) -> IndexAdvice | None:
        """The advice on columns of queries that scanned; None if an index would not pay."""
        queries = sum(each.sums["scanned"] for each in shapes)

        def mean(name: str) -> float:
            return sum(each.sums[name] for each in shapes) / queries

        scan_ms, rows = mean("scan_ms"), mean("rows")
        index_ms = scan_ms * self._fraction_of_scan(rows, mean("scan_bytes"), len(columns))
        saves = scan_ms - index_ms
        if queries < _LEAST_QUERIES or saves < _LEAST_SAVED_MS:
            return None
        if index_ms * _TIMES_CHEAPER > scan_ms:
            return None
        build = self._build_cost(specs)
        return IndexAdvice(
            columns,
            _USING,
            tuple(
                each.name
                for each in self._definitions
                if set(columns).issubset(names_by_use(each)[0])
            ),
            tuple(sorted(each.shape for each in shapes)),
            round(queries, 2),
            round(scan_ms, 3),
            round(rows, 2),
            round(mean("scan_rows"), 1),
            round(index_ms, 3),
            round(saves, 3),
            build,
            None if build.seconds is None else max(1, round(build.seconds * 1000 / saves)),
        )

    def _fraction_of_scan(self, rows: float, scanned_bytes: float, leaves: int) -> float:
        """The cost of a query by index, with all entries open, as a fraction of its cost by scan.

        Both follow `CostModel`, not measured times, since the machine may have been busy during the
        scans.
        """
        constants, files, facts = self._constants, len(self._base_files), self._footers
        if not are_few(round(rows), round(facts.all_rows)):
            return 1.0  # an index would not help: nearly all pages hold some of the rows
        all_pages = max(1.0, facts.all_rows / PAGE_ROWS)
        pages = pages_holding(rows, all_pages)
        all_bytes = facts.bytes(facts.columns)
        share = min(1.0, scanned_bytes / all_bytes) if all_bytes else 0.0
        read_columns = max(1.0, len(facts.columns) * share)
        by_index = (
            files * leaves * constants.lookup_ms
            + rows * constants.step_ms
            + constants.picking_ms(
                pages * read_columns,
                scanned_bytes * pages / all_pages / MIB,
                rows * read_columns,
                min(files, rows),
            )
        )
        by_scan = constants.scanning_ms(scanned_bytes / MIB, facts.all_rows * read_columns, files)
        return by_index / by_scan

    def _build_cost(self, columns: Sequence[ColumnSpec]) -> BuildCost:
        """The cost of an entry for each base file, with these columns and all that the definitions
        require."""
        required = requirements(self._definitions, self._snapshot.schema)
        due = due_with(self._base_files, required, _USING, columns)
        read = {root_column(spec.name) for entry in due[:1] for spec in entry.columns}
        cost = estimate(due, self._records, executor=self._executor, sample=self._sample)
        return BuildCost(
            len(due),
            round(self._footers.bytes(read)),
            cost.seconds,
            cost.index_bytes,
            exact=bool(cost.builds),
        )

    def _unused(self) -> Iterator[UnusedAdvice]:
        """The indexes with entries for the snapshot that no query used since."""
        manifests = {
            name: list(self._manifests(name))
            for name in sorted({name for each in self._definitions for name in each.index_types})
        }
        for definition in self._definitions:
            covering = [
                manifest
                for name in definition.index_types
                for manifest in manifests[name]
                if all(manifest.column(each.name) is not None for each in definition.columns)
            ]
            if not covering:
                continue
            columns = names_by_use(definition)[0]
            finish_times = [datetime.fromisoformat(each.build.finished) for each in covering]
            built = max(finish_times, key=datetime.timestamp)
            unused = unused_since(built.timestamp(), columns, self._shapes)
            if not unused:
                continue
            queries = self._history.queries_since(self._storage.uri, built.timestamp())
            if queries >= _LEAST_QUERIES_SINCE:
                yield UnusedAdvice(
                    definition.name,
                    unused,
                    len(unused) == len(columns),
                    built.astimezone(UTC).isoformat(timespec="seconds"),
                    queries,
                    len(covering),
                    sum(each.data.length for each in covering),
                )

    def _manifests(self, index_type: str) -> Iterator[Manifest]:
        listing = EntryListing(self._storage, index_type)
        for base_file in self._base_files:
            try:
                yield listing.find(base_file).manifest
            except EntryInvalid:
                continue


def unused_since(
    time: float, columns: Iterable[str], shapes: Iterable[HistoryShape]
) -> tuple[str, ...]:
    """The columns on which no query used an index since a time, in seconds since the epoch."""
    used = {name for each in shapes if each.last_used >= time for name in each.used}
    return tuple(name for name in columns if name not in used)
