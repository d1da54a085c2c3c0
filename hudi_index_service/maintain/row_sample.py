"""Looks up the values of a sample of a base file's rows in its entry, to compare the two."""

from collections.abc import Iterator, Sequence
from functools import partial
from random import Random

import hudi_index_parquet
import numpy as np
import pyarrow as pa
from hudi_index_parquet import ParquetReadError
from pyroaring import BitMap

from hudi_index_service.arrow import FALSE, as_truths, numbers_array
from hudi_index_service.columns import column_type, column_values, root_column, with_inner
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.hudi.files.base_file import align, read_columns
from hudi_index_service.hudi.files.parquet_file import is_broken_text, open_parquet, row_source
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import (
    Answer,
    IndexReader,
    IndexType,
    PackedIndex,
    StoredColumn,
)
from hudi_index_service.index.files.stored_values import values_footer
from hudi_index_service.index.metadata.manifest import PARQUET_METADATA
from hudi_index_service.index.metadata.requirements import indexed, stored_names
from hudi_index_service.index.packed_file import read_member
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import (
    ArrayContains,
    BoundColumn,
    Compare,
    IsNull,
    Operator,
    Predicate,
)
from hudi_index_service.storage.store import Storage

_SEED = 51
_ROWS_AT_ONCE = 65_536


class RowSample:
    """A sample of a base file's rows, with the columns of its entry.

    Columns that the table no longer has, or has with another type, are left out: no query uses
    them.

    Args:
        index: The entry's data file; its bytes have been checked.
        schema: The table's schema.
        size: Number of rows, if the file has as many.
    """

    def __init__(
        self,
        storage: Storage,
        base_file: BaseFile,
        index: PackedIndex,
        schema: pa.Schema,
        columns: Sequence[StoredColumn],
        size: int,
    ) -> None:
        self._storage = storage
        self._base_file = base_file
        self._source = row_source(storage, base_file.path)
        self._index = index
        self._all_columns = indexed(columns)
        usable = [c for c in columns if column_type(schema, c.name) == c.type]
        self._columns = indexed(usable)
        self._stored = stored_names(usable)
        roots = sorted({root_column(column.name) for column in usable})
        self._schema = pa.schema([schema.field(root) for root in roots])
        self.positions = sampled_positions(index.rows, size)
        self._at = np.array(self.positions, dtype=np.int64)

    def compare(self, kind: IndexType) -> Iterator[str]:
        """The differences between the entry and the base file.

        Raises:
            FileNotFoundError: the base file is gone.
            EntryInvalid: index bytes are damaged.
        """
        own_rows, copied_rows = (
            self.rows_with(None),
            self.rows_with(read_member(self._index, PARQUET_METADATA)),
        )
        if not _are_same(own_rows, copied_rows):
            yield "its copy of the base file's footer leads to other rows."
        own_rows = self.scanned() if own_rows is None else own_rows
        if self._stored and not self._stores(own_rows):
            yield "its stored values are not those of the base file."
        reader = kind.open(self._index, self._all_columns)
        try:
            for column in self._columns:
                yield from self._compare_column(own_rows, column, kind, reader)
        finally:
            reader.close()

    def _stores(self, rows: pa.RecordBatch) -> bool:
        """Whether the stored values of these rows are the same."""
        footer = values_footer(self._index)
        if footer is None:
            return False
        try:
            table, _ = footer.read(self._index.path, self._at.data, self._stored)
        except ParquetReadError as error:
            if is_broken_text(error):
                return True  # then they are never read
            raise EntryInvalid(f"The stored values cannot be read: {error}.") from error
        batches = table.combine_chunks().to_batches()
        stored = rows.select(self._stored)
        return _are_same(stored, batches[0] if batches else stored.slice(0, 0))

    def rows_with(self, metadata: bytes | None) -> pa.RecordBatch | None:
        """The rows, read with the base file's own footer or the entry's copy of it; None if they
        contain text that is not valid UTF-8, which Spark writes and the row reader refuses."""
        read = partial(
            hudi_index_parquet.read_rows, self._source, size=self._base_file.size, metadata=metadata
        )
        try:
            no_rows, _ = read(self._at[:0].data)
            present = [name for name in self._schema.names if name in no_rows.column_names]
            table, _ = read(self._at.data, present)
        except ParquetReadError as error:
            if is_broken_text(error):
                return None
            footer = "its own footer" if metadata is None else "the entry's copy of its footer"
            raise EntryInvalid(
                f"{self._base_file.path} cannot be read with {footer}: {error}."
            ) from error
        batches = table.combine_chunks().to_batches() if present else []
        if not batches:
            empty = [pa.nulls(len(self._at), field.type) for field in self._schema]
            return pa.RecordBatch.from_arrays(empty, names=self._schema.names)
        return align(batches[0], self._schema, source=self._base_file.path)

    def scanned(self) -> pa.RecordBatch:
        """The rows, even with invalid text; this reads the whole base file."""
        batches, start = [], 0
        with open_parquet(self._storage, self._base_file.path) as file:
            for batch in read_columns(
                file, self._schema, batch_rows=_ROWS_AT_ONCE, source=self._base_file.path
            ):
                end = start + batch.num_rows
                here = self._at[(self._at >= start) & (self._at < end)]
                batches.append(batch.take(numbers_array(here - start)))
                start = end
        (rows,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
        return rows

    def _compare_column(
        self, rows: pa.RecordBatch, column: StoredColumn, kind: IndexType, reader: IndexReader
    ) -> Iterator[str]:
        sample = BitMap(self.positions)
        for leaf in dict.fromkeys(_leaves(column, rows)):
            answer = kind.answer(leaf, self._all_columns)
            if answer is Answer.NONE:
                continue
            is_true = as_truths(evaluate(leaf, rows).fill_null(FALSE))
            expected = BitMap(np.array(self.positions, dtype=np.uint32)[is_true])
            row_ids = reader.row_ids(leaf) & sample
            missing, surplus = expected - row_ids, row_ids - expected
            if missing:
                yield f"column {column.name}: row {missing[0]} is not indexed under its value."
                return
            if surplus and answer is Answer.EXACT:
                yield f"column {column.name}: row {surplus[0]} is indexed under a wrong value."
                return


def sampled_positions(rows: int, size: int) -> list[int]:
    """The row ids to look up: half of them evenly spaced from the first to the last row, half at
    random. The same number of rows gives the same ids."""
    if rows <= size:
        return list(range(rows))
    even = np.linspace(0, rows - 1, num=max(1, size // 2), dtype=np.int64).tolist()
    positions = set(even)
    random = Random(_SEED)
    while len(positions) < size:
        positions.add(random.randrange(rows))
    return sorted(positions)


def _are_same(rows: pa.RecordBatch | None, others: pa.RecordBatch | None) -> bool:
    if rows is None or others is None:
        return rows is others
    # Compared as text: NaN equals NaN, and -0.0 differs from 0.0.
    return str(_plain(rows).to_pylist()) == str(_plain(others).to_pylist())


def _plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with dates and timestamps as stored integers: Python's types end in year 9999."""
    return rows.cast(pa.schema([(field.name, _plain_type(field.type)) for field in rows.schema]))


def _plain_type(type: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(type):
        return pa.int32() if type.bit_width == 32 else pa.int64()
    return with_inner(type, lambda field: field.with_type(_plain_type(field.type)))


def _leaves(column: StoredColumn, rows: pa.RecordBatch) -> Iterator[Predicate]:
    """The predicates that look up the rows' values in a column."""
    bound_column = BoundColumn(column.name, column.type)
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    for value in column_values(rows, column.name):
        if not value.is_valid:
            yield IsNull(bound_column)
        elif is_list:
            for element in value.values:
                if element.is_valid:
                    yield ArrayContains(bound_column, element)
        else:
            yield Compare(bound_column, Operator.EQ, value)
