"""The queries: 200 shapes from a fixed seed, each with several sets of literals.

A shape is a condition without its literals, and the columns to return; for each leaf it also has
the part of the rows that should match, from one in a million to all, evenly over the orders of
magnitude. Literals are chosen from the table's values so that about as many rows match.
"""

import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from benchmarks.optimizer.columns import ALL, COLUMNS, Columns
from benchmarks.optimizer.shapes import Shapes
from benchmarks.optimizer.values import Values

SEED = 7
QUERIES = 200
LITERALS = 4
"""Sets of literals."""


@dataclass(frozen=True)
class Query:
    """One query.

    Attributes:
        number: The number of its shape.
        kind: The kind of its shape.
        where: A Spark SQL predicate.
        columns: The columns returned; all if empty.
        counts: Whether the query returns only the number of rows.
    """

    number: int
    kind: str
    where: str
    columns: tuple[str, ...]
    counts: bool


def query(columns: Columns, values: Values, number: int, literals: int) -> Query:
    """The query of a shape, on a table.

    Args:
        number: Of the shape.
        literals: Which set of literals.
    """
    dice = Random(f"{SEED} shape {number}")
    counts = dice.random() < 0.2
    selected = ALL if counts else dice.choice(columns.selections)
    kind, made = Shapes(columns, dice).condition()
    where = made(values, Random(f"{SEED} literals {literals} of {number}"))
    return Query(number, kind, where, selected, counts)


_SOURCES = [Path(__file__).with_name(f"{n}.py") for n in ("columns", "queries", "shapes", "values")]


def queries(folder: Path, rows: str, literals: int) -> list[Query]:
    """All queries on a table, with this set of literals; cached beside the table's folder.

    Args:
        rows: A key of `COLUMNS`.
    """
    checksum = zlib.crc32(b"".join(each.read_bytes() for each in _SOURCES))
    cache = folder.with_name(f"{folder.name}.queries-{checksum:08x}.json")
    if not cache.is_file():
        values, columns = Values(folder, COLUMNS[rows]), COLUMNS[rows]
        made = [
            [asdict(query(columns, values, number, each)) for number in range(QUERIES)]
            for each in range(LITERALS)
        ]
        cache.write_text(json.dumps(made, indent=0))
    of_set = json.loads(cache.read_text())[literals]
    return [Query(**{**each, "columns": tuple(each["columns"])}) for each in of_set]
