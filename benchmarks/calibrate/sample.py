"""A Parquet file like Hudi's, and its indexes, in a temporary folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hudi_index_parquet import stripped_footer

from hudi_index_service.build.entry.indexing import BaseFileIndexer
from hudi_index_service.build.entry.worker import Scratch
from hudi_index_service.config import Settings
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import (
    ColumnSpec,
    IndexReader,
    IndexType,
    PackedIndex,
    StoredColumn,
)
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.manifest import PARQUET_METADATA
from hudi_index_service.index.packed_file import pack
from hudi_index_service.storage.store import Storage

ROWS = 200_000
GROUPS = 10
"""Number of values of the column `group`."""

_FEW_ROWS = 100
_PAGE_BYTES = 160 * 1024  # 20,000 numbers, as in Hudi's pages
_INDEXED_COLUMNS = ("key", "group", "number")

KINDS = ("lucene", "btree")
"""The index types that are measured; the optimizer has constants for them."""


@dataclass(frozen=True, slots=True)
class SampleIndex:
    """An index of the sample file.

    Attributes:
        kind: The index type.
        packed: The built index, with the file's page locations.
        columns: The columns in it.
    """

    kind: IndexType
    packed: PackedIndex
    columns: tuple[StoredColumn, ...]

    def open(self) -> IndexReader:
        """A reader, to be closed by the caller."""
        return self.kind.open(self.packed, self.columns)


@dataclass(frozen=True, slots=True)
class Sample:
    """The file and its indexes.

    Attributes:
        schema: Schema of its columns: a text `key` that is unique, a `group`, a `number`, a
            `price`, and a `text` that is not indexed.
        small: A similar file with a few rows.
        indexes: Index type → index, for each measured type, all on the same columns.
    """

    storage: Storage
    base_file: BaseFile
    small: BaseFile
    rows: int
    schema: pa.Schema
    indexes: Mapping[str, SampleIndex]


def write_sample(folder: Path, settings: Settings, rows: int) -> Sample:
    """Writes the files and builds the indexes.

    Raises:
        NativeModuleMissing: PyLucene is not installed.
    """
    table = _table(rows)
    storage = Storage(folder)
    base_file = _write_file(storage, folder / "base.parquet", table)
    small = _write_file(storage, folder / "small.parquet", table[:_FEW_ROWS])
    indexes = {
        name: _build_index(name, storage, base_file, table.schema, settings, folder)
        for name in KINDS
    }
    return Sample(storage, base_file, small, rows, table.schema, indexes)


def _build_index(
    name: str,
    storage: Storage,
    base_file: BaseFile,
    schema: pa.Schema,
    settings: Settings,
    folder: Path,
) -> SampleIndex:
    kind = index_type(name)
    specs = [
        ColumnSpec(name, (type_ := schema.field(name).type), kind.fields(name, type_, {}))
        for name in _INDEXED_COLUMNS
    ]
    folder = folder / name
    folder.mkdir()
    indexer = BaseFileIndexer(
        storage,
        base_file,
        kind,
        memory_mb=settings.build.memory_mb,
        batch_rows=settings.build.batch_rows,
    )
    footer = stripped_footer(folder.parent / base_file.path)
    path = folder / "index.pack"
    with Scratch() as scratch:
        built = indexer.index(specs, scratch).built
        packed = pack({**built.files, PARQUET_METADATA: footer}, path)
    index = packed.at(path, rows=built.rows)
    columns = tuple(StoredColumn.of(spec, built.statistics[spec.name]) for spec in specs)
    return SampleIndex(kind, index, columns)


def _table(rows: int) -> pa.Table:
    dice = np.random.default_rng(1)
    words = dice.integers(0, 5_000, (3, rows))
    return pa.table(
        {
            "key": pa.array([f"k{number:012d}" for number in dice.permutation(rows)]),
            "group": pa.array([f"group {number}" for number in dice.integers(0, GROUPS, rows)]),
            "number": dice.integers(0, 10**9, rows),
            "price": dice.normal(size=rows),
            "text": pa.array([f"{a} new {b:04d} old {c}" for a, b, c in words.T]),
        }
    )


def _write_file(storage: Storage, path: Path, table: pa.Table) -> BaseFile:
    pq.write_table(
        table,
        path,
        compression="gzip",
        write_page_index=True,
        data_page_size=_PAGE_BYTES,
        use_dictionary=["group"],
    )
    return BaseFile(path.name, "", "", "", storage.size(path.name))
