"""Finds the rows of a base file that conditions on text leave, before any other column is read.

Parquet writers store a text column with few distinct values as a dictionary, and each row as a
number of a value in it. So a condition is checked once for each distinct value, and no text is made
for each row.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from hudi_index_parquet import Footer, ParquetReadError

from hudi_index_service.arrow import FALSE, as_numbers, as_truths, integer_scalar
from hudi_index_service.hudi.files.parquet_file import refusals_named
from hudi_index_service.optimizer.decide import distinct_values_pay, may_read_distinct_values
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import And, Predicate
from hudi_index_service.read.base_file.row_reader import RowIds, positions
from hudi_index_service.read.base_file.value_bounds import stored_type
from hudi_index_service.read.statistics import SliceStatistics

if TYPE_CHECKING:
    from hudi_index_parquet import Fetch

log = logging.getLogger(__name__)

_MOST_ROWS = 4 * 2**20  # at a time; four bytes each


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """The dictionaries of one base file.

    Attributes:
        footer: The base file's footer.
        columns: The columns that the query needs, in the table's types.
        source: The base file, of `size` bytes.
        statistics: Counts the bytes read, and the rows that are ruled out as checked.
    """

    footer: Footer
    columns: pa.Schema
    source: "str | Fetch"
    size: int
    statistics: SliceStatistics

    def rows(self, predicate: Predicate, rows: RowIds | range) -> RowIds | range:
        """The given rows without those for which a conjunct on a single text column is not TRUE, as
        far as checking this by distinct values pays.

        Raises:
            FileNotFoundError: the base file is gone.
            PermissionDenied, StorageFailed: it cannot be read.
        """
        for conjunct in predicate.operands if isinstance(predicate, And) else (predicate,):
            if not may_read_distinct_values(len(rows)):
                break
            column = self._text_column(conjunct)
            if column is None:
                continue
            try:
                left = self._matching(conjunct, column, rows)
            except ParquetReadError as error:
                # The row reader meets it again, and leaves the file to Arrow.
                log.info("The dictionaries of %s are not used: %s", self.source, error)
                break
            self.statistics.rows_checked += len(rows) - len(left)
            rows = left
        return rows

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
    ) -> RowIds | range:
        """The rows for which a conjunct is TRUE; all if this does not pay, or if the file does not
        store the column so."""
        first = self._read(column, positions(rows[:1]))
        if first is None:
            return rows
        matching = _truths(conjunct, column, first[0])
        if not distinct_values_pay(int(matching.sum()), len(matching)):
            return rows
        found = [np.empty(0, dtype=np.int64)]
        for start in range(0, len(rows), _MOST_ROWS):
            portion = positions(rows[start : start + _MOST_ROWS])
            arrays = self._read(column, portion)
            if arrays is None:
                return rows
            found.append(portion[_matches(conjunct, column, arrays)])
        return np.concatenate(found)

    def _read(self, column: pa.Field, rows: RowIds) -> list[pa.DictionaryArray] | None:
        with refusals_named(str(self.source)):
            found = self.footer.dictionaries(self.source, rows.data, column.name, size=self.size)
        if found is None:
            return None
        arrays, did = found
        self.statistics.bytes_read += did.bytes
        return arrays


def _matches(
    conjunct: Predicate, column: pa.Field, arrays: Sequence[pa.DictionaryArray]
) -> npt.NDArray[np.bool_]:
    """Whether the conjunct is TRUE, of each row of arrays that follow one another."""
    matches = []
    for array in arrays:
        truths = _truths(conjunct, column, array)
        of_null = integer_scalar(len(truths) - 1, array.indices.type)
        matches.append(truths[as_numbers(pc.fill_null(array.indices, of_null))])
    return np.concatenate(matches)


def _truths(
    conjunct: Predicate, column: pa.Field, array: pa.DictionaryArray
) -> npt.NDArray[np.bool_]:
    """Whether the conjunct is TRUE, of each value of a dictionary, and at the end of NULL."""
    values = pa.concat_arrays([array.dictionary, pa.nulls(1, column.type)])
    batch = pa.RecordBatch.from_arrays([values], names=[column.name])
    return as_truths(evaluate(conjunct, batch).fill_null(FALSE))
