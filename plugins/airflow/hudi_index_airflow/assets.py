"""Hudi tables and their indexes as assets, and what OpenLineage calls them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import Asset

if TYPE_CHECKING:
    from airflow.sdk import Context

INDEX_FOLDER = ".hoodie/.index"


def table_asset(table: str, **options: Any) -> Asset:
    """A Hudi table as an asset.

    Args:
        table: Its base path, such as ``s3://lake/orders``.
        options: As for `Asset`, such as watchers.
    """
    return Asset(name=_uri(table), uri=_uri(table), **options)


def index_asset(table: str, **options: Any) -> Asset:
    """The index of a Hudi table as an asset; as for `table_asset`."""
    return table_asset(f"{table.rstrip('/')}/{INDEX_FOLDER}", **options)


def tell(context: "Context", outlets: Sequence[Any], extra: dict[str, Any]) -> None:
    """Gives the events of a task's outlets an extra."""
    for each in outlets:
        if isinstance(each, Asset):
            context["outlet_events"][each].extra.update(extra)


def names_of(table: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """OpenLineage's namespace and name of a table and of its index.

    >>> names_of("s3://lake/orders")[0]
    ('s3://lake', '/orders')
    """
    parts = urlsplit(_uri(table))
    namespace = "file" if parts.scheme == "file" else f"{parts.scheme}://{parts.netloc}"
    return (namespace, parts.path), (namespace, f"{parts.path}/{INDEX_FOLDER}")


def _uri(table: str) -> str:
    table = table.rstrip("/")
    return table if "://" in table else f"file://{table}"
