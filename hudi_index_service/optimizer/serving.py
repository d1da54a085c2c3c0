"""The entries that may serve a query, with the columns that they may serve."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from hudi_index_service.index.contract import Answer, IndexType, StoredColumn
from hudi_index_service.index.entry import Entry
from hudi_index_service.index.factory import index_type
from hudi_index_service.optimizer.estimates.values import ColumnValues, Values
from hudi_index_service.predicate.expression import Predicate

_layouts: dict[Hashable, int] = {}
_numbers = count()


class ServedColumns(tuple[StoredColumn, ...]):
    """The columns of an entry that live definitions still ask for, sorted by name. What is worked
    out of them is kept with them, and so serves all queries."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(column.name for column in self)

    @cached_property
    def layout(self) -> int:
        """A number, the same in this process for all columns that are stored alike, so that an
        index type answers the same leaves by them."""
        return _layouts.setdefault(tuple(column.layout for column in self), next(_numbers))

    def __reduce__(self) -> tuple[object, ...]:
        # Elsewhere other layouts have these numbers.
        return ServedColumns, (tuple(self),)


@dataclass(frozen=True)
class ServingEntry:
    """An entry that may serve queries. It is kept from query to query (`read/coverage.py`), and so
    is what all of them ask of its manifest."""

    entry: Entry
    index_type: IndexType
    columns: ServedColumns

    @cached_property
    def rows(self) -> int:
        """Rows of the base file."""
        return self.entry.manifest.base_file.rows

    @cached_property
    def values(self) -> Mapping[str, Values]:
        """What the manifest tells of the columns' values, by their names."""
        return ColumnValues(self.entry.manifest, self.columns.names)

    def answer(self, leaf: Predicate) -> Answer:
        """How well the entry answers a leaf."""
        return self.index_type.answer(leaf, self.columns)

    def __reduce__(self) -> tuple[object, ...]:
        # To Spark tasks the index type crosses by its name: it is found there by its entry point.
        return _serving_entry, (self.entry, self.index_type.name, self.columns)


def _serving_entry(entry: Entry, index_type_name: str, columns: ServedColumns) -> ServingEntry:
    return ServingEntry(entry, index_type(index_type_name), columns)
