"""How many pages hold some of a file's rows."""

from pyroaring import BitMap

PAGE_ROWS = 20_000
"""Rows of a page as Hudi writes it (`parquet.page.row.count.limit`)."""


def pages_holding(rows: float, pages: float) -> float:
    """The pages, of `pages`, that are expected to hold `rows` rows that lie anywhere.

    For k rows in m pages that is m(1 - (1 - 1/m)^k) (A. F. Cárdenas, *Analysis and Performance of
    Inverted Data Base Structures*, CACM 18(5), 1975). It takes rows as drawn with replacement;
    without (S. B. Yao, *Approximating Block Accesses in Database Organizations*, CACM 20(4), 1977)
    it is hardly more where a page holds thousands of rows. Rows that lie together are in fewer.
    """
    if rows <= 0:
        return 0.0
    if pages <= 1:
        return min(rows, 1.0) * pages
    return float(pages * (1 - (1 - 1 / pages) ** rows))


def pages_of(rows: BitMap) -> int:
    """The pages that hold known rows."""
    if not rows:
        return 0
    pages, last = 1, rows.max()
    first = rows.min()
    while first // PAGE_ROWS < last // PAGE_ROWS:
        first = rows.next_set_bit((first // PAGE_ROWS + 1) * PAGE_ROWS)
        pages += 1
    return pages
