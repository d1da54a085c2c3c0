"""Every number that decides who reads: costs of the single steps on this machine, in milliseconds,
and thresholds, which are the same on every machine."""

import logging
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hudi_index_service.config import Settings
from hudi_index_service.wording import first_mistake

log = logging.getLogger(__name__)

Milliseconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

MIB = 2**20

# --- before an entry is opened ---------------------------------------------------------------

OPENING_SHARE = 0.1
"""The share of an index's opening cost that counts for one query: the index stays open or cached
for later queries, which would never have it if no query opened it first."""

DEAR_LOOKUP = 0.2
"""The share of a scan's time from which a look-up that may be useless is not worth trying."""

ROWS_PER_KEY = 200
"""Rows whose keys are scanned in the time of looking up one record key."""

KEYS_PER_FILE = 16
"""Record keys that are looked up in the time of opening a base file."""

ROWS_PER_FILTER = 20_000
"""Rows whose keys are read in the time of reading a Bloom filter of Hudi's, which has room for
60,000 keys by default, however few its file has."""

MOST_TOUCHED = 1 / 4
"""Record keys in log files, as a share of the base file's rows, up to which only the rows with
these keys are merged."""

ROWS_PER_TASK = 20_000_000
"""Rows whose keys one core reads in some ten seconds."""

# --- while row ids are looked up -------------------------------------------------------------

LARGE_FILE = 20_000
"""Rows of a base file, those of a page, from which the index itself is asked for the steps of each
look-up."""

SHORT_LOOKUP = 2_000
"""Steps of a first look-up up to which it is not compared with a scan: to find out what that costs
takes longer."""

LOOKUPS_OF_A_SLICE = 2
"""Look-ups that find no row in the time of looking up one of many slices by itself: on 100 files of
25,000 rows, 0.1 ms."""

TESTS_OF_TEXT = 8
"""Numbers, or values of a dictionary, that are tested in the time of a text that lies in a page: on
two cores, 1 ns and 8."""

CHECKED_SINGLY = 1_024
"""Candidates that further conjuncts check one by one."""

COUNTED_VALUES = 5_000
"""Values of a text column per base file that the index counts; reading more of them takes longer
than reading the column."""

# --- once row ids are known ------------------------------------------------------------------

PICKED_OF_PAGE = 16
"""One row of this many: nearly all values of a page are skipped without decoding."""

SMALL_FILE_BYTES = 4 * MIB
"""A base file up to which its own calls take a good part of a scan: on 1,000 files of 2,000 rows, a
count by one call for many takes a quarter of the time."""

FEW_ROWS = 256
"""Rows of a leaf up to which a call that asks many entries returns those of each."""

FEWEST_SLICES = 2
"""Slices from which such a call takes no longer than one for each."""

MANY_SLICES = 16
"""Slices from which it is worth trying even if many rows are expected, to find those without."""

ASKED_WHILE_OPEN = 64
"""Slices from which open entries are asked before the slices are planned."""

SCANNED_UNOPENED = 5_000
"""Rows of a base file up to which its columns are scanned in a fraction of the time of opening its
entry: of 2,000 rows, in 0.4 ms instead of 2.2."""

SCANS_FOR_OPENING = 5
"""Scans of such a file that take as long as opening its entry."""

MOST_LEAVES_ASKED = 16
"""Leaves of a predicate up to which they are: a call for each takes as long as planning, once there
are many."""

EXPECTED_IN_EACH = 2
"""Expected rows of a leaf in a slice from which open entries are not asked whether they have any:
were the rows spread evenly, one slice in seven would have none, and to ask takes a seventh of the
time of planning."""

RANGES_PER_REQUEST = 40
"""Ranges requested in the time that a remote store takes to start sending one."""

OPENING_RANGES = 40
"""Parallel requests that cost as much as opening a file by sequential requests."""

PORTIONS_FACTOR = 2
"""Pages of a remote file that a scan leaves are read in portions by sequential requests: they must
have this many times fewer bytes than whole columns."""

# --- a remote store --------------------------------------------------------------------------

WHOLE_INDEX_BYTES = 8 * MIB
"""A remote index of up to this size is fetched whole, in one request (benchmarks/README.md)."""

INDEX_OPENING = (4, 0.7 * MIB)
"""Sequential requests and bytes to open a larger one."""

INDEX_LOOKUP = (1, 0.26 * MIB)
"""Requests and bytes of a look-up in it."""

SCAN_REQUESTS = 4
"""Sequential requests to open a remote base file."""

PAGES_PER_REQUEST = 10
"""Pages requested in parallel."""

# --- a relation of a Spark query -------------------------------------------------------------

SPARK_MARGIN = 2.0
"""Spark's own scan must cost this many times as much before it is replaced. It runs in parallel to
the scans of the query's other relations, so replacing it saves an unknown part of its time."""

ROW_GROUP_BYTES = 120 * MIB
"""Bytes of a row group as Hudi writes it (`hoodie.parquet.block.size`): no two tasks share one."""

DRIVER_SCAN_BYTES = 16 * MIB
"""Bytes of base files without an index that the driver reads."""

DRIVER_VALUES = 250_000
"""Values that the driver hands to Spark: about `DRIVER_BYTES`."""

DRIVER_BYTES = 4 * MIB
"""Bytes in memory of rows that the driver hands to Spark."""

DRIVER_SLICES = 1_000
"""Slices that the driver asks one by one."""

LOG_FILE_BYTES = MIB
"""Assumed size of a log file: the timeline has none, and merging is slow."""

LOG_ROWS_MS = (5.0, 5.0)
"""Milliseconds of merging the log rows of a slice: fixed, and per MiB of the columns."""

TOO_HIGH = 4
"""An expected number of rows may be too high by this factor."""

SLICES_UNLIKE = 2
"""Slices of a table may differ by this factor."""

# --- costs -----------------------------------------------------------------------------------


class Constants(BaseModel):
    """Costs in milliseconds. A MiB is counted as stored in the file, that is, compressed.

    The defaults were measured on two cores of a virtual machine, warm, on gzip files with pages of
    20,000 rows, as Hudi writes them; `make calibrate` measures those of the present machine.
    The constants of Spark (from `spark_scan_ms` on) are the additional time of whole queries on
    TPC-H's tables at scale 0.1 with Spark's scan, or with more rows handed over. They are not
    calibrated.

    Attributes:
        open_ms: Opening an entry that is not open and has its bytes on the local disk.
        lookup_ms: Looking up one leaf in an open entry, regardless of the number of rows found.
        listed_ms: Per value of a list that is looked up.
        step_ms: Per row id or term read in a look-up.
        btree_open_ms, btree_lookup_ms, btree_listed_ms, btree_step_ms: The same for an entry of
            type ``btree``. Those above are for ``lucene``, and for types without costs of their own
            (`IndexType.costs`).
        pages_ms: Fixed cost of reading rows by position: file, plan, batches.
        page_ms: Per page that holds rows to be read: finding and decoding it, without its bytes.
        picked_mib_ms: Per MiB of such pages: reading and decompressing, and skipping values.
        value_ms: Per value picked out of its page: skipping those before it, decoding it, and
            checking its row against the predicate.
        scan_ms: Fixed cost of scanning a base file: file, footer, batches.
        scanned_mib_ms: Per MiB of columns read whole: reading, decompressing and decoding.
        scanned_value_ms: Per value scanned: checking its row against the predicate.
        tested_mib_ms: Per MiB of columns that the row reader tests where their values lie, all rows
            of them: reading and decompressing.
        tested_value_ms: Per value that is so tested; see `TESTS_OF_TEXT`.
        request_ms: Per request to a remote store, until the first byte arrives.
        remote_mib_ms: Per MiB from a remote store, until the last byte arrives.
        spark_scan_ms: Fixed cost of a scan by Spark: its plan, and the start of a job's tasks.
        spark_file_ms: Per file that Spark scans, for one task: opening it.
        spark_mib_ms: Per MiB of columns, for one task: reading, decoding and checking the rows.
        handing_ms: Fixed cost of handing rows to Spark, which plans the query again.
        handed_row_ms: Per row that the driver or a task hands over, and that Spark processes.
        handed_value_ms: The same per value of the row.
        tasks_ms: Fixed cost of index reads by Spark tasks: two jobs in Python workers.
        task_slice_ms: Per file slice that a task reads, twice, without its rows: unpacking its plan
            and opening its entries.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    open_ms: Milliseconds = 0.7
    lookup_ms: Milliseconds = 0.045
    listed_ms: Milliseconds = 0.011
    step_ms: Milliseconds = 0.00001
    btree_open_ms: Milliseconds = 0.25
    btree_lookup_ms: Milliseconds = 0.022
    btree_listed_ms: Milliseconds = 0.006
    btree_step_ms: Milliseconds = 0.000007
    pages_ms: Milliseconds = 0.2
    page_ms: Milliseconds = 0.005
    picked_mib_ms: Milliseconds = 4.0
    value_ms: Milliseconds = 0.00013
    scan_ms: Milliseconds = 0.55
    scanned_mib_ms: Milliseconds = 5.0
    scanned_value_ms: Milliseconds = 0.00002
    tested_mib_ms: Milliseconds = 2.5
    tested_value_ms: Milliseconds = 0.000001
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

    def picking_ms(self, pages: float, mib: float, values: float, files: float = 1) -> float:
        """The cost of reading values by position from pages of `mib` MiB in all."""
        return (
            files * self.pages_ms
            + pages * self.page_ms
            + mib * self.picked_mib_ms
            + values * self.value_ms
        )

    def scanning_ms(self, mib: float, values: float, files: float = 1) -> float:
        """The cost of scanning this many MiB of columns and values in them."""
        return files * self.scan_ms + mib * self.scanned_mib_ms + values * self.scanned_value_ms

    def steps(self, ms: float) -> int:
        """The number of look-up steps that take so long."""
        return round(ms / self.step_ms)

    def testing_ms(self, mib: float, values: float) -> float:
        """The cost of testing values where they lie, after reading `mib` MiB of pages."""
        return mib * self.tested_mib_ms + values * self.tested_value_ms


DEFAULTS = Constants()

FILE_NAME = "costs.json"


def constants_path(settings: Settings) -> Path:
    """The file of this machine's constants: JSON of a `Constants`, mode 0600."""
    return settings.state_folder / FILE_NAME


def load_constants(settings: Settings) -> Constants:
    """The calibrated constants, or the shipped ones without calibration; read once per process. An
    unreadable file only logs a warning, since no answer depends on it."""
    return _loaded(constants_path(settings))


def forget_constants() -> None:
    """Makes the next `load_constants` read the file again."""
    _loaded.cache_clear()


@lru_cache(maxsize=16)
def _loaded(path: Path) -> Constants:
    try:
        return Constants.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return DEFAULTS
    except OSError as error:
        log.warning("%s is not used: %s", path, error)
    except ValidationError as error:
        log.warning("%s is not used: %s.", path, first_mistake(error))
    return DEFAULTS
