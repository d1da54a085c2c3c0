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
    """A field of the index: its name, its kind as in ArrowIndexer, and its source column."""

    name: str
    kind: str
    column: str


def open_directory(folder: Path) -> Any:
    from java.nio.file import Paths
    from org.apache.lucene.store import FSDirectory

    return FSDirectory.open(Paths.get(str(folder)))


def new_indexer(
    folder: Path,
    fields: Sequence[IndexField],
    *,
    analyzer: Any = None,
    memory_mb: float = 64,
    threads: int = 1,
) -> Any:
    from hudiindex import ArrowIndexer
    from org.apache.lucene.analysis.standard import StandardAnalyzer

    indexer = ArrowIndexer(
        open_directory(folder),
        lucene.JArray("string")([field.name for field in fields]),
        lucene.JArray("int")([getattr(ArrowIndexer, field.kind) for field in fields]),
        float(memory_mb),
        0,  # the first segment's number
        threads,
    )
    for number, field in enumerate(fields):
        if field.kind in ("TEXT", "RANKED_TEXT"):
            indexer.setAnalyzer(number, analyzer or StandardAnalyzer())
    return indexer


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
    segment_per_batch: bool = False,
    threads: int = 1,
) -> list[int]:
    """Index the batches; return how many terms of each field were truncated.

    With `segment_per_batch`, each batch becomes a segment of its own (of at most 8,192 rows):
    without a memory budget, no batch waits for the next.
    """
    indexer = new_indexer(
        folder,
        fields,
        analyzer=analyzer,
        memory_mb=0 if segment_per_batch else 64,
        threads=threads,
    )
    rows = 0
    for batch in batches:
        for number, field in enumerate(fields):
            set_column(indexer, number, batch.column(field.column))
        rows += batch.num_rows
        assert indexer.index(batch.num_rows) == rows
    truncated = [indexer.truncated(number) for number in range(len(fields))]
    indexer.finish()
    return truncated


def open_folder(folder: Path) -> Any:
    """A searcher over an index in a folder."""
    return open_searcher(open_directory(folder))


def open_searcher(directory: Any) -> Any:
    from org.apache.lucene.index import DirectoryReader
    from org.apache.lucene.search import IndexSearcher

    searcher = IndexSearcher(DirectoryReader.open(directory))
    searcher.setQueryCache(None)
    return searcher


def row_ids(searcher: Any, query: Any) -> list[int]:
    """The rows that match, through a numpy buffer as in the service."""
    from hudiindex import RowIds

    buffer = np.full(searcher.getIndexReader().maxDoc(), 0xFFFFFFFF, np.uint32)
    found = RowIds.into(searcher, query, buffer.ctypes.data, len(buffer), 2**63 - 1)
    assert found == searcher.count(query)
    return list(buffer[:found].tolist())


def term(field: str, value: str | bytes) -> Any:
    from org.apache.lucene.index import Term
    from org.apache.lucene.search import TermQuery
    from org.apache.lucene.util import BytesRef

    text = value.encode() if isinstance(value, str) else value
    return TermQuery(Term(field, BytesRef(lucene.JArray("byte")(text))))


@dataclass(frozen=True)
class PackedFile:
    """The files of an index in one file, with everything needed to open them."""

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
            -1,
        )


def pack(folder: Path, path: Path) -> PackedFile:
    """Write the files of ``folder`` one after another into the file ``path``."""
    content = bytearray()
    members = {}
    for file in sorted(folder.iterdir()):
        if file.is_file():
            content += bytes(-len(content) % MEMBER_ALIGNMENT)
            members[file.name] = (len(content), file.stat().st_size)
            content += file.read_bytes()
    path.write_bytes(content)
    blocks = range(0, len(content), BLOCK_SIZE)
    return PackedFile(path, members, [zlib.crc32(content[at : at + BLOCK_SIZE]) for at in blocks])
