"""Prepares a manifest's statistics of a column's values for estimates."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.optimizer.estimates import selectivities
from hudi_index_service.optimizer.estimates.byte_scale import ByteScale

Share = Callable[[Any, bool], float]


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a column in a base file.

    Attributes:
        nulls: The number of rows where it is NULL.
        count: The number of rows where it is not NULL.
        least, greatest: Bounds of all values, none of which is NaN, as `bound_of` encodes them;
            None if one of them is not known.
        equal: The guessed number of rows per value.
        below: Guesses the share of values below one within the bounds, optionally including values
            equal to it or, for bytes, with it as prefix. None if the bounds are not known.
    """

    nulls: int
    count: int
    least: Any
    greatest: Any
    equal: float
    below: Share | None


class ColumnValues(Mapping[str, Values]):
    """A manifest's statistics by column name, each made on first use, since a table may have many
    base files, and queries few columns.

    Args:
        names: The names of these columns.
    """

    def __init__(self, manifest: Manifest, names: Collection[str]) -> None:
        self._manifest = manifest
        self._names = names
        self._cache: dict[str, Values] = {}

    def __getitem__(self, name: str) -> Values:
        values = self._cache.get(name)
        if values is None:
            column = self._manifest.column(name) if name in self._names else None
            if column is None:
                raise KeyError(name)
            values = self._cache[name] = _values(column, self._manifest.base_file.rows)
        return values

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _values(column: StoredColumn, rows: int) -> Values:
    bounds = column.bounds(rows)
    least, greatest, nulls = bounds.least, bounds.greatest, column.null_count
    count = max(rows - nulls, 0)
    rows_per_value = count / column.distinct if column.distinct else None
    if least is None or greatest is None:
        equal = count * selectivities.EQUAL if rows_per_value is None else rows_per_value
        return Values(nulls, count, None, None, equal, None)
    equal = count / _distinct(count, least, greatest) if rows_per_value is None else rows_per_value
    return Values(nulls, count, least, greatest, equal, _share(least, greatest))


def _distinct(count: int, least: Any, greatest: Any) -> float:
    """A guess of the number of distinct values: for integers, days and the like no more than fit
    between the bounds; for others the geometric mean of one and all."""
    if isinstance(least, int):
        return float(max(1, min(count, greatest - least + 1)))
    return math.sqrt(max(1, count))


def _share(least: Any, greatest: Any) -> Share:
    if isinstance(least, bytes):
        scale = ByteScale.between(least, greatest)
        return lambda value, after: float(scale.share(value, above=after))
    if isinstance(least, int):
        first, span = int(least), int(greatest) - int(least) + 1
        return lambda value, after: float((int(value) - first + after) / span)
    return lambda value, after: _of_reals(value, float(least), float(greatest))


def _of_reals(value: float, least: float, greatest: float) -> float:
    width = greatest - least
    if width == 0 or not math.isfinite(width):
        return 0.5  # one of them is infinite
    return (value - least) / width
