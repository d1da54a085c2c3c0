"""The queries of `benchmarks.scale`, each of which makes as many different conditions as needed."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.bench_table import base_files
from benchmarks.scale.contestant import How
from benchmarks.scale.tables import V_VALUES, distinct_u, rows_of

SEED = 18
FEW_FILES = 6
"""Base files of the table whose index also stores values."""


@dataclass(frozen=True)
class Query(How):
    """A query.

    Attributes:
        name: In the results.
        where: Makes a condition.
    """

    name: str
    where: Callable[[Random], str]

    def wheres(self, number: int, seed: str) -> list[str]:
        """So many conditions, the same for the same seed."""
        dice = Random(f"{SEED} {self.name} {seed}")
        return [self.where(dice) for _ in range(number)]

    @property
    def how(self) -> How:
        """What it returns, and how it is run."""
        return How(**{each.name: getattr(self, each.name) for each in fields(How)})


def some_keys(table: Path, number: int) -> list[str]:
    """Record keys of rows anywhere in the table."""
    keys = pa.concat_tables(pq.read_table(each, columns=["key"]) for each in base_files(table))
    places = Random(SEED).sample(range(len(keys)), min(number, len(keys)))
    found: list[str] = keys["key"].take(pa.array(places)).to_pylist()
    return found


def _range(column: str, most: int, width: int) -> Callable[[Random], str]:
    def where(dice: Random) -> str:
        low = dice.randrange(most)
        return f"{column} BETWEEN {low} AND {low + width}"

    return where


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


def without_index() -> Query:
    """A filter on a column that no index has, of which any base file may hold rows."""
    return Query("a filter without an index", lambda dice: f"note = 'note{dice.randrange(50_000)}'")


def stopped_early(files: int) -> list[Query]:
    """Queries that end once some rows are found, of which each base file has many."""
    wide = Query("LIMIT 10", _range("v", V_VALUES * 8 // 10, V_VALUES // 10), limit=10)
    return [wide, replace(wide, name="EXISTS", limit=None, exists=True)]


def of_keys(keys: list[str]) -> Query:
    """A query by all of these record keys."""
    return Query("keys", lambda _: "key IN ('{}')".format("', '".join(keys)))


def by_keys(keys: list[str]) -> list[Query]:
    """Queries by many record keys, which are spread over the base files."""

    def any_of(number: int) -> Callable[[Random], str]:
        return lambda dice: "key IN ('{}')".format("', '".join(dice.sample(keys, number)))

    return [
        Query("key IN (100)", any_of(100)),
        Query("key IN (1,000)", any_of(1_000)),
        Query(
            "tag_location of 1,000 keys",
            lambda dice: ",".join(dice.sample(keys, 1_000)),
            locates=True,
        ),
    ]


def may_get_slower(files: int, keys: list[str]) -> list[Query]:
    """Queries that are as fast as they can be without an engine for many files."""
    half = Query("half of the rows", lambda dice: f"amount < {dice.randrange(490_000, 510_000)}")
    return [
        replace(look_ups(files)[0], name="a point"),
        replace(half, name="first batch of half of the rows", first_batch=True),
        half,
        Query(
            "a long range of texts AND one key",
            lambda dice: f"u > 'u{dice.randrange(10, 20)}' AND key = '{dice.choice(keys)}'",
        ),
    ]


def of_stored_values(keys: list[str]) -> list[Query]:
    """Queries that an index which stores values answers without base files."""
    values, rows = distinct_u(FEW_FILES), rows_of(FEW_FILES)
    every = ("key", "u", "v", "seq", "city", "amount", "msg", "note")
    two = Query("point, two columns", lambda dice: f"u = 'u{dice.randrange(values)}'")
    return [
        Query("record key", lambda dice: f"key = '{dice.choice(keys)}'"),
        two,
        replace(two, name="point, all columns", columns=every),
        Query("narrow range, no order", _range("amount", 900_000, 5)),
        Query("narrow range, in order", _range("seq", rows, 50)),
        Query("range of 1 %", _range("amount", 900_000, 10_000), columns=("key",)),
    ]
