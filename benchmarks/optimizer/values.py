"""The values of a table's columns, from which literals are picked."""

from bisect import bisect_left
from datetime import date, datetime
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.bench_table import base_files
from benchmarks.optimizer.columns import Columns

Counted: TypeAlias = tuple[pa.Array, np.ndarray]
"""Values, and how many rows have each: the most common first."""


class Values:
    """The values of a table's columns, from which literals are picked."""

    def __init__(self, folder: Path, columns: Columns) -> None:
        pairs = (*columns.equal, *columns.near, *columns.box)
        ordered = {
            *columns.ordered,
            *(name for pair in (*columns.near, *columns.box) for name in pair),
        }
        named = {*columns.named, *columns.texts}
        paired = {name for pair in pairs for name in pair}
        names = sorted({*ordered, *named, *paired, columns.words, columns.unindexed})
        table = pa.concat_tables(pq.read_table(path, columns=names) for path in base_files(folder))
        self.rows = table.num_rows
        self._sorted = {name: self._in_order(table[name]) for name in (*ordered, columns.unindexed)}
        self._counted = {name: self._counts(table[name]) for name in named}
        words = pc.list_flatten(pc.split_pattern(table[columns.words].drop_null(), " "))
        self.words = self._counts(words)
        # Correlated columns: rows with values of both.
        self._together = table.select(sorted(paired))

    @staticmethod
    def _in_order(column: pa.ChunkedArray) -> pa.Array:
        values = column.drop_null().combine_chunks()
        return values.take(pc.sort_indices(values))

    @staticmethod
    def _counts(column: pa.ChunkedArray) -> Counted:
        counted = column.drop_null().value_counts()
        order = pc.sort_indices(
            pa.table({"n": counted.field("counts"), "v": counted.field("values")}),
            sort_keys=[("n", "descending"), ("v", "ascending")],
        )
        counts = counted.field("counts").take(order).to_numpy(zero_copy_only=False)
        return counted.field("values").take(order), counts

    def between(self, column: str, part: float, dice: Random) -> tuple[str, str]:
        """Two literals with about this part of the rows between them."""
        values = self._sorted[column]
        span = min(int(part * self.rows), len(values) - 1)
        start = dice.randrange(len(values) - span)
        return literal(values[start].as_py()), literal(values[start + span].as_py())

    def below_the_last(self, column: str, part: float, dice: Random) -> str:
        """A literal that is less than about this part of the rows."""
        values = self._sorted[column]
        span = int(part * self.rows * dice.uniform(0.7, 1.4))
        return literal(values[max(len(values) - 2 - span, 0)].as_py())

    def equal(self, column: str, part: float, dice: Random) -> Any:
        """A value that about this part of the rows has."""
        return self.picked(self._counted[column], part, dice)

    def picked(self, counted: Counted, part: float, dice: Random) -> Any:
        """The same for values with their counts, such as `words`."""
        values, counts = counted
        # Counts descend: values whose count is within a factor of 1.5, and some beside them.
        count, some, end = part * self.rows, len(values) // 40, len(values)
        first = int(np.searchsorted(-counts, -count * 1.5)) - some
        last = int(np.searchsorted(-counts, -count / 1.5, side="right")) + some
        first = max(0, min(first, end - 1 - 2 * some))
        return values[dice.randrange(first, min(max(last, first + 1), end))].as_py()

    def around(self, column: str, value: Any, part: float) -> tuple[str, str]:
        """Two literals with about this part of the rows between them, and the value."""
        values = self._sorted[column]
        place = bisect_left(range(len(values)), value, key=lambda row: values[row].as_py())
        half = max(int(part * self.rows / 2), 1)
        low, high = max(place - half, 0), min(place + half, len(values) - 1)
        return literal(values[low].as_py()), literal(values[high].as_py())

    def with_it(self, pair: tuple[str, str], dice: Random) -> tuple[Any, Any]:
        """The two values of some row."""
        row = dice.randrange(self.rows)
        one, other = (self._together[name][row].as_py() for name in pair)
        return one, other


def literal(value: Any) -> str:
    """The value as a literal of Spark SQL."""
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP'{value:%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(value, date):
        return f"DATE'{value}'"
    return str(value)
