"""Lets Lucene fetch blocks that the local file lacks. The JVM must be attached."""

from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.index.contract import MissingBlocks

_known: WeakValueDictionary[int, MissingBlocks] = WeakValueDictionary()


def source_of(blocks: MissingBlocks) -> Any:
    """The object that Java asks for the blocks, by their number; only as long as somebody else
    keeps them."""
    _known[blocks.number] = blocks
    return _source()


@cache
def _source() -> Any:
    """One for the process: what Java and Python hold of each other never goes."""
    from hudiindex import BlockSource

    class Source(BlockSource):  # type: ignore[misc]
        def fetch(self, file: int, block: int) -> str | None:
            """What went wrong is returned: no exception of Python's gets through Java's code."""
            blocks = _known.get(file)
            if blocks is None:
                return "it was closed"
            try:
                blocks.fetch(block)
            except IndexServiceError as error:
                return error.message.rstrip(".")
            except OSError as error:
                return str(error)
            return None

    return Source()
