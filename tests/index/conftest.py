"""Indexes built from Arrow data alone, without a table or Spark."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service.index.contract import (
    Answer,
    ColumnSpec,
    IndexReader,
    IndexType,
    PackedIndex,
    StoredColumn,
)
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.packed_file import FileRange, pack
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import And, Predicate
from tests.index.plug_in import COPIED_COLUMNS, install


@dataclass
class IndexedData:
    """Rows, their packed index, and a reader of it."""

    kind: IndexType
    data: pa.Table
    index: PackedIndex
    columns: tuple[StoredColumn, ...]
    reader: IndexReader

    def answer(self, leaf: Predicate) -> Answer:
        """What the index type promises for a leaf."""
        return self.kind.answer(leaf, self.columns)

    def check(self, leaf: Predicate) -> Answer:
        """Checks the index against its promise: its rows, and those for which the leaf is TRUE."""
        promised = self.answer(leaf)
        if promised is Answer.NONE:
            return promised
        expected = rows_where(leaf, self.data)
        found = self.reader.row_ids(leaf)
        if promised is Answer.EXACT:
            assert found == expected, f"{leaf}: {list(found)} instead of {list(expected)}"
        else:
            assert found >= expected, f"{leaf}: misses {list(expected - found)}"
        assert 0 <= self.reader.estimate(leaf) <= len(self.data)
        self._check_bounds(leaf, len(expected))
        self._check_shortcuts(leaf, expected)
        return promised

    def _check_bounds(self, leaf: Predicate, rows: int) -> None:
        bounds = self.reader.row_bounds(leaf)
        if bounds is None:
            assert self.kind.name == "copied", "the service's own types give bounds"
            return
        least, most = bounds
        assert 0 <= least <= rows <= most <= len(self.data), f"{leaf}: {least} to {most}"

    def _check_shortcuts(self, leaf: Predicate, expected: BitMap) -> None:
        """The candidates include every matching row."""
        for most in (None, len(self.data) // 3, 0):
            candidates = self.reader.candidates(leaf, most)
            if candidates is None:
                assert most is not None, leaf
            else:
                assert candidates >= expected, f"{leaf}: misses {list(expected - candidates)}"
        if isinstance(leaf, And):
            return
        for rows in (BitMap(range(len(self.data))), expected, BitMap(range(0, len(self.data), 3))):
            left, answer = self.reader.narrowed(leaf, rows)
            assert expected & rows <= left <= rows, leaf
            if answer is Answer.EXACT:
                assert left == expected & rows, leaf
            if answer is Answer.NONE:
                assert left == rows, leaf


def rows_where(leaf: Predicate, data: pa.Table) -> BitMap:
    """The rows for which Spark's semantics makes the leaf TRUE."""
    truth = evaluate(leaf, data).fill_null(False)
    return BitMap(np.flatnonzero(truth.to_numpy(zero_copy_only=False)).tolist())


BuildIndex = Callable[..., IndexedData]


@pytest.fixture(scope="session")
def build_index(tmp_path_factory: pytest.TempPathFactory) -> BuildIndex:
    """Builds and opens a Lucene index of a table, `batch_rows` rows at a time."""
    return building(index_type("lucene"), tmp_path_factory.mktemp("lucene"))


@pytest.fixture(scope="session")
def build_btree(tmp_path_factory: pytest.TempPathFactory) -> BuildIndex:
    """Likewise a B+ tree."""
    return building(index_type("btree"), tmp_path_factory.mktemp("btree"))


@pytest.fixture(scope="session")
def copied_columns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of an index type from another package, which is installed here."""
    folder = tmp_path_factory.mktemp("site-packages")
    install(folder, "copied", COPIED_COLUMNS, class_name="CopiedColumns")
    sys.path.insert(0, str(folder))
    yield "copied"
    sys.path.remove(str(folder))
    index_type.cache_clear()


@pytest.fixture(scope="session", params=["btree", "lucene", "copied"])
def build_any(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, copied_columns: str
) -> BuildIndex:
    """Like `build_index`, for each index type that needs no server."""
    return building(index_type(request.param), tmp_path_factory.mktemp(request.param))


def building(kind: IndexType, folder: Path) -> BuildIndex:
    """Builds indexes of one type in a folder."""
    numbers = count()

    def build(
        data: pa.Table,
        *,
        batch_rows: int = 1000,
        memory_mb: int = 32,
        threads: int = 1,
        options: Mapping[str, Mapping[str, str]] | None = None,
        key: Sequence[str] = (),
    ) -> IndexedData:
        def fields(field: pa.Field) -> tuple[str, ...]:
            if field.name in key:
                return (kind.key_field(field.name, field.type, key),)
            return kind.fields(field.name, field.type, (options or {}).get(field.name, {}))

        specs = [ColumnSpec(field.name, field.type, fields(field)) for field in data.schema]
        work = folder / str(next(numbers))
        work.mkdir()
        builder = kind.builder(specs, work, memory_mb=memory_mb, threads=threads)
        for batch in data.to_batches(max_chunksize=batch_rows):
            builder.add(batch)
        built = builder.finish()
        assert built.rows == len(data)
        packed_path = Path(f"{work}.pack")
        files = kind.store(built.files, folder.as_uri(), packed_path.name)
        index = packed_index(files, packed_path, built.rows)
        columns = tuple(StoredColumn.of(spec, built.statistics[spec.name]) for spec in specs)
        return IndexedData(kind, data, index, columns, kind.open(index, columns))

    return build


def packed_index(
    files: Mapping[str, Path | FileRange | bytes], path: Path, rows: int, *, first: str = ""
) -> PackedIndex:
    """Packs the files of an index into one."""
    return pack(files, path, first=first).at(path, rows=rows)


def joined(
    parts: Sequence[IndexedData], folder: Path, columns: tuple[StoredColumn, ...]
) -> IndexedData:
    """The index of parts together, with these statistics of its columns."""
    kind, data = parts[0].kind, pa.concat_tables(part.data for part in parts)
    work = folder / "joined"
    work.mkdir()
    files = kind.combine([part.index for part in parts], work)
    index = packed_index(files, folder / "joined.pack", len(data))
    return IndexedData(kind, data, index, columns, kind.open(index, columns))
