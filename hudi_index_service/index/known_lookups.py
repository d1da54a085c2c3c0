"""Look-ups that are made once a query, not once an entry: those of a long list of values take
longer to make than to ask, and all base files of a table are asked the same."""

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.lucene.lookup import Lookup, lookup
from hudi_index_service.predicate.expression import And, Predicate

_MOST_KNOWN = 256  # leaves, and conjuncts that are asked together

_Found: TypeAlias = Lookup | None
_Stored: TypeAlias = tuple[tuple[str, pa.DataType, tuple[str, ...], bool] | None, ...]

# By the leaves' ids, with the leaves, so that none has the id of one that is gone.
_known: dict[tuple[object, ...], tuple[list[Predicate], frozenset[str], dict[_Stored, _Found]]] = {}


def known_lookup(asked: Predicate, columns: Mapping[str, StoredColumn]) -> Lookup | None:
    """What `lookup` gives, kept for other entries whose columns are stored alike. Safe to use from
    several threads.

    Args:
        asked: A leaf as it stands in a predicate, or such conjuncts, put together anew or not.
        columns: Of the entry, by name.
    """
    leaves: list[Predicate] = []
    key = _key(asked, leaves)
    known = _known.get(key)
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[key] = leaves, asked.columns(), {}
    _, names, found = known
    stored = tuple([_stored(columns.get(name)) for name in names])
    if stored not in found:
        found[stored] = lookup(asked, columns)
    return found[stored]


def _key(asked: Predicate, leaves: list[Predicate]) -> tuple[object, ...]:
    if isinstance(asked, And):
        return (type(asked), *[_key(each, leaves) for each in asked.operands])
    leaves.append(asked)
    return (id(asked),)


def _stored(column: StoredColumn | None) -> tuple[str, pa.DataType, tuple[str, ...], bool] | None:
    """What a look-up asks of a column: of its statistics nothing else."""
    if column is None:
        return None
    return column.name, column.type, column.fields, bool(column.statistics.truncated)
