"""The decision that is taken at run time, per slice: row ids are known, pages are not yet read."""

from hudi_index_parquet import RowPlan

from hudi_index_service.config import Settings


def whole_file_is_cheaper(plan: RowPlan, settings: Settings) -> bool:
    """Whether reading the base file's columns whole costs less than the pages that hold the rows:
    when the pages are more than `read.scan_fraction` of the columns' bytes, since decoding page by
    page is slower per byte."""
    return plan.page_bytes > settings.read.scan_fraction * plan.total_bytes
