"""Finds the rows of a base file that conditions on text leave, before any other column is read.
The values of few rows are taken from the dictionaries, so that the column is not read again.

Parquet writers store a text column with few distinct values as a dictionary, and each row as a
number of a value in it. So a condition is checked once for each distinct value, and no text is made
for each row.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hudi_index_parquet import Footer, ParquetReadError

from hudi_index_service.arrow import FALSE, as_numbers, as_truths, numbers_array
from hudi_index_service.hudi.files.parquet_file import refusals_named, row_source, unreadable
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.optimizer.cost.constants import KEPT_VALUES
from hudi_index_service.optimizer.decide import (
    are_worth_picking,
    distinct_values_pay,
    may_read_distinct_values,
)
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import And, Predicate
from hudi_index_service.read.base_file.row_reader import RowIds, positions
from hudi_index_service.read.base_file.value_bounds import stored_type
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)

_MOST_ROWS = 4 * 2**20  # at a time; four bytes each


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """The dictionaries of one base file.

    Attributes:
        footer: The base file's footer.
        columns: The columns that the query needs, in the table's types.
        statistics: Counts the bytes read, and the rows that are ruled out as checked.
    """

    storage: Storage
    base_file: BaseFile
    footer: Footer
    columns: pa.Schema
    statistics: SliceStatistics

    def rows(self, predicate: Predicate, rows: RowIds | range) -> "RowsLeft":
        """The given rows without those for which a conjunct on a single text column is not TRUE, as
        far as checking this by distinct values pays.

        Raises:
            FileNotFoundError: the base file is gone.
            PermissionDenied, StorageFailed: it cannot be read.
        """
        left = RowsLeft(rows, {})
        for conjunct in predicate.operands if isinstance(predicate, And) else (predicate,):
            if not may_read_distinct_values(len(left.rows)):
                break
            column = self._text_column(conjunct)
            if column is None:
                continue
            try:
                matching = self._matching(conjunct, column, left.rows)
            except ParquetReadError as error:
                # The row reader meets it again, and leaves the file to Arrow.
                log.info("The dictionaries of %s are not used: %s", self.base_file.path, error)
                break
            if matching is not None:
                self.statistics.rows_checked += len(left.rows) - len(matching.rows)
                left = left.narrowed(matching)
        return left

    def _text_column(self, conjunct: Predicate) -> pa.Field | None:
        """The only column of a conjunct, if it is text that the file stores as the table does."""
        names = list(conjunct.columns())
        if len(names) != 1 or names[0] not in self.columns.names:
            return None
        column = self.columns.field(names[0])
        same = stored_type(self.footer.schema, names) == column.type
        return column if same and pa.types.is_string(column.type) else None

    def _matching(
        self, conjunct: Predicate, column: pa.Field, rows: RowIds | range
    ) -> "RowsLeft | None":
        """The rows for which a conjunct is TRUE; None if finding them does not pay, or if the file
        does not store the column so."""
        known: list[tuple[pa.Array, npt.NDArray[np.bool_]]] = []  # the last dictionary

        def truths(values: pa.Array) -> npt.NDArray[np.bool_]:
            """Whether the conjunct is TRUE, of each value, and at the end of NULL."""
            if not known or not known[0][0].equals(values):
                with_null = pa.concat_arrays([values, pa.nulls(1, column.type)])
                batch = pa.RecordBatch.from_arrays([with_null], names=[column.name])
                known[:] = [(values, as_truths(evaluate(conjunct, batch).fill_null(FALSE)))]
            return known[0][1]

        if self._found(column, rows[:1], truths) is None:
            return None
        (values, matches) = known[0]
        if not distinct_values_pay(int(matches.sum()), len(values)):
            return None
        found = self._found(column, rows, truths)
        return found if found and are_worth_picking(len(found.rows), len(rows)) else None

    def _found(
        self,
        column: pa.Field,
        rows: RowIds | range,
        truths: Callable[[pa.Array], npt.NDArray[np.bool_]],
    ) -> "RowsLeft | None":
        """The rows whose values `truths` chooses; None if the file does not store the column so."""
        found = [np.empty(0, dtype=np.int64)]
        values: list[pa.Array | None] = []
        for start in range(0, len(rows), _MOST_ROWS):
            portion = rows[start : start + _MOST_ROWS]
            try:
                with refusals_named(self.base_file.path):
                    matching = self.footer.matching(
                        row_source(self.storage, self.base_file.path),
                        portion,
                        column.name,
                        lambda values: truths(values).tobytes(),
                        most_values=KEPT_VALUES,
                        size=self.base_file.size,
                    )
            except FileNotFoundError:
                raise
            except OSError as error:
                raise unreadable(self.base_file.path, error) from error
            if matching is None:
                return None
            of_portion, of_rows, did = matching
            self.statistics.bytes_read += did.bytes
            found.append(as_numbers(of_portion))
            values.append(of_rows)
        known = [each for each in values if each is not None]
        are_all_known = bool(known) and len(known) == len(values)
        by_name = {column.name: pa.concat_arrays(known)} if are_all_known else {}
        return RowsLeft(np.concatenate(found), by_name)


@dataclass(frozen=True, slots=True)
class RowsLeft:
    """Rows that may match.

    Attributes:
        values: Columns whose values of these rows are known.
    """

    rows: RowIds | range
    values: Mapping[str, pa.Array]

    def narrowed(self, matching: "RowsLeft") -> "RowsLeft":
        """Those rows that are among these."""
        values = dict(matching.values)
        if self.values:
            places = _places(self.rows, positions(matching.rows))
            values = {name: each.take(places) for name, each in self.values.items()} | values
        return RowsLeft(matching.rows, values)


def _places(rows: RowIds | range, some: RowIds) -> pa.Array:
    """The places of some of the rows among them."""
    places = some - rows.start if isinstance(rows, range) else np.searchsorted(rows, some)
    return numbers_array(places)
