"""Caches look-ups, so that a query makes them once and not once per entry. A look-up for a long
list of values takes longer to make than to run, and is the same for all base files of a table."""

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeAlias, TypeVar

from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.predicate.expression import Predicate

_Lookup = TypeVar("_Lookup")
_Columns: TypeAlias = Mapping[str, StoredColumn]
_Layouts: TypeAlias = tuple[Hashable, ...]

MOST_KNOWN = 64
"""The number of leaves, or conjuncts looked up together, whose look-ups an index type keeps. Most
queries have fewer; the limit exists because a list of 10,000 values takes some megabytes."""


class KnownLookups(Generic[_Lookup]):
    """Returns the results of `lookup`, and caches them for other entries with the same column
    layouts. Safe to use from several threads.

    Args:
        lookup: A function that makes an index type's look-up for a leaf, or for conjuncts, on an
            entry's columns by name. It depends only on the layouts of the columns.
    """

    def __init__(self, lookup: Callable[[Predicate, _Columns], _Lookup]) -> None:
        self._lookup = lookup
        self._cache: dict[Predicate, tuple[frozenset[str], dict[_Layouts, _Lookup]]] = {}

    def __call__(self, predicate: Predicate, columns: _Columns) -> _Lookup:
        """The look-up.

        Args:
            predicate: A leaf of a predicate, or a conjunction of such leaves.
            columns: The entry's columns by name.
        """
        cached = self._cache.get(predicate)
        if cached is None:
            if len(self._cache) >= MOST_KNOWN:
                self._cache.clear()
            cached = self._cache[predicate] = predicate.columns(), {}
        names, lookups = cached
        layouts = tuple([columns[name].layout for name in names if name in columns])
        if layouts not in lookups:
            lookups[layouts] = self._lookup(predicate, columns)
        return lookups[layouts]

    def __len__(self) -> int:
        return len(self._cache)
