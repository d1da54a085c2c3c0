"""Find a few rows in a large Apache Hudi table without scanning it.

>>> from hudi_index_service import open_table
>>> table = open_table("/data/messages")
>>> table.create_index("by_sender", ["sender", "msg"])
>>> table.build(strategy="all")
>>> table.scan("sender = 'UserA' AND msg LIKE 'Buying%'").to_arrow()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hudi_index_service.build.strategy import Budget
    from hudi_index_service.cancellation import Cancellation
    from hudi_index_service.engines.dataset import HudiDataset
    from hudi_index_service.engines.polars import explain_hudi, scan_hudi
    from hudi_index_service.errors import IndexServiceError
    from hudi_index_service.fleet.forms.index_hook import IndexHook
    from hudi_index_service.index.metadata.definitions import Column
    from hudi_index_service.table import IndexedTable, open_table

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "Cancellation",
    "Column",
    "HudiDataset",
    "IndexHook",
    "IndexServiceError",
    "IndexedTable",
    "explain_hudi",
    "open_table",
    "scan_hudi",
]

_MODULES = {
    "Budget": "build.strategy",
    "Cancellation": "cancellation",
    "Column": "index.metadata.definitions",
    "HudiDataset": "engines.dataset",
    "IndexHook": "fleet.forms.index_hook",
    "IndexServiceError": "errors",
    "IndexedTable": "table",
    "explain_hudi": "engines.polars",
    "open_table": "table",
    "scan_hudi": "engines.polars",
}


def __getattr__(name: str) -> Any:
    """Imports a public name, and with it Arrow and all else that it needs, when it is first
    used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
