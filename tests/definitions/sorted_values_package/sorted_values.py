"""A second index type, as another package would provide it: the sorted values of integer columns
with their row ids, in NumPy files."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from hudi_index_service.errors import ColumnNotIndexable, IndexDefinitionInvalid
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
from hudi_index_service.predicate.expression import Compare, IsNull, Not, Operator, Predicate


class SortedValues(IndexType):
    """See `hudi_index_service.index.contract.IndexType`."""

    name = "sorted"
    contract = 2
    version = 1

    def fields(self, column: str, type: pa.DataType, options: Mapping[str, str]) -> tuple[str, ...]:
        if not pa.types.is_signed_integer(type):
            raise ColumnNotIndexable(f"Column {column} has type {type}: no integer.")
        if set(options) - {"distinct"}:
            raise IndexDefinitionInvalid(f"Column {column}: sorted knows the option distinct only.")
        return ("sorted", "distinct") if options else ("sorted",)

    def builder(
        self,
        columns: Sequence[ColumnSpec],
        folder: Path,
        *,
        memory_mb: int,
        part: int = 0,
        threads: int = 1,
    ) -> "_Builder":
        return _Builder(columns, folder)

    def combine(self, parts: Sequence[PackedIndex], folder: Path) -> dict[str, Path]:
        starts = np.cumsum([0, *(part.rows for part in parts)])
        names = {unquote(name.partition("-")[2][: -len(".npy")]) for name in parts[0].members}
        files: dict[str, Path] = {}
        for name in names:
            values, rows, nulls = (
                [_read(part, name, kind) for part in parts] for kind in ("values", "rows", "nulls")
            )
            all_values = np.concatenate(values)
            order = np.argsort(all_values, kind="stable")
            all_rows = np.concatenate([r + start for r, start in zip(rows, starts, strict=False)])
            all_nulls = np.concatenate([n + start for n, start in zip(nulls, starts, strict=False)])
            files |= _written(folder, name, all_values[order], all_rows[order], all_nulls)
        return files

    def answer(self, leaf: Predicate, columns: Sequence[StoredColumn]) -> Answer:
        inner = leaf.operand if isinstance(leaf, Not) and isinstance(leaf.operand, IsNull) else leaf
        known = isinstance(inner, Compare | IsNull) and inner.columns() <= {c.name for c in columns}
        return Answer.EXACT if known else Answer.NONE

    def verify(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> list[str]:
        return []

    def open(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> "_Reader":
        return _Reader(index)


class _Builder:
    def __init__(self, columns: Sequence[ColumnSpec], folder: Path) -> None:
        self._names = [column.name for column in columns]
        self._folder = folder
        self._batches: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def finish(self) -> BuiltIndex:
        rows = sum(batch.num_rows for batch in self._batches)
        files: dict[str, Path] = {}
        statistics = {}
        for position, name in enumerate(self._names):
            column = pa.chunked_array([batch.column(position) for batch in self._batches])
            is_null = pc.is_null(column).to_numpy()
            values = column.drop_null().cast(pa.int64()).to_numpy()
            order = np.argsort(values, kind="stable")
            row_ids = np.flatnonzero(~is_null)[order]
            files |= _written(self._folder, name, values[order], row_ids, np.flatnonzero(is_null))
            statistics[name] = ColumnStatistics(null_count=int(is_null.sum()))
        return BuiltIndex(files, rows, statistics, {"numpy": np.__version__})

    def abort(self) -> None:
        self._batches.clear()


class _Reader(IndexReader):
    def __init__(self, index: PackedIndex) -> None:
        self._index = index

    def row_ids(self, leaf: Predicate) -> BitMap:
        match leaf:
            case Not(IsNull(column)):
                return BitMap(_read(self._index, column.name, "rows"))
            case IsNull(column):
                return BitMap(_read(self._index, column.name, "nulls"))
            case Compare(column, operator, value):
                values, rows = (_read(self._index, column.name, k) for k in ("values", "rows"))
                below = int(np.searchsorted(values, value.as_py(), "left"))
                upto = int(np.searchsorted(values, value.as_py(), "right"))
                match operator:
                    case Operator.EQ | Operator.EQ_NULL_SAFE:
                        return BitMap(rows[below:upto])
                    case Operator.NE:
                        return BitMap(rows[:below]) | BitMap(rows[upto:])
                    case Operator.LT:
                        return BitMap(rows[:below])
                    case Operator.LE:
                        return BitMap(rows[:upto])
                    case Operator.GT:
                        return BitMap(rows[upto:])
                    case Operator.GE:
                        return BitMap(rows[below:])
        raise AssertionError(leaf)

    def estimate(self, leaf: Predicate) -> int:
        return len(self.row_ids(leaf))

    def close(self) -> None:
        pass


def _written(
    folder: Path, column: str, values: np.ndarray, rows: np.ndarray, nulls: np.ndarray
) -> dict[str, Path]:
    files = {}
    for kind, array in (("values", values), ("rows", rows), ("nulls", nulls)):
        file = _file_name(column, kind)
        files[file] = folder / file
        np.save(files[file], array.astype(np.int64 if kind == "values" else np.uint32))
    return files


def _read(index: PackedIndex, column: str, kind: str) -> np.ndarray:
    member = read_member(index, _file_name(column, kind))
    return np.asarray(np.load(BytesIO(member), allow_pickle=False))


def _file_name(column: str, kind: str) -> str:
    return f"{kind}-{quote(column, safe='')}.npy"
