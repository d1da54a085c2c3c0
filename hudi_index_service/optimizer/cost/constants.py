"""What single steps of reading cost on this machine, in milliseconds."""

import logging
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hudi_index_service.config import Settings
from hudi_index_service.validation_message import first_mistake

log = logging.getLogger(__name__)

Milliseconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

_PAGE_MIB = 0.05  # of Hudi's pages of 20,000 values, compressed: 0.02 to 0.3, by what is in them
_VALUE_MIB = 8 / 2**20  # of one value of few bytes
_FEW = 1 / 200  # of a scan's time

FEWEST_STEPS = 8_192
"""What is always few: far more than a file has pages."""


class Constants(BaseModel):
    """Costs in milliseconds. "MiB" are bytes as they lie in the file, that is compressed.

    The defaults were measured on two cores of a virtual machine, warm, on gzip files with pages of
    20,000 rows, as Hudi writes them; `hudi-index calibrate` measures those of the machine at hand.
    Those of Spark (from `spark_scan_ms` on) are what whole queries on TPC-H's tables at scale 0.1
    took more with Spark's scan, or with more rows handed over; they are not calibrated.

    Attributes:
        open_ms: To open an entry that is not open yet and has its bytes on the local disk.
        lookup_ms: To ask an open entry for one leaf, whatever it finds.
        listed_ms: Of a value of a list that is looked up.
        step_ms: To go through one row id or term in a look-up.
        btree_open_ms, btree_lookup_ms, btree_listed_ms, btree_step_ms: The same of an entry of the
            type ``btree``; those above are of ``lucene``, and stand in for types that nobody
            measured.
        hbase_lookup_ms, hbase_listed_ms, hbase_step_ms: The same of one of the type ``hbase``, in
            a round trip to its server; not calibrated.
        pages_ms: To read rows by position at all, however few: file, plan, batches.
        page_ms: Of a page that holds wanted rows: to find and decode it, beside its bytes.
        picked_mib_ms: Of a MiB of such pages: to read and decompress it, and to pass over values.
        value_ms: Of a value that is picked out of its page: to pass over those before it, to make
            it, and to hold its row against the predicate.
        scan_ms: To scan a base file at all, however small: file, footer, batches.
        scanned_mib_ms: Of a MiB of columns that are read whole: to read, decompress and decode it.
        scanned_value_ms: Of a value that is scanned: to hold its row against the predicate.
        request_ms: Of a request to a remote store: until the first byte comes.
        remote_mib_ms: Of a MiB from a remote store: until the last byte is there.
        spark_scan_ms: To let Spark scan files at all: its plan, and the start of a job's tasks.
        spark_file_ms: Of a file that Spark scans, for one task: to open it.
        spark_mib_ms: Of a MiB of columns, for one task: to read and decode it, and to look at rows.
        handing_ms: To hand rows over to Spark at all, and have it plan the query anew.
        handed_row_ms: Of a row that the driver or a task hands over, and Spark goes through.
        handed_value_ms: The same of each of its values.
        tasks_ms: To let Spark tasks read through the index at all: two jobs in Python's workers.
        task_slice_ms: Of a file slice that a task reads so, twice, beside its rows: to unpack its
            plan, to open its entries.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    open_ms: Milliseconds = 0.7
    lookup_ms: Milliseconds = 0.045
    listed_ms: Milliseconds = 0.011
    step_ms: Milliseconds = 0.00001
    btree_open_ms: Milliseconds = 0.25
    btree_lookup_ms: Milliseconds = 0.022
    btree_listed_ms: Milliseconds = 0.045
    btree_step_ms: Milliseconds = 0.000007
    hbase_lookup_ms: Milliseconds = 2.0
    hbase_listed_ms: Milliseconds = 0.225
    hbase_step_ms: Milliseconds = 0.00002
    pages_ms: Milliseconds = 0.2
    page_ms: Milliseconds = 0.005
    picked_mib_ms: Milliseconds = 4.0
    value_ms: Milliseconds = 0.00013
    scan_ms: Milliseconds = 0.55
    scanned_mib_ms: Milliseconds = 5.0
    scanned_value_ms: Milliseconds = 0.00002
    request_ms: Milliseconds = 50.0
    remote_mib_ms: Milliseconds = 10.0
    spark_scan_ms: Milliseconds = 100.0
    spark_file_ms: Milliseconds = 25.0
    spark_mib_ms: Milliseconds = 12.0
    handing_ms: Milliseconds = 40.0
    handed_row_ms: Milliseconds = 0.012
    handed_value_ms: Milliseconds = 0.0003
    tasks_ms: Milliseconds = 600.0
    task_slice_ms: Milliseconds = 200.0

    @property
    def row_steps(self) -> int:
        """How many steps of a look-up take as long as to read one row more, at most: a page of a
        column."""
        return max(1, int((self.page_ms + _PAGE_MIB * self.picked_mib_ms) / self.step_ms))

    def picking_ms(self, pages: float, mib: float, values: float, files: float = 1) -> float:
        """What reading so many values by position takes, from pages of so many MiB in all."""
        return (
            files * self.pages_ms
            + pages * self.page_ms
            + mib * self.picked_mib_ms
            + values * self.value_ms
        )

    def scanning_ms(self, mib: float, values: float, files: float = 1) -> float:
        """What scanning so many MiB of columns takes, and so many values in them."""
        return files * self.scan_ms + mib * self.scanned_mib_ms + values * self.scanned_value_ms

    def scan_steps(self, rows: int, columns: int) -> float:
        """How many steps of a look-up take as long as to scan so many rows of narrow columns."""
        scanned = self.scanned_value_ms + _VALUE_MIB * self.scanned_mib_ms
        return rows * columns * scanned / self.step_ms

    def few_steps(self, rows: int) -> int:
        """How many steps take no time next to a scan of so many rows, of a narrow column."""
        return max(int(_FEW * self.scan_steps(rows, 1)), FEWEST_STEPS)


DEFAULTS = Constants()

FILE_NAME = "costs.json"


def constants_path(settings: Settings) -> Path:
    """Where calibrated constants are kept: JSON of a `Constants`, mode 0600."""
    return settings.state_folder / FILE_NAME


def load_constants(settings: Settings) -> Constants:
    """The calibrated constants, or the shipped ones if nobody has calibrated; read once a process.
    A file that cannot be read is warned of, and changes nothing else: no answer depends on it."""
    return _loaded(settings.state_folder)


def forget_constants() -> None:
    """Makes the next `load_constants` read the file anew."""
    _loaded.cache_clear()


@lru_cache(maxsize=16)
def _loaded(state_folder: Path) -> Constants:
    path = state_folder / FILE_NAME
    try:
        return Constants.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return DEFAULTS
    except OSError as error:
        log.warning("%s is not used: %s", path, error)
    except ValidationError as error:
        log.warning("%s is not used: %s.", path, first_mistake(error))
    return DEFAULTS
