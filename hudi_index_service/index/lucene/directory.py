"""Opens a packed index as a Lucene Directory. The JVM must be attached."""

from typing import Any

from hudi_index_service.index.contract import PackedIndex
from hudi_index_service.index.lucene.block_source import source_of


def packed_directory(index: PackedIndex) -> Any:
    """The index's own members as a read-only Lucene directory. Each block is checked before its
    use, and fetched if it is missing.

    Raises:
        lucene.JavaError: the file cannot be mapped, or has another length than described.
    """
    import lucene
    from hudiindex import PackedDirectory

    files = {n: span for n, span in index.members.items() if not n.startswith("parquet-")}
    arguments = (
        str(index.path),
        lucene.JArray("string")(list(files)),
        lucene.JArray("long")([offset for offset, _ in files.values()]),
        lucene.JArray("long")([length for _, length in files.values()]),
        index.block_size,
        lucene.JArray("int")([_signed(crc) for crc in index.block_crc32]),
    )
    if index.blocks is None:
        return PackedDirectory(*arguments)
    return PackedDirectory(*arguments, source_of(index.blocks), index.blocks.number)


def _signed(crc32: int) -> int:
    """The same 32 bits as Java's signed int."""
    return crc32 - 2**32 if crc32 >= 2**31 else crc32
