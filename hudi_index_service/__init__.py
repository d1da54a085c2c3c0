"""Find a few rows in a large Apache Hudi table without scanning it.

>>> from hudi_index_service import open_table
>>> table = open_table("/data/messages")
>>> table.create_index("by_sender", ["sender", "msg"])
>>> table.build(strategy="all")
>>> table.scan("sender = 'UserA' AND msg LIKE 'Buying%'").to_arrow()
"""

from typing import TYPE_CHECKING, Any

from hudi_index_service.build.budget import Budget
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.metadata.definitions import Column
from hudi_index_service.table import IndexedTable, open_table

if TYPE_CHECKING:
    from hudi_index_service.hook import IndexHook

__version__ = "0.1.0"

__all__ = ["Budget", "Column", "IndexHook", "IndexServiceError", "IndexedTable", "open_table"]


def __getattr__(name: str) -> Any:
    """Imports the hook, and with it what builds indexes, when it is first used."""
    if name == "IndexHook":
        from hudi_index_service.hook import IndexHook

        return IndexHook
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
