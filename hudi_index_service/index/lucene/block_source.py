"""Lets Lucene fetch blocks that the local file lacks. The JVM must be attached."""

from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.index.contract import MissingBlocks

_blocks_by_number: WeakValueDictionary[int, MissingBlocks] = WeakValueDictionary()


def source_of(blocks: MissingBlocks) -> Any:
    """The object from which Java requests blocks, by the number of `blocks`. Holds only a weak
    reference to `blocks`."""
    _blocks_by_number[blocks.number] = blocks
    return _source()


@cache
def _source() -> Any:
    """The only instance of the process: references between Java and Python are never released."""
    from hudiindex import BlockSource

    class Source(BlockSource):  # type: ignore[misc]
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

    return Source()
