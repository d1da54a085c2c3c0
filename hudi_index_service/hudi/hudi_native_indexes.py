"""Hudi's own indexes of a table: the complete partitions of its metadata table
(``hoodie.table.metadata.partitions``) and their definitions in ``index.json``."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.hudi.properties import read_properties, split_columns
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)

_DEFINITIONS = ".hoodie/.index_defs/index.json"
_NO_INDEX = "files"  # the listing of the table's files
_SECONDARY = "secondary_index"
HUDI_PREFIXES = (f"{_SECONDARY}_", "expr_index_")
"""Prefixes that Hudi adds to the name of an index of one column."""


@dataclass(frozen=True, slots=True)
class OwnIndex:
    """One of Hudi's own indexes.

    Attributes:
        name: The name in SHOW INDEXES; an expression or secondary index has a prefix.
        type: Such as ``record_index``, ``secondary_index``, ``column_stats``, ``bloom_filters``.
        columns: The indexed columns; empty for an index of the whole table.
        options: The options at creation, such as ``{"expr": "lower"}``.
    """

    name: str
    type: str
    columns: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


def own_indexes(storage: Storage) -> tuple[OwnIndex, ...]:
    """The table's own Hudi indexes, by name. Unreadable definitions are logged and ignored."""
    properties = read_properties(storage)
    names = split_columns(properties.get("hoodie.table.metadata.partitions", ""))
    definitions = _definitions(storage)
    return tuple(_own_index(name, definitions.get(name)) for name in sorted({*names} - {_NO_INDEX}))


def _own_index(name: str, definition: object) -> OwnIndex:
    fields = definition if isinstance(definition, dict) else {}
    kind = fields.get("indexType")
    columns = fields.get("sourceFields")
    if name == kind or not isinstance(columns, list):  # of the whole table
        columns = []
    default_type = _SECONDARY if name.startswith(_SECONDARY) else name
    options = fields.get("indexOptions")
    return OwnIndex(
        name,
        str(kind or default_type),
        tuple(map(str, columns)),
        {str(key): str(value) for key, value in options.items()}
        if isinstance(options, dict)
        else {},
    )


def _definitions(storage: Storage) -> Mapping[str, object]:
    try:
        content = json.loads(storage.read(_DEFINITIONS))
        definitions = content["indexDefinitions"]
    except FileNotFoundError:
        return {}
    except (IndexServiceError, ValueError, KeyError, TypeError, RecursionError) as error:
        log.warning("%s of %s cannot be read: %s", _DEFINITIONS, storage.uri, error)
        return {}
    return definitions if isinstance(definitions, dict) else {}
