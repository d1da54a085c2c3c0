"""Decides who reads: an index or a scan, single pages or a whole file, and in a Spark query the
driver, Spark's tasks or Spark's own scan.

All such decisions for a query are made here. Scans, counts, look-ups of record keys and SQL make
them in this order, each time with better knowledge:

======================================  ======================================================
known                                   decided by
======================================  ======================================================
the slices that segments leave          `are_many`, `ask_open_entries`
manifest of a typical slice             `may_have_none`
manifests, corrected by the history     `index_pays`, `most_keys_by_index`, `enough_is_indexed`
record keys in log files                `log_rows_pay`
slices of the table, and past scans     `opening_pays`
estimates of a leaf                     `look_up_together`, `look_up_each_pays`, `most_steps`
bounds of open entries                  `are_too_many`, `scan_tests_faster`,
                                        `cheapest_count`
row ids                                 `narrow_together`, `cheapest_reading`,
                                        `pages_pay_in_portions`
estimates of all slices of a relation   `RelationCosts`
the rows that a look-up finds           `most_tasks`
======================================  ======================================================

The functions read nothing: callers pass what they know. Costs are those of `optimizer/cost`, whose
`constants` hold every number. No answer depends on a decision.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from hudi_index_parquet import RowPlan
from pyroaring import BitMap

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import (
    ASKED_WHILE_OPEN,
    DEAR_LOOKUP,
    DRIVER_SCAN_BYTES,
    DRIVER_SLICES,
    EXPECTED_IN_EACH,
    FEW_ROWS,
    FEWEST_SLICES,
    KEYS_PER_FILE,
    LARGE_FILE,
    LOOKUPS_OF_A_SLICE,
    MANY_SLICES,
    MIB,
    MOST_LEAVES_ASKED,
    MOST_TOUCHED,
    OPENING_RANGES,
    OPENING_SHARE,
    PICKED_OF_PAGE,
    PORTIONS_FACTOR,
    RANGES_PER_REQUEST,
    ROWS_PER_FILTER,
    ROWS_PER_KEY,
    ROWS_PER_TASK,
    SCANNED_UNOPENED,
    SCANS_FOR_OPENING,
    SMALL_FILE_BYTES,
    SPARK_MARGIN,
    Constants,
    load_constants,
)
from hudi_index_service.optimizer.cost.in_spark import Reader, SparkCosts, Work
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.cost.pages import PAGE_ROWS, pages_holding, pages_of
from hudi_index_service.optimizer.cost.reading_steps import ReadingSteps
from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.predicate.expression import And, Like, Match, Not, Predicate, RLike

# --- before an entry is opened ---------------------------------------------------------------


def are_many(slices: int) -> bool:
    """Whether slices are so many that most queries read a fraction of them: open entries are asked,
    and serve, before they are planned one by one."""
    return slices >= ASKED_WHILE_OPEN


def ask_open_entries(predicate: Predicate) -> bool:
    """Whether they are asked for the leaves of a predicate, to plan only slices with rows."""
    leaves = islice(predicate.leaves(), MOST_LEAVES_ASKED + 1)
    return sum(1 for _ in leaves) <= MOST_LEAVES_ASKED


def may_have_none(condition: Predicate, expected: Callable[[], RowEstimate | None]) -> bool:
    """Whether many slices may have no row for which a condition is TRUE.

    Args:
        expected: The matching rows of a typical slice; None if that is unknown.
    """
    if any(isinstance(leaf, Like | RLike | Match) for leaf in condition.leaves()):
        return True  # of patterns and words, estimates are guesses
    rows = expected()
    return rows is None or rows.expected < EXPECTED_IN_EACH


def index_pays(model: CostModel, plan: SlicePlan, expected: Expected) -> bool:
    """Whether to use a slice's entries: yes, unless a scan is clearly cheaper. While reading, pages
    and file are compared again with known row ids, and a look-up costs little. So estimates decide
    only where the look-up itself is expensive, and guaranteed bounds otherwise."""
    if are_too_many(expected.rows.least, plan.total, model.scan_fraction):
        return False
    more = expected.index_ms - (1 + DEAR_LOOKUP) * expected.scan_ms
    return more <= 0 or more <= (1 - OPENING_SHARE) * model.opening_ms(plan.entries)


def most_keys_by_index(rows: int) -> int:
    """The most record keys to look up in the index of a file of this many rows, rather than to scan
    the keys of all its rows."""
    return max(KEYS_PER_FILE, rows // ROWS_PER_KEY)


def log_rows_pay(rows: int, keys: int) -> bool:
    """Whether to merge only the rows with the record keys in a slice's log files, rather than all
    rows of its base file."""
    return keys <= MOST_TOUCHED * rows


def bloom_filter_pays(rows: int) -> bool:
    """Whether to read the Bloom filter of a file of this many rows before the keys of all rows."""
    return rows >= ROWS_PER_FILTER


def each_task_reads_all_keys(rows: int) -> bool:
    """Whether each Spark task looks for its share of the requested keys in a whole table of this
    many rows, rather than for all keys that are sent to its share of the table."""
    return rows <= ROWS_PER_TASK


# --- while row ids are looked up -------------------------------------------------------------


def opening_pays(rows: int, scans: int) -> bool:
    """Whether to open the entry of one of many local base files, of this many rows, rather than to
    scan it, if the row reader tests the whole predicate. Once it has been scanned for as long as
    opening takes, it is worth opening: whatever queries follow, that costs at most twice as much as
    the better of the two ways.

    Args:
        scans: How often it has been scanned in place of opening its entry.
    """
    return rows > SCANNED_UNOPENED or scans >= SCANS_FOR_OPENING


def scan_of_small_pays(total: int, expected: float) -> bool:
    """Whether to scan one of many small local base files of `total` rows without a look-up, if the
    row reader tests the whole predicate: so many rows are expected to match that no call for many
    entries returns them. On 1,000 files of 2,000 rows, a third of which match, a scan takes 0.07 ms
    a file, with a look-up 0.2."""
    return total <= SCANNED_UNOPENED and expected > FEW_ROWS


def look_up_together(slices: int, expected: Callable[[], RowEstimate | None]) -> bool:
    """Whether one call looks up the rows of a leaf in the entries of so many slices.

    Args:
        expected: The matching rows of one of them; None if that is unknown.
    """
    if not FEWEST_SLICES <= slices < MANY_SLICES:
        return slices >= MANY_SLICES
    rows = expected()
    return rows is not None and rows.expected <= FEW_ROWS


def narrow_together(slices: int) -> bool:
    """Whether one call examines the rows that other conjuncts leave in so many slices."""
    return slices >= FEWEST_SLICES


def look_up_each_pays(
    leaf: Predicate, steps: int, rows: BitMap | None, reading: ReadingSteps
) -> bool:
    """Whether to look a leaf up in many slices, each by itself, rather than to test the rows that
    it may rule out.

    Args:
        steps: Those of a look-up in one of them.
        rows: Those that the conjuncts before leave in it; None for all, which are scanned.
    """
    if reading.scan is None:
        return True
    spared = reading.scan - steps if rows is None else most_steps(leaf, rows, 0.0, reading)
    return spared > LOOKUPS_OF_A_SLICE * reading.lookup


def most_steps(leaf: Predicate, rows: BitMap, share: float, reading: ReadingSteps) -> int:
    """The most steps that a look-up may take, of a further conjunct that is tested on the rows in
    any case: what reading and testing the rows that it rules out takes. Rows of one page are read
    together, so that it spares only pages that hold none of the others.

    Args:
        rows: Those that the conjuncts before leave.
        share: How many of them are expected to be left, from 0 to 1.
    """
    pages = pages_of(rows)
    spared = pages - pages_holding(share * len(rows), pages)
    tested = (1 - share) * reading.testing(leaf, len(rows))
    return max(0, round(reading.page * spared + tested) - reading.lookup)


def are_few(rows: int, total: int) -> bool:
    """Whether rows are so few that they are picked out of their pages, regardless of these pages'
    share of the bytes, since skipping values takes less time than decoding them."""
    return rows * PICKED_OF_PAGE < total


def are_too_many(least: int, total: int, scan_fraction: float) -> bool:
    """Whether a scan is cheaper by the number of rows alone: even if they are clustered, their
    pages have too large a share of the file's bytes."""
    return least > scan_fraction * total


def scan_tests_faster(least: int, total: int) -> bool:
    """Whether to scan a large local file for so many rows, whatever pages hold them, if the row
    reader tests the whole predicate: it tests a value in a fraction of the time in which an index
    hands a row over, skips pages by their bounds as well, and decodes other columns for matching
    rows alone. On 2,000,000 rows in any order, half of them took 117 ms by look-up and scan, 54 by
    the scan alone; a thirtieth took as long either way."""
    return total >= LARGE_FILE and not are_few(least, total)


class Counting(Enum):
    """How the rows of a base file are counted."""

    INDEX = "index"  #: by the index alone, which looks up every conjunct to its end
    ROWS = "rows"  #: by testing the rows of the conjunct with the fewest
    SCAN = "scan"  #: by testing all rows


def cheapest_count(
    steps: Sequence[int], reading: ReadingSteps, total: int, columns: int
) -> Counting:
    """The cheapest way to count.

    Args:
        steps: Those of the look-up of each conjunct.
        total: The number of rows of the base file.
        columns: The number of columns read to check a row.
    """
    fewest = min(steps)
    pages = columns * pages_holding(fewest, total / PAGE_ROWS)
    costs = {
        Counting.INDEX: sum(steps) + len(steps) * reading.lookup,
        Counting.ROWS: fewest + pages * reading.page + fewest * columns * reading.row,
    }
    if reading.scan is not None:
        costs[Counting.SCAN] = reading.scan
    return min(costs, key=costs.__getitem__)


# --- once row ids are known ------------------------------------------------------------------


class Reading(Enum):
    """How much of a base file is read for some of its rows."""

    PAGES = "pages"  #: the pages that hold the rows
    ROW_GROUPS = "row groups"  #: whole columns of the row groups that hold the rows
    FILE = "file"  #: whole columns


def cheapest_reading(
    plan: RowPlan, settings: Settings, *, remote: bool, rows: int | None = None
) -> Reading:
    """The cheapest way to read rows, by bytes and by requests to a remote store. Bytes of single
    pages are divided by `read.scan_fraction`, since picking many rows out of them is slower.

    Args:
        rows: The number of rows picked; many if None.
    """
    few = rows is not None and are_few(rows, plan.group_rows)
    pages, more = plan.page_bytes / (1 if few else settings.read.scan_fraction), plan.chunk_bytes
    if remote:
        request = request_bytes(load_constants(settings))
        pages, more = pages + plan.ranges * request, more + OPENING_RANGES * request
    if pages <= more:
        return Reading.PAGES
    return Reading.ROW_GROUPS if plan.chunk_bytes < plan.total_bytes else Reading.FILE


def request_bytes(constants: Constants) -> int:
    """Bytes that a remote store could send in the time of one more request among many."""
    return int(constants.request_ms / RANGES_PER_REQUEST / constants.remote_mib_ms * MIB)


def is_small(size: int) -> bool:
    """Whether one call scans a local base file of this many bytes together with others."""
    return size <= SMALL_FILE_BYTES


def page_indexes_pay(size: int, settings: Settings) -> bool:
    """Whether a scan of this many bytes of a remote file fetches the page indexes first."""
    return size > OPENING_RANGES * request_bytes(load_constants(settings))


def pages_pay_in_portions(plan: RowPlan, settings: Settings) -> bool:
    """Whether a scan reads the pages that a remote file's page indexes leave, in portions by
    sequential requests, rather than whole columns."""
    cheapest = cheapest_reading(plan, settings, remote=True)
    return cheapest is Reading.PAGES and PORTIONS_FACTOR * plan.page_bytes <= plan.chunk_bytes


# --- a relation of a Spark query -------------------------------------------------------------


def most_tasks(model: CostModel, plan: SlicePlan, rows: int) -> int:
    """The most Spark tasks to read a slice by index if this many of its rows match: each task looks
    it up again, which should take no longer than reading its share of the rows."""
    looking_up = model.looking_up_ms(plan, rows)
    reading = model.expected(plan, RowEstimate(rows, rows, rows)).index_ms - looking_up
    return max(1, int(reading / looking_up))


def enough_is_indexed(indexed: int, others: int) -> bool:
    """Whether the index serves enough of a table, in bytes of base files, for a relation to be read
    by the service: half of it, or all but what the driver may scan."""
    return others <= max(indexed, DRIVER_SCAN_BYTES)


def matches_most(predicate: Predicate) -> bool:
    """Whether most rows match, so that counting them would visit most of the index."""
    match predicate:
        case And(operands):
            return all(map(matches_most, operands))
        case Not(Like() | RLike()):
            return True
    return False


def driver_may_count(scanned: int, slices: int) -> bool:
    """Whether the driver counts rows by the index and scans the files without one.

    Args:
        scanned: The bytes of these files.
    """
    return scanned <= DRIVER_SCAN_BYTES and slices <= DRIVER_SLICES


@dataclass(frozen=True, slots=True)
class RelationCosts:
    """Chooses the reader of a relation.

    Attributes:
        indexed, others: Bytes of base files with an index, and without. The same density of
            matching rows is assumed in both.
        searched: Whether a full-text search is among the conditions; Spark would have to analyze
            every text.
    """

    costs: SparkCosts
    indexed: int
    others: int
    searched: bool

    def reader(self, work: Work, *, driver: bool = True) -> Reader:
        """The cheapest reader for some work.

        Args:
            work: Reading the slices with an index, and scanning the others.
        """
        work += Work(rows=work.rows * (self.others / max(1, self.indexed)))
        among = [Reader.TASKS] if self.costs.readers.tasks else []
        few = self.costs.values(work) <= self.costs.readers.most_values
        if driver and few and self.others <= DRIVER_SCAN_BYTES:
            among.insert(0, Reader.DRIVER)
        if not self.searched or not among:
            among.append(Reader.SPARK)
        return self.cheapest(work, among)

    def settled(self, least: Work, most: Work, likely: Work | None) -> Reader | None:
        """The reader, if no further look-up can change it; else None.

        Args:
            least, most: The minimum and the maximum of the work.
            likely: The expected work, rather too low; None without an estimate yet.
        """
        first = self.reader(least)
        if first is Reader.SPARK or first is self.reader(most):
            return first
        if likely is not None and self.reader(likely) is Reader.SPARK:
            return Reader.SPARK
        return None

    def cheapest(self, work: Work, among: Collection[Reader]) -> Reader:
        """The cheapest of some readers; the first of equals."""

        def cost(reader: Reader) -> float:
            ms = self.costs.milliseconds(work, reader)
            return ms / SPARK_MARGIN if reader is Reader.SPARK else ms

        return min(among, key=cost)
