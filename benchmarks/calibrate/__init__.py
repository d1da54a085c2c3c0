"""Measures the cost of single reading steps on this machine: `make calibrate`.

In a temporary folder and without Spark, it writes a Parquet file as Hudi does, and an index of each
file-based type. It reads them in many ways with the code of queries, and fits the optimizer's
constants to the times. The constants of remote stores, HBase and Spark cannot be measured this way
and stay unchanged.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from benchmarks.calibrate.lookups import lookup_costs
from benchmarks.calibrate.reading import reading_costs
from benchmarks.calibrate.sample import ROWS, write_sample
from benchmarks.calibrate.stored import store_constants
from benchmarks.calibrate.timing import Stopwatch
from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import Constants, constants_path, load_constants

MEANINGS = {
    "open_ms": "opening an index entry",
    "lookup_ms": "looking up one condition in an open entry",
    "listed_ms": "each value of a list in such a condition",
    "step_ms": "each row id or term that the look-up visits",
    "btree_open_ms": "opening a btree index entry",
    "btree_lookup_ms": "looking up one condition in an open btree entry",
    "btree_listed_ms": "each value of a list in such a condition",
    "btree_step_ms": "each row id that the look-up visits",
    "pages_ms": "reading rows by position, fixed cost",
    "page_ms": "each page with wanted rows",
    "picked_mib_ms": "each MiB of such pages",
    "value_ms": "each value read by position",
    "scan_ms": "scanning a base file, fixed cost",
    "scanned_mib_ms": "each MiB of scanned columns",
    "scanned_value_ms": "each scanned value",
    "tested_mib_ms": "each MiB of columns whose values are tested where they lie",
    "tested_value_ms": "each value so tested",
    "request_ms": "each request to a remote store",
    "remote_mib_ms": "each MiB from a remote store",
    "spark_scan_ms": "a scan by Spark, fixed cost",
    "spark_file_ms": "each file that Spark opens",
    "spark_mib_ms": "each MiB of columns that Spark scans",
    "handing_ms": "passing rows to Spark, fixed cost",
    "handed_row_ms": "each row passed to Spark",
    "handed_value_ms": "each value of such a row",
    "tasks_ms": "reading through the index in Spark tasks, fixed cost",
    "task_slice_ms": "each file slice that a task reads, without its rows",
}
"""Constant → the step whose milliseconds it is."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of a run.

    Attributes:
        old: The constants before the run.
        new: The constants after it; those that were not measured are unchanged.
        measured: Names of the measured constants.
        seconds: Duration of the run.
        path: File of the constants; None if nothing was written.
    """

    old: Constants
    new: Constants
    measured: frozenset[str]
    seconds: float
    path: Path | None


def calibrate(
    settings: Settings, *, seconds: float = 15.0, dry_run: bool = False, rows: int = ROWS
) -> Calibration:
    """Measures the constants and stores them in the state folder, for this process and those that
    start later.

    Args:
        seconds: Time to measure; every step is measured at least a few times. Writing the file and
            its index takes a few more seconds.
        dry_run: Whether to write nothing.
        rows: Number of rows of the Parquet file.

    Raises:
        NativeModuleMissing: PyLucene is not installed.
        ConfigInvalid: the constants cannot be stored.
    """
    started = perf_counter()
    old = load_constants(settings)
    with tempfile.TemporaryDirectory(prefix="hudi-index-calibrate-") as folder:
        sample = write_sample(Path(folder), settings, rows)
        watch = Stopwatch(seconds / 2)
        costs = lookup_costs(sample, watch) | reading_costs(
            sample, settings, Stopwatch(seconds / 2)
        )
    # A cost that is lost in the noise is fitted as 0, but no real cost is 0.
    new = old.model_copy(
        update={name: max(ms, getattr(old, name) / 100) for name, ms in costs.items()}
    )
    path = None if dry_run else constants_path(settings)
    if path is not None:
        store_constants(path, new)
    return Calibration(old, new, frozenset(costs), perf_counter() - started, path)
