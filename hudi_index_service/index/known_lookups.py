"""Look-ups that are made once a query, not once an entry: those of a long list of values take
longer to make than to ask, and all base files of a table are asked the same."""

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeAlias, TypeVar

from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.predicate.expression import And, Predicate

_Found = TypeVar("_Found")
_Columns: TypeAlias = Mapping[str, StoredColumn]
_Layouts: TypeAlias = tuple[Hashable, ...]

MOST_KNOWN = 64
"""Leaves, and conjuncts that are asked together, whose look-ups an index type keeps: more than most
queries have, since a list of 10,000 values takes some megabytes."""


class KnownLookups(Generic[_Found]):
    """Gives what `lookup` gives, kept for other entries whose columns are stored alike. Safe to use
    from several threads.

    Args:
        lookup: An index type's look-up for a leaf, or for conjuncts on an entry's columns, by name.
            Of these it goes by their layouts alone.
    """

    def __init__(self, lookup: Callable[[Predicate, _Columns], _Found]) -> None:
        self._lookup = lookup
        # By the leaves' ids, with the leaves, so that none has the id of one that is gone.
        self._known: dict[
            tuple[object, ...], tuple[list[Predicate], frozenset[str], dict[_Layouts, _Found]]
        ] = {}

    def __call__(self, asked: Predicate, columns: _Columns) -> _Found:
        """The look-up.

        Args:
            asked: A leaf as it stands in a predicate, or such conjuncts, put together anew or not.
            columns: Of the entry, by name.
        """
        leaves: list[Predicate] = []
        key = _key(asked, leaves)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = leaves, asked.columns(), {}
        _, names, found = known
        layouts = tuple([columns[name].layout for name in names if name in columns])
        if layouts not in found:
            found[layouts] = self._lookup(asked, columns)
        return found[layouts]

    def __len__(self) -> int:
        return len(self._known)


def _key(asked: Predicate, leaves: list[Predicate]) -> tuple[object, ...]:
    if isinstance(asked, And):
        return (type(asked), *[_key(each, leaves) for each in asked.operands])
    leaves.append(asked)
    return (id(asked),)
