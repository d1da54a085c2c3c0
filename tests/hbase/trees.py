"""Indexes built from Arrow data and stored in HBase, without a table and without Spark."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hudi_index_hbase import HBaseIndexType
from hudi_index_hbase.reader import HBaseReader
from hudi_index_hbase.server import HBaseServer, server_of
from hudi_index_service.config import HBaseSettings
from hudi_index_service.index.contract import BuiltIndex, ColumnSpec, PackedIndex, StoredColumn
from hudi_index_service.index.packed_file import BLOCK_SIZE, pack

TABLE = "file:///data/messages"


def numbers(rows: int, *, step: int = 1) -> pa.Table:
    """Unique numbers, a text with a hundred distinct values, and numbers with NULLs."""
    return pa.table(
        {
            "n": pa.array([row * 7919 % rows * step for row in range(rows)]),
            "text": pa.array([f"text {row % 100:03}" for row in range(rows)]),
            "some": pa.array([None if row % 4 == 0 else row // 8 for row in range(rows)]),
        }
    )


@dataclass
class BuiltTree:
    """A tree as built, not stored yet."""

    kind: HBaseIndexType
    server: HBaseServer
    data: pa.Table
    folder: Path
    built: BuiltIndex

    def stored(self, path: str) -> tuple[PackedIndex, tuple[StoredColumn, ...]]:
        """Stores the tree for a data file; returns the arguments to open a reader with."""
        packed_path = self.folder / path.replace("/", "-")
        packed = pack(self.kind.store(self.built.files, TABLE, path), packed_path)
        index = PackedIndex(
            packed_path,
            packed.members,
            packed.length,
            BLOCK_SIZE,
            packed.block_crc32,
            self.built.rows,
        )
        columns = tuple(
            StoredColumn.of(ColumnSpec(f.name, f.type, ("key",)), self.built.statistics[f.name])
            for f in self.data.schema
        )
        return index, columns

    def open(self, path: str) -> HBaseReader:
        """Stores the tree and opens it."""
        index, columns = self.stored(path)
        reader = self.kind.open(index, columns)
        assert isinstance(reader, HBaseReader)
        return reader


def tree_of(data: pa.Table, folder: Path, settings: HBaseSettings) -> BuiltTree:
    """Builds a tree in a new folder."""
    kind = HBaseIndexType(settings)
    folder.mkdir()
    specs = [ColumnSpec(f.name, f.type, kind.fields(f.name, f.type, {})) for f in data.schema]
    builder = kind.builder(specs, folder, memory_mb=32)
    for batch in data.to_batches(max_chunksize=5_000):
        builder.add(batch)
    return BuiltTree(kind, server_of(settings), data, folder, builder.finish())
