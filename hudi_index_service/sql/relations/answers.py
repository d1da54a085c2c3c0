"""Which conditions the service can answer."""

import pyarrow as pa

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.predicate import parse_predicate


def answers(schema: pa.Schema, where: str) -> bool:
    """Whether the service supports a where text on a table."""
    try:
        parse_predicate(where, schema)
    except IndexServiceError:
        return False
    return True
