"""The decision that is taken at run time, per slice: row ids are known, pages are not yet read."""

from enum import Enum

from hudi_index_parquet import RowPlan

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import Constants, load_constants
from hudi_index_service.optimizer.plan import SlicePlan

_AT_ONCE = 40  # ranges that are asked for in the time that a remote store takes to begin with one


def request_bytes(constants: Constants) -> int:
    """What a remote store could have sent in the time that one more request takes, of many."""
    return int(constants.request_ms / _AT_ONCE / constants.remote_mib_ms * 2**20)


REQUEST_BYTES = request_bytes(Constants())
"""The same where nobody has calibrated."""

_OPENING = 40  # requests; for more than pages, the file is opened: some requests in a row
PRUNING_BYTES = _OPENING * REQUEST_BYTES
"""Of a remote file that a scan would read, before its page indexes are asked for."""

_FEW = 16  # of so many rows one: nearly all values of a page are passed over, none is made


_CLEARLY = 4


class Reading(Enum):
    """How much of a base file is read for some of its rows."""

    PAGES = "pages"  #: the pages that hold the rows
    ROW_GROUPS = "row groups"  #: the columns whole, of the row groups that hold the rows
    FILE = "file"  #: the columns whole


def are_few(rows: int, total: int) -> bool:
    """Whether rows are so few of all that they are picked out of their pages whatever share of the
    bytes these are: to pass over values takes less than to make them."""
    return rows * _FEW < total


def clearly(rows: float) -> int:
    """How many rows a guess counts for where it alone says that they are few: several times as
    many, since guesses are often too low."""
    return round(_CLEARLY * rows)


def has_few_rows(plan: SlicePlan, total: int) -> bool:
    """Whether so few rows of a slice match, by bounds that hold, or clearly so by what queries of
    the same shape had."""
    expected = plan.expected
    if expected is None:
        return False
    learnt = expected.before_history is not None
    few = learnt and are_few(clearly(expected.rows.expected), total)
    return few or are_few(expected.rows.most, total)


def cheapest_reading(
    plan: RowPlan, settings: Settings, *, remote: bool, rows: int | None = None
) -> Reading:
    """What costs least: the bytes to read, those of single pages dearer by `read.scan_fraction`,
    since picking many rows out of them is slower; and what requests to a remote store take.

    Args:
        rows: How many rows are picked; many if that is not known.
    """
    few = rows is not None and are_few(rows, plan.group_rows)
    pages, more = plan.page_bytes / (1 if few else settings.read.scan_fraction), plan.chunk_bytes
    if remote:
        request = request_bytes(load_constants(settings))
        pages, more = pages + plan.ranges * request, more + _OPENING * request
    if pages <= more:
        return Reading.PAGES
    return Reading.ROW_GROUPS if plan.chunk_bytes < plan.total_bytes else Reading.FILE
