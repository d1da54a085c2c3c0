"""What a manifest tells of a column's values, made ready for estimates."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_index_service.index.manifest import Manifest, ManifestColumn
from hudi_index_service.optimizer.estimates import selectivities
from hudi_index_service.optimizer.estimates.byte_scale import ByteScale

Share = Callable[[Any, bool], float]


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a column in a base file.

    Attributes:
        nulls: Rows where it is NULL.
        count: Rows where it is not.
        least, greatest: Bounds of all values, none of which is NaN, as `bound_of` writes them; None
            where one of them is not known.
        equal: A guess of the rows that have one value.
        below: Guesses the share of the values that are below one that lies between the bounds; or
            that equal it, too, where that is asked for, or of bytes, begin with it. None where the
            bounds are not known.
    """

    nulls: int
    count: int
    least: Any
    greatest: Any
    equal: float
    below: Share | None


class ColumnValues(Mapping[str, Values]):
    """By name what a manifest says of some of its columns, each made when it is first asked for:
    a table may have many base files, and queries few columns.

    Args:
        names: Of these columns.
    """

    def __init__(self, manifest: Manifest, names: Collection[str]) -> None:
        self._manifest = manifest
        self._names = names
        self._made: dict[str, Values] = {}

    def __getitem__(self, name: str) -> Values:
        found = self._made.get(name)
        if found is None:
            column = self._manifest.column(name) if name in self._names else None
            if column is None:
                raise KeyError(name)
            found = self._made[name] = _values(column, self._manifest.base_file.rows)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _values(column: ManifestColumn, rows: int) -> Values:
    known = column.bounds(rows)
    least, greatest, nulls = known.least, known.greatest, column.null_count
    count = max(rows - nulls, 0)
    told = count / column.distinct if column.distinct else None
    if least is None or greatest is None:
        equal = count * selectivities.EQUAL if told is None else told
        return Values(nulls, count, None, None, equal, None)
    equal = count / _distinct(count, least, greatest) if told is None else told
    return Values(nulls, count, least, greatest, equal, _share(least, greatest))


def _distinct(count: int, least: Any, greatest: Any) -> float:
    """How many values there may be: of whole numbers, days and the like no more than lie between
    the bounds; of others somewhere between one and all."""
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
