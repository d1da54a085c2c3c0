"""Finds the rows of a base file that conditions on text leave, before any other column is read.

Parquet writers store a text column with few distinct values as a dictionary, and each row as a
number of a value in it. So a condition is checked once for each distinct value, and no text is made
for each row.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hudi_index_parquet import Footer, ParquetReadError

from hudi_index_service.arrow import FALSE, as_numbers, as_truths
from hudi_index_service.hudi.files.parquet_file import refusals_named
from hudi_index_service.optimizer.decide import distinct_values_pay, may_read_distinct_values
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import And, Predicate
from hudi_index_service.read.base_file.row_reader import RowIds
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
        """The rows for which a conjunct is TRUE; all if finding them does not pay, or if the file
        does not store the column so."""
        pays = False

        def truths(values: pa.Array) -> bytes:
            """Whether the conjunct is TRUE, of each value, and at the end of NULL."""
            nonlocal pays
            with_null = pa.concat_arrays([values, pa.nulls(1, column.type)])
            batch = pa.RecordBatch.from_arrays([with_null], names=[column.name])
            matches = as_truths(evaluate(conjunct, batch).fill_null(FALSE))
            pays = distinct_values_pay(int(matches.sum()), len(values))
            return matches.tobytes()

        found = self._found(column, rows[:1], truths)
        if found is not None and pays:
            found = self._found(column, rows, truths)
        return rows if found is None or not pays else found

    def _found(
        self,
        column: pa.Field,
        rows: RowIds | range,
        truths: Callable[[pa.Array], bytes],
    ) -> RowIds | None:
        found = [np.empty(0, dtype=np.int64)]
        for start in range(0, len(rows), _MOST_ROWS):
            portion = rows[start : start + _MOST_ROWS]
            with refusals_named(str(self.source)):
                matching = self.footer.matching(
                    self.source, portion, column.name, truths, size=self.size
                )
            if matching is None:
                return None
            self.statistics.bytes_read += matching[1].bytes
            found.append(as_numbers(matching[0]))
        return np.concatenate(found)
