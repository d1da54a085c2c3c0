"""Small real Lucene indexes for the tests of hudi-index-pylucene."""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lucene
import numpy as np
import pyarrow as pa

BLOCK_SIZE = 4096
MEMBER_ALIGNMENT = 64


def attach() -> None:
    """Start the process's one JVM, or attach this thread to it."""
    running = lucene.getVMEnv()
    if running is None:
        lucene.initVM(vmargs=["-Xrs", "-Xmx512m", "-Djava.awt.headless=true"])
    else:
        running.attachCurrentThread()


@dataclass(frozen=True)
class IndexField:
    """A field of the index, its kind as ArrowIndexer calls it, and the column it comes from."""

    name: str
    kind: str
    column: str


def open_writer(folder: Path, *, analyzer: Any = None, merge: bool = False) -> Any:
    """A writer that keeps doc id = row position, with or without merges of neighbours."""
    from java.nio.file import Paths
    from org.apache.lucene.analysis.standard import StandardAnalyzer
    from org.apache.lucene.index import (
        IndexWriter,
        IndexWriterConfig,
        LogDocMergePolicy,
        NoMergePolicy,
        SerialMergeScheduler,
    )
    from org.apache.lucene.store import FSDirectory

    config = IndexWriterConfig(analyzer or StandardAnalyzer())
    config.setMergeScheduler(SerialMergeScheduler())
    config.setMergePolicy(LogDocMergePolicy() if merge else NoMergePolicy.INSTANCE)
    config.setUseCompoundFile(False)
    return IndexWriter(FSDirectory.open(Paths.get(str(folder))), config)


def new_indexer(writer: Any, fields: Sequence[IndexField]) -> Any:
    from hudiindex import ArrowIndexer

    return ArrowIndexer(
        writer,
        lucene.JArray("string")([field.name for field in fields]),
        lucene.JArray("int")([getattr(ArrowIndexer, field.kind) for field in fields]),
    )


def set_column(indexer: Any, number: int, array: pa.Array) -> None:
    validity, *offsets, data = array.buffers()
    indexer.setColumn(
        number,
        validity.address if validity else 0,
        offsets[0].address if offsets else 0,
        data.address if data else 0,
        pa.types.is_large_string(array.type),
        array.offset,
    )


def index_batches(
    folder: Path,
    fields: Sequence[IndexField],
    batches: Iterable[pa.RecordBatch],
    *,
    analyzer: Any = None,
    merge: bool = False,
    segment_per_batch: bool = False,
) -> list[int]:
    """Index the batches; return how many terms of each field were truncated."""
    writer = open_writer(folder, analyzer=analyzer, merge=merge)
    indexer = new_indexer(writer, fields)
    rows = 0
    for batch in batches:
        for number, field in enumerate(fields):
            set_column(indexer, number, batch.column(field.column))
        rows += batch.num_rows
        assert indexer.index(batch.num_rows) == rows
        if segment_per_batch:
            writer.flush()
    truncated = [indexer.truncated(number) for number in range(len(fields))]
    writer.commit()
    writer.close()
    return truncated


def open_folder(folder: Path) -> Any:
    """A searcher over an index in a folder."""
    from java.nio.file import Paths
    from org.apache.lucene.store import FSDirectory

    return open_searcher(FSDirectory.open(Paths.get(str(folder))))


def open_searcher(directory: Any) -> Any:
    from org.apache.lucene.index import DirectoryReader
    from org.apache.lucene.search import IndexSearcher

    searcher = IndexSearcher(DirectoryReader.open(directory))
    searcher.setQueryCache(None)
    return searcher


def row_ids(searcher: Any, query: Any) -> list[int]:
    """The rows that match, through a numpy buffer as the service does it."""
    from hudiindex import RowIds

    buffer = np.full(searcher.getIndexReader().maxDoc(), 0xFFFFFFFF, np.uint32)
    found = RowIds.into(searcher, query, buffer.ctypes.data, len(buffer))
    assert found == RowIds.count(searcher, query)
    return list(buffer[:found].tolist())


def term(field: str, value: str | bytes) -> Any:
    from org.apache.lucene.index import Term
    from org.apache.lucene.search import TermQuery
    from org.apache.lucene.util import BytesRef

    text = value.encode() if isinstance(value, str) else value
    return TermQuery(Term(field, BytesRef(lucene.JArray("byte")(text))))


@dataclass(frozen=True)
class PackedFile:
    """The files of an index in one file, and all that is needed to open them."""

    path: Path
    members: dict[str, tuple[int, int]]
    block_crc32s: list[int]

    def open(self) -> Any:
        from hudiindex import PackedDirectory

        return PackedDirectory(
            str(self.path),
            lucene.JArray("string")(list(self.members)),
            lucene.JArray("long")([offset for offset, _ in self.members.values()]),
            lucene.JArray("long")([length for _, length in self.members.values()]),
            BLOCK_SIZE,
            lucene.JArray("int")(np.array(self.block_crc32s, np.uint32).view(np.int32).tolist()),
        )


def pack(folder: Path, path: Path) -> PackedFile:
    """Put the files of ``folder`` one after another into the file ``path``."""
    content = bytearray()
    members = {}
    for file in sorted(folder.iterdir()):
        if file.name != "write.lock":
            content += bytes(-len(content) % MEMBER_ALIGNMENT)
            members[file.name] = (len(content), file.stat().st_size)
            content += file.read_bytes()
    path.write_bytes(content)
    blocks = range(0, len(content), BLOCK_SIZE)
    return PackedFile(path, members, [zlib.crc32(content[at : at + BLOCK_SIZE]) for at in blocks])
