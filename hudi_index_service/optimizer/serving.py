"""The entries that may serve a query, with the columns that they may serve."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count

from hudi_index_service.index.contract import Answer, IndexType, StoredColumn
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.entry import Entry
from hudi_index_service.index.metadata.requirements import indexed
from hudi_index_service.optimizer.column_values import Values
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.fold import fold

BEST_FIRST = (Answer.EXACT, Answer.SUPERSET)
"""Answers in the order in which they are preferred."""


@dataclass(frozen=True)
class ServingEntry:
    """An entry that may serve queries. It is cached between queries (`read/coverage.py`), together
    with the values read from its manifest.

    Attributes:
        columns: The indexed columns that live definitions still have, sorted by name.
        stored: The names of the columns whose values it stores for live definitions.
    """

    entry: Entry
    index_type: IndexType
    columns: tuple[StoredColumn, ...]
    stored: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def layout(self) -> int:
        """A number that is equal in this process for all entries of an index type whose columns are
        stored in the same way, for which it answers the same leaves."""
        return _layout(self.index_type.name, *(column.layout for column in self.columns))

    @cached_property
    def keys(self) -> Sequence[tuple[str, ...]]:
        """The composite keys, see `IndexType.keys`."""
        return self.index_type.keys(self.columns)

    @cached_property
    def rows(self) -> int:
        """The number of rows of the base file."""
        return self.entry.manifest.base_file.rows

    @cached_property
    def _values(self) -> dict[str, Values | None]:
        return {}

    def values(self, column: str) -> Values | None:
        """What the manifest knows of a column's values, made on first use, since a table may have
        many base files, and queries few columns; None for other columns."""
        if column not in self._values:
            stored = self.entry.manifest.column(column) if column in self.names else None
            self._values[column] = None if stored is None else Values.of(stored, self.rows)
        return self._values[column]

    def answer(self, leaf: Predicate) -> Answer:
        """How well the entry answers a leaf."""
        return self.index_type.answer(leaf, self.columns)

    def __reduce__(self) -> tuple[object, ...]:
        # The index type is sent to Spark tasks by name, and found there by its entry point. Layouts
        # have other numbers in other processes.
        return _serving_entry, (self.entry, self.index_type.name, self.names, self.stored)


def values_of(entries: Sequence[ServingEntry], column: str) -> Values | None:
    """A column's values, by the first entry with it; None if none has it."""
    found = (entry.values(column) for entry in entries)
    return next((each for each in found if each is not None), None)


def best_answer(entries: Iterable[ServingEntry], leaf: Predicate) -> Answer:
    """The best answer of any entry to a leaf, or to conjuncts."""
    answers = {each.answer(leaf) for each in entries}
    return next((each for each in BEST_FIRST if each in answers), Answer.NONE)


def narrows(predicate: Predicate, entries: Sequence[ServingEntry]) -> bool:
    """Whether a slice's entries narrow a predicate in negation normal form. One answered conjunct
    of an AND suffices; every arm of an OR must be answered."""

    def answered(leaf: Predicate) -> bool:
        return best_answer(entries, leaf) is not Answer.NONE

    return fold(predicate, answered, all_of=any, any_of=all)


_numbers = count()


@cache
def _layout(*stored: Hashable) -> int:
    return next(_numbers)


def _serving_entry(
    entry: Entry, index_type_name: str, names: tuple[str, ...], stored: tuple[str, ...]
) -> ServingEntry:
    columns = (entry.manifest.column(name) for name in names)
    usable = indexed(each for each in columns if each is not None)
    return ServingEntry(entry, index_type(index_type_name), usable, stored)
