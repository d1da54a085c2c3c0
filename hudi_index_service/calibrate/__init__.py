"""`hudi-index calibrate`: what single steps of reading cost on this machine, by a short run.

It makes a Parquet file as Hudi writes them, and its index of each type that lies in files, in a
temporary folder, without Spark. It reads them in many ways by the same code as queries do, and
works the optimizer's constants out of the times. What a remote store takes cannot be had from local
files, nor what HBase or Spark takes without them: that stays as it is.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from hudi_index_service.calibrate.lookups import lookup_costs
from hudi_index_service.calibrate.reading import reading_costs
from hudi_index_service.calibrate.sample import ROWS, write_sample
from hudi_index_service.calibrate.stored import store_constants
from hudi_index_service.calibrate.timing import Stopwatch
from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost import Constants, constants_path, load_constants

MEANINGS = {
    "open_ms": "to open an index entry",
    "lookup_ms": "to ask an open entry for one condition",
    "listed_ms": "a value of a list that is looked up",
    "step_ms": "a row id or term that a look-up goes through",
    "btree_open_ms": "to open an index entry of the type btree",
    "btree_lookup_ms": "to ask one that is open for one condition",
    "btree_listed_ms": "a value of a list that is looked up in it",
    "btree_step_ms": "a row id that such a look-up goes through",
    "hbase_lookup_ms": "to ask an entry in HBase for one condition",
    "hbase_listed_ms": "a value of a list that is looked up there",
    "hbase_step_ms": "a row id that comes of it",
    "pages_ms": "to read rows by position at all",
    "page_ms": "a page that holds wanted rows",
    "picked_mib_ms": "a MiB of such pages",
    "value_ms": "a value that was read by position",
    "scan_ms": "to scan a base file at all",
    "scanned_mib_ms": "a MiB of columns that are scanned",
    "scanned_value_ms": "a value that is scanned",
    "request_ms": "a request to a remote store",
    "remote_mib_ms": "a MiB from a remote store",
    "spark_scan_ms": "to let Spark scan files at all",
    "spark_file_ms": "a file that Spark opens",
    "spark_mib_ms": "a MiB of columns that Spark scans",
    "handing_ms": "to hand rows over to Spark at all",
    "handed_row_ms": "a row that is handed over",
    "handed_value_ms": "a value of such a row",
    "tasks_ms": "to let Spark tasks read through the index at all",
    "task_slice_ms": "a file slice that a task reads so, beside its rows",
}
"""Of each constant, what takes so many milliseconds."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a run found.

    Attributes:
        old: The constants that counted before.
        new: Those that count from now on; of what was not measured, the old ones.
        measured: Names of those that were measured.
        seconds: How long the run took.
        path: Where they are kept; None if nothing was written.
    """

    old: Constants
    new: Constants
    measured: frozenset[str]
    seconds: float
    path: Path | None


def calibrate(
    settings: Settings, *, seconds: float = 15.0, dry_run: bool = False, rows: int = ROWS
) -> Calibration:
    """Measures the constants and keeps them in the state folder, for processes that start later
    and for this one.

    Args:
        seconds: How long to measure; every step is measured a few times at least. Making the file
            and its index takes some seconds more.
        dry_run: Whether to write nothing.
        rows: Of the Parquet file.

    Raises:
        NativeModuleMissing: PyLucene is not installed.
        ConfigInvalid: the constants cannot be kept.
    """
    started = perf_counter()
    old = load_constants(settings)
    with tempfile.TemporaryDirectory(prefix="hudi-index-calibrate-") as folder:
        sample = write_sample(Path(folder), settings, rows)
        watch = Stopwatch(seconds / 2)
        found = lookup_costs(sample, watch) | reading_costs(
            sample, settings, Stopwatch(seconds / 2)
        )
    # A share that is lost in the noise comes out as nothing, which it is not.
    new = old.model_copy(
        update={name: max(ms, getattr(old, name) / 100) for name, ms in found.items()}
    )
    path = None if dry_run else constants_path(settings)
    if path is not None:
        store_constants(path, new)
    return Calibration(old, new, frozenset(found), perf_counter() - started, path)
