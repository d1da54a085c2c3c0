"""Opens a packed index as a Lucene Directory, which fetches blocks that the local file lacks. The
JVM must be attached."""

from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from hudi_index_parquet import is_wanted

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.index.contract import MissingBlocks, PackedIndex

_blocks_by_number: WeakValueDictionary[int, MissingBlocks] = WeakValueDictionary()


def packed_directory(index: PackedIndex) -> Any:
    """The index's own members as a read-only Lucene directory. Each block is checked before its
    use, and fetched if it is missing.

    Raises:
        lucene.JavaError: the file cannot be mapped, or has another length than described.
    """
    import lucene
    from hudiindex import PackedDirectory

    files = {n: span for n, span in index.members.items() if not n.startswith("parquet-")}
    number = -1
    if index.blocks is not None:
        answer_java()
        number = index.blocks.number
        _blocks_by_number[number] = index.blocks
    return PackedDirectory(
        str(index.path),
        lucene.JArray("string")(list(files)),
        lucene.JArray("long")([offset for offset, _ in files.values()]),
        lucene.JArray("long")([length for _, length in files.values()]),
        index.block_size,
        lucene.JArray("int")([_signed(crc) for crc in index.block_crc32]),
        number,
    )


def _signed(crc32: int) -> int:
    """The same 32 bits as Java's signed int."""
    return crc32 - 2**32 if crc32 >= 2**31 else crc32


@cache
def answer_java() -> None:
    """Has Java ask this process for missing blocks, by the number of the file, and while it looks
    up, whether that is still wanted."""
    from hudiindex import Caller

    class PythonCaller(Caller):  # type: ignore[misc]
        isWaiting = is_wanted

        def fetch(self, file: int, block: int) -> str | None:
            """Returns the error, if any: Python exceptions cannot pass through Java code."""
            blocks = _blocks_by_number.get(file)
            if blocks is None:
                return "it was closed"
            try:
                blocks.fetch(block)
            except IndexServiceError as error:
                return error.message.rstrip(".")
            except OSError as error:
                return str(error)
            return None

    # References between Java and Python are never released: there is one for the process.
    Caller.ask(PythonCaller())
