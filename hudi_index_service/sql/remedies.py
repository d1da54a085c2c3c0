"""Remedies in terms of SQL."""

from collections.abc import Iterator
from contextlib import contextmanager

from hudi_index_service.errors import IndexServiceError, Remedy


@contextmanager
def remedies_in_sql() -> Iterator[None]:
    """Raises the service's errors with the SQL form of their remedies."""
    try:
        yield
    except IndexServiceError as error:
        error.remedies = Remedy(error.remedies.sql)
        raise
