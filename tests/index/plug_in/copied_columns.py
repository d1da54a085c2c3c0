"""An index type from another package: a copy of the columns, evaluated with Spark's semantics. It
implements the minimum of the contract and none of the optional methods."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from pyroaring import BitMap

from hudi_index_service.errors import ColumnNotIndexable, EntryInvalid, IndexDefinitionInvalid
from hudi_index_service.index.contract import (
    Answer,
    BuiltIndex,
    ColumnSpec,
    ColumnStatistics,
    IndexReader,
    IndexType,
    PackedIndex,
    StoredColumn,
)
from hudi_index_service.index.packed_file import read_member
from hudi_index_service.index.stored_column import parse_arrow_type
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import (
    And,
    ArrayContains,
    IsNull,
    Match,
    Not,
    Predicate,
)

FILE = "columns"


class CopiedColumns(IndexType):
    """See `hudi_index_service.index.contract.IndexType`."""

    name = "copied"
    contract = 2
    version = 1

    def fields(self, column: str, type: pa.DataType, options: Mapping[str, str]) -> tuple[str, ...]:
        for option in options:
            raise IndexDefinitionInvalid(f"Column {column}: copied has no option {option!r}.")
        try:
            parse_arrow_type(str(type))
        except EntryInvalid as error:
            raise ColumnNotIndexable(f"Column {column}: copied cannot hold type {type}.") from error
        return ("copy",)

    def builder(
        self,
        columns: Sequence[ColumnSpec],
        folder: Path,
        *,
        memory_mb: int,
        part: int = 0,
        threads: int = 1,
    ) -> "Builder":
        return Builder(pa.schema([(spec.name, spec.type) for spec in columns]), folder / FILE)

    def combine(self, parts: Sequence[PackedIndex], folder: Path) -> dict[str, Path]:
        _write(pa.concat_tables(map(_read, parts)), folder / FILE)
        return {FILE: folder / FILE}

    def answer(self, leaf: Predicate, columns: Sequence[StoredColumn]) -> Answer:
        stored = {column.name: column.type for column in columns}
        is_exact = all(_is_known(each, stored) for each in _conjuncts(leaf))
        return Answer.EXACT if is_exact else Answer.NONE

    def verify(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> list[str]:
        rows = len(_read(index))
        return [] if rows == index.rows else [f"it holds {rows} rows, not {index.rows}."]

    def open(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> "Reader":
        return Reader(_read(index))


class Builder:
    def __init__(self, schema: pa.Schema, path: Path) -> None:
        self._schema = schema
        self._path = path
        self._batches: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def finish(self) -> BuiltIndex:
        data = pa.Table.from_batches(self._batches, self._schema)
        _write(data, self._path)
        nulls = {name: data.column(name).null_count for name in self._schema.names}
        statistics = {name: ColumnStatistics(null_count=count) for name, count in nulls.items()}
        return BuiltIndex({FILE: self._path}, len(data), statistics, {"pyarrow": pa.__version__})

    def abort(self) -> None:
        self._batches.clear()


class Reader(IndexReader):
    def __init__(self, data: pa.Table) -> None:
        self._data = data

    def row_ids(self, leaf: Predicate) -> BitMap:
        truth = evaluate(leaf, self._data).fill_null(False)
        return BitMap(np.flatnonzero(truth.to_numpy(zero_copy_only=False)).tolist())

    def estimate(self, leaf: Predicate) -> int:
        return len(self.row_ids(leaf))

    def close(self) -> None:
        pass


def _conjuncts(leaf: Predicate) -> Sequence[Predicate]:
    return leaf.operands if type(leaf) is And else (leaf,)


def _is_known(leaf: Predicate, stored: Mapping[str, pa.DataType]) -> bool:
    inner = leaf.operand if isinstance(leaf, Not) else leaf
    if isinstance(inner, And | Match) or not inner.columns() <= stored.keys():
        return False
    of_arrays = any(pa.types.is_list(stored[name]) for name in inner.columns())
    return isinstance(inner, IsNull) or of_arrays == isinstance(inner, ArrayContains)


def _write(data: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, data.schema) as file:
        file.write_table(data)


def _read(index: PackedIndex) -> pa.Table:
    return pa.ipc.open_file(read_member(index, FILE)).read_all()
