"""The decision that is taken at run time, per slice: row ids are known, pages are not yet read."""

from enum import Enum

from hudi_index_parquet import RowPlan

from hudi_index_service.config import Settings

REQUEST_BYTES = 128 * 1024
"""What a remote store could have sent in the time that one more request takes, of ten at once."""

_OPENING = 40 * REQUEST_BYTES  # for more than pages, the file is opened: four requests in a row
PRUNING_BYTES = _OPENING
"""Of a remote file that a scan would read, before its page indexes are asked for."""

_FEW = 16  # of so many rows one: nearly all values of a page are passed over, none is made


class Reading(Enum):
    """How much of a base file is read for some of its rows."""

    PAGES = "pages"  #: the pages that hold the rows
    ROW_GROUPS = "row groups"  #: the columns whole, of the row groups that hold the rows
    FILE = "file"  #: the columns whole


def cheapest_reading(
    plan: RowPlan, settings: Settings, *, remote: bool, rows: int | None = None
) -> Reading:
    """What costs least: the bytes to read, those of single pages dearer by `read.scan_fraction`,
    since picking many rows out of them is slower; and what requests to a remote store take.

    Args:
        rows: How many rows are picked; many if that is not known.
    """
    few = rows is not None and rows * _FEW < plan.group_rows
    pages, more = plan.page_bytes / (1 if few else settings.read.scan_fraction), plan.chunk_bytes
    if remote:
        pages, more = pages + plan.ranges * REQUEST_BYTES, more + _OPENING
    if pages <= more:
        return Reading.PAGES
    return Reading.ROW_GROUPS if plan.chunk_bytes < plan.total_bytes else Reading.FILE
