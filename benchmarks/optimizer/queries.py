"""The queries: 200 shapes from a fixed seed, each with as many sets of literals as are asked for.

A shape is a condition without its literals, and what is asked of the matching rows; of each leaf it
also has the part of the rows that shall match, from one in a million to all, evenly over the orders
of magnitude. Literals are taken from the table's own values so that they do about match as many.
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
        number: Of its shape.
        kind: What its shape is an example of.
        where: A Spark SQL predicate.
        columns: Columns asked for; empty for all.
        counts: Whether only the number of rows is asked for.
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
    asked = ALL if counts else dice.choice(columns.asked)
    kind, made = Shapes(columns, dice).condition()
    where = made(values, Random(f"{SEED} literals {literals} of {number}"))
    return Query(number, kind, where, asked, counts)


_MADE_BY = [Path(__file__).with_name(f"{n}.py") for n in ("columns", "queries", "shapes", "values")]


def queries(folder: Path, rows: str, literals: int) -> list[Query]:
    """All queries on a table, with this set of literals; kept beside the table's folder.

    Args:
        rows: A key of `COLUMNS`.
    """
    made_by = zlib.crc32(b"".join(each.read_bytes() for each in _MADE_BY))
    kept = folder.with_name(f"{folder.name}.queries-{made_by:08x}.json")
    if not kept.is_file():
        values, columns = Values(folder, COLUMNS[rows]), COLUMNS[rows]
        made = [
            [asdict(query(columns, values, number, each)) for number in range(QUERIES)]
            for each in range(LITERALS)
        ]
        kept.write_text(json.dumps(made, indent=0))
    found = json.loads(kept.read_text())[literals]
    return [Query(**{**each, "columns": tuple(each["columns"])}) for each in found]
