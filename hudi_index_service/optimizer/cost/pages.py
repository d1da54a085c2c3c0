"""Computes the number of pages that hold some of a file's rows."""

from pyroaring import BitMap

PAGE_ROWS = 20_000
"""Rows per page as Hudi writes it (`parquet.page.row.count.limit`)."""


def pages_holding(rows: float, pages: float) -> float:
    """The expected number of pages, out of `pages`, that hold `rows` randomly placed rows.

    For k rows in m pages this is m(1 - (1 - 1/m)^k) (A. F. Cárdenas, *Analysis and Performance of
    Inverted Data Base Structures*, CACM 18(5), 1975), which assumes rows drawn with replacement.
    Without replacement (S. B. Yao, *Approximating Block Accesses in Database Organizations*, CACM
    20(4), 1977) the number is hardly greater if a page holds thousands of rows. Clustered rows are
    in fewer pages.
    """
    if rows <= 0:
        return 0.0
    if pages <= 1:
        return min(rows, 1.0) * pages
    return float(pages * (1 - (1 - 1 / pages) ** rows))


def share_of_pages(rows: float, total: int) -> float:
    """The expected share of the pages of `total` rows that hold `rows` randomly placed ones."""
    pages = max(1.0, total / PAGE_ROWS)
    return pages_holding(rows, pages) / pages


def pages_of(rows: BitMap) -> int:
    """The number of pages that hold the given rows."""
    if not rows:
        return 0
    pages, last = 1, rows.max()
    first = rows.min()
    while first // PAGE_ROWS < last // PAGE_ROWS:
        first = rows.next_set_bit((first // PAGE_ROWS + 1) * PAGE_ROWS)
        pages += 1
    return pages
