"""Compares rows cell by cell, and shows what differs as a table."""

import math
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

_SHOWN = 5
_WIDEST = 40

Row = tuple[str, ...]


def assert_same_rows(actual: pa.Table, expected: pa.Table) -> None:
    """Cell by cell, in any order of rows: NULL, NaN, 0.0 and −0.0 are four different things.

    A failure shows the rows that only one side has, each unexpected row above the missing one that
    is most like it, with the cells that differ marked.
    """
    assert actual.column_names == expected.column_names
    actual_rows, expected_rows = Counter(_rows(actual)), Counter(_rows(expected))
    if actual_rows != expected_rows:
        raise AssertionError(
            _differences(
                actual.column_names,
                list((actual_rows - expected_rows).elements()),
                list((expected_rows - actual_rows).elements()),
            )
        )


def _differences(columns: Sequence[str], unexpected: list[Row], missing: list[Row]) -> str:
    lines = [["", *columns]]
    left = list(missing)
    for row in unexpected[:_SHOWN]:
        lines.append(["found", *row])
        if left:
            like = max(left, key=lambda other: _alike(row, other))
            left.remove(like)
            lines.append(["expected", *like])
            marks = ["" if mine == its else "^" for mine, its in zip(row, like, strict=True)]
            lines.append(["", *marks])
    lines += [["expected", *row] for row in left[: max(0, _SHOWN - len(unexpected))]]
    cells = [[cell[:_WIDEST] for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        [
            f"{len(unexpected)} rows too many, {len(missing)} rows missing:",
            *(
                "  ".join(
                    cell.ljust(width) for cell, width in zip(line, widths, strict=True)
                ).rstrip()
                for line in cells
            ),
        ]
    )


def _alike(row: Row, other: Row) -> int:
    return sum(mine == its for mine, its in zip(row, other, strict=True))


def _rows(table: pa.Table) -> list[Row]:
    columns = [[repr(_cell(value)) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _cell(value: object) -> object:
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value
    if isinstance(value, list):
        return [_cell(item) for item in value]
    if isinstance(value, dict):
        return {key: _cell(item) for key, item in value.items()}
    return value
