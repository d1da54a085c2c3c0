"""Finds the row ids that the column index of a base file leaves, for leaves that no index answers
(RFC-51's process A).

The column index is read from the base file on first use, by a small read per column, and kept with
the open entry. It is not stored in the entry, which holds no values of columns that are not
indexed.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hudi_index_parquet import Footer, ParquetReadError
from pyroaring import BitMap

from hudi_index_service.columns import column_path
from hudi_index_service.hudi.files.parquet_file import refusals_named
from hudi_index_service.predicate.bounds import ValueBounds, may_match
from hudi_index_service.predicate.expression import BoundColumn, Predicate
from hudi_index_service.read.base_file.value_bounds import (
    is_comparable,
    leaf_columns,
    stored_type,
    value_bounds,
)
from hudi_index_service.read.row_ids import Bounds

if TYPE_CHECKING:
    from hudi_index_parquet import Fetch

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PageBounds:
    """Bounds of the columns of one base file, page by page, read on demand.

    Attributes:
        footer: The base file's footer.
        source: The base file, of `size` bytes.
    """

    footer: Footer
    source: "str | Fetch"
    size: int
    _by_column: dict[BoundColumn, list[tuple[int, int, ValueBounds]]] = field(default_factory=dict)

    def rows(self, leaf: Predicate) -> Bounds:
        """The rows of the pages where the leaf may be TRUE; everything if no page is ruled out.

        Raises:
            FileNotFoundError: the base file is gone.
            PermissionDenied, StorageFailed: it cannot be read.
        """
        columns = leaf_columns(leaf)
        if len(columns) != 1:
            return Bounds.unanswered()
        (column,) = columns
        rows, any_excluded = BitMap(), False
        for start, stop, bounds in self._bounds(column):
            if may_match(leaf, {column: bounds}.__getitem__):
                rows.add_range(start, stop)
            else:
                any_excluded = True
        if not any_excluded:
            return Bounds.unanswered()
        return Bounds.among(rows)

    def is_at_hand(self, leaf: Predicate) -> bool:
        """Whether `rows` needs no request to a remote store."""
        return isinstance(self.source, str) or leaf_columns(leaf) <= self._by_column.keys()

    def _bounds(self, column: BoundColumn) -> list[tuple[int, int, ValueBounds]]:
        """Ranges of rows with the column's bounds; empty if no bounds are known."""
        ranges = self._by_column.get(column)
        if ranges is None:
            path = column_path(column.name)
            stored = stored_type(self.footer.schema, path)
            ranges = self._read(path) if is_comparable(stored, column.type) else []
            self._by_column[column] = ranges
        return ranges

    def _read(self, path: Sequence[str]) -> list[tuple[int, int, ValueBounds]]:
        try:
            with refusals_named(str(self.source)):
                pages = self.footer.bounds(self.source, path, size=self.size)
        except ParquetReadError as error:
            log.warning("The column index of %s is not used: %s.", ".".join(path), error)
            return []
        ranges = []
        for page in pages or []:
            rows, (least, greatest) = page.stop - page.start, page.range or (None, None)
            bounds = value_bounds(page.nulls, rows, least, greatest, nested=len(path) > 1)
            ranges.append((page.start, page.stop, bounds))
        return ranges
