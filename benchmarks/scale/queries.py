"""The queries of `benchmarks.scale`, each of which makes as many different conditions as needed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.bench_table import base_files
from benchmarks.scale.tables import V_VALUES, distinct_u, rows_of

SEED = 18
FEW_FILES = 6
"""Base files of the table of the mixed queries."""


@dataclass(frozen=True)
class Query:
    """A query.

    Attributes:
        name: In the results.
        where: Makes a condition.
        columns: The columns returned.
        counts: Whether the query returns only the number of rows.
        words: The query for full-text indexes; "" if there is a condition.
        lance: Whether Lance runs it, too.
    """

    name: str
    where: Callable[[Random], str]
    columns: tuple[str, ...] = ("key", "amount")
    counts: bool = False
    words: str = ""
    lance: bool = True

    def wheres(self, number: int, seed: str) -> list[str]:
        """So many conditions, the same for the same seed."""
        dice = Random(f"{SEED} {self.name} {seed}")
        return [self.where(dice) for _ in range(number)]

    def options(self) -> dict[str, Any]:
        """The further options of a contestant."""
        return {"columns": list(self.columns), "counts": self.counts, "words": self.words}


def some_keys(table: Path, number: int) -> list[str]:
    """Record keys of rows of several base files."""
    files = base_files(table)
    some = files[:: max(1, len(files) // 20)]
    keys = pa.concat_tables(pq.read_table(each, columns=["key"]) for each in some)["key"]
    return [keys[place].as_py() for place in Random(SEED).sample(range(len(keys)), number)]


def _range(column: str, most: int, width: int) -> Callable[[Random], str]:
    def where(dice: Random) -> str:
        low = dice.randrange(most)
        return f"{column} BETWEEN {low} AND {low + width}"

    return where


def _any_of(values: list[int]) -> str:
    return "u IN ({})".format(", ".join(f"'u{each}'" for each in values))


def look_ups(files: int) -> list[Query]:
    """Point look-ups and narrow ranges, of which each base file may hold rows, and a query that no
    base file can match."""
    values = distinct_u(files)
    ten_rows = V_VALUES * 10 // rows_of(files)
    return [
        Query("u = x", lambda dice: f"u = 'u{dice.randrange(values)}'"),
        Query("a narrow range without order", _range("v", V_VALUES, ten_rows)),
        Query("no file can match", lambda dice: f"u = 'zz{dice.randrange(10**9)}'"),
    ]


def long_in(files: int, number: int = 10_000) -> Query:
    """IN with many values."""

    def where(dice: Random) -> str:
        values = dice.sample(range(distinct_u(files)), number)
        return _any_of(values)

    return Query(f"IN of {number:,} values", where, ("key",))


def mixed(table: Path) -> list[Query]:
    """Twenty queries on the table of six base files."""
    values, rows = distinct_u(FEW_FILES), rows_of(FEW_FILES)
    keys = iter(some_keys(table, 5_000))

    def u(dice: Random) -> str:
        return f"u = 'u{dice.randrange(values)}'"

    def city(dice: Random) -> str:
        return f"city = 'city{dice.randrange(300)}'"

    def any_of(number: int) -> Callable[[Random], str]:
        def where(dice: Random) -> str:
            return _any_of([dice.randrange(values) for _ in range(number)])

        return where

    def both(left: Callable[[Random], str], word: str, right: Callable[[Random], str]) -> Any:
        return lambda dice: f"({left(dice)}) {word} ({right(dice)})"

    amount, narrow = _range("amount", 900_000, 10_000), _range("amount", 900_000, 5)
    return [
        Query("point, two columns", u),
        Query("point, all columns", u, ("key", "u", "v", "seq", "city", "amount", "msg", "note")),
        Query("record key", lambda dice: f"key = '{next(keys)}'"),
        Query("absent value", lambda dice: f"u = 'u{values + dice.randrange(values)}'"),
        Query("count of a point", u, counts=True),
        Query("IN of 10", any_of(10)),
        Query("IN of 100", any_of(100)),
        Query("IN of 1,000", any_of(1_000)),
        Query("narrow range, no order", narrow),
        Query("narrow range, in order", _range("seq", rows, 50)),
        Query("range of 1 %", amount, ("key",)),
        Query("count of 1 %", amount, counts=True),
        Query("one of 300", city, ("amount",)),
        Query("count of one of 300", city, counts=True),
        Query("AND of two", both(city, "AND", amount)),
        Query("OR of two points", both(u, "OR", u)),
        Query("OR of point and range", both(u, "OR", narrow)),
        Query("AND NOT", both(city, "AND NOT", _range("amount", 1, 950_000))),
        Query("count of AND", both(city, "AND", amount), counts=True),
        Query("full text, a rare word", lambda dice: "msg LIKE '% tag4242'", words="tag4242"),
    ]


UNINDEXED = (
    Query(
        "filter without index, one column",
        lambda dice: f"note = 'note{dice.randrange(50_000)}'",
        ("note",),
    ),
    Query(
        "filter without index, two columns",
        lambda dice: f"note = 'note{dice.randrange(50_000)}' AND price > {dice.randrange(100)}",
        ("note", "price"),
    ),
)
