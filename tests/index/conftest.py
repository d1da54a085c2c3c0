"""Indexes built from Arrow data alone: no table, no Spark."""

import sys
from collections.abc import Callable, Iterator, Mapping
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
from hudi_index_service.index.packed_file import BLOCK_SIZE, pack
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import And, Predicate
from tests.index.plug_in import COPIED_COLUMNS, install


@dataclass
class IndexedData:
    """Rows, their packed index, and the reader that answers from it."""

    kind: IndexType
    data: pa.Table
    index: PackedIndex
    columns: tuple[StoredColumn, ...]
    reader: IndexReader

    def answer(self, leaf: Predicate) -> Answer:
        """What the index type promises for a leaf."""
        return self.kind.answer(leaf, self.columns)

    def check(self, leaf: Predicate) -> Answer:
        """Holds the index to what it promises: its rows against those that make the leaf TRUE."""
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
        self._check_shortcuts(leaf, expected, found)
        return promised

    def has(self, method: str) -> bool:
        """Whether the reader has a method that it may leave out; the service's own leave out none,
        so that no check of theirs is passed over."""
        found = hasattr(self.reader, method)
        own = self.kind.name in ("btree", "hbase", "lucene")
        assert found or not own, f"{self.kind.name}: {method}"
        return found

    def _check_bounds(self, leaf: Predicate, rows: int) -> None:
        if self.has("row_bounds"):
            least, most = self.reader.row_bounds(leaf)
            assert 0 <= least <= rows <= most <= len(self.data), f"{leaf}: {least} to {most}"

    def _check_shortcuts(self, leaf: Predicate, expected: BitMap, found: BitMap) -> None:
        """No row is missing among the candidates, and a sample has none that is not there."""
        if not all(map(self.has, ("candidates", "sample", "narrowed"))):
            return
        for most in (None, len(self.data) // 3, 0):
            candidates = self.reader.candidates(leaf, most)
            if candidates is None:
                assert most is not None, leaf
            else:
                assert candidates >= expected, f"{leaf}: misses {list(expected - candidates)}"
        for most in (1, 7, 1000):
            some = self.reader.sample(leaf, most)
            assert some <= found, f"{leaf}: {list(some - found)} do not belong to it"
            assert len(some) <= most, leaf
        if isinstance(leaf, And):
            return
        for rows in (BitMap(range(len(self.data))), expected, BitMap(range(0, len(self.data), 3))):
            left, worth = self.reader.narrowed(leaf, rows)
            assert expected & rows <= left <= rows, leaf
            if worth is Answer.EXACT:
                assert left == expected & rows, leaf
            if worth is Answer.NONE:
                assert left == rows, leaf


def rows_where(leaf: Predicate, data: pa.Table) -> BitMap:
    """The rows for which Spark's semantics makes the leaf TRUE."""
    truth = evaluate(leaf, data).fill_null(False)
    return BitMap(np.flatnonzero(truth.to_numpy(zero_copy_only=False)).tolist())


BuildIndex = Callable[..., IndexedData]


@pytest.fixture(scope="session")
def build_index(tmp_path_factory: pytest.TempPathFactory) -> BuildIndex:
    """Builds and opens a Lucene index over a table, `batch_rows` rows at a time."""
    return building(index_type("lucene"), tmp_path_factory.mktemp("lucene"))


@pytest.fixture(scope="session")
def copied_columns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of an index type that another package brings, which is installed here."""
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
    """The same of each index type that needs no server, one after the other."""
    return building(index_type(request.param), tmp_path_factory.mktemp(request.param))


def building(kind: IndexType, folder: Path) -> BuildIndex:
    """Builds indexes of one type in a folder."""
    numbers = count()

    def build(
        data: pa.Table,
        *,
        batch_rows: int = 1000,
        memory_mb: int = 32,
        options: Mapping[str, Mapping[str, str]] | None = None,
    ) -> IndexedData:
        specs = [
            ColumnSpec(
                field.name,
                field.type,
                kind.fields(field.name, field.type, (options or {}).get(field.name, {})),
            )
            for field in data.schema
        ]
        work = folder / str(next(numbers))
        work.mkdir()
        builder = kind.builder(specs, work, memory_mb=memory_mb)
        for batch in data.to_batches(max_chunksize=batch_rows):
            builder.add(batch)
        built = builder.finish()
        assert built.rows == len(data)
        packed_path = Path(f"{work}.pack")
        store = getattr(kind, "store", None)
        files = store(built.files, folder.as_uri(), packed_path.name) if store else built.files
        packed = pack(files, packed_path)
        index = PackedIndex(
            packed_path, packed.members, packed.length, BLOCK_SIZE, packed.block_crc32, built.rows
        )
        columns = tuple(
            StoredColumn(s.name, s.type, s.fields, built.statistics[s.name]) for s in specs
        )
        return IndexedData(kind, data, index, columns, kind.open(index, columns))

    return build
