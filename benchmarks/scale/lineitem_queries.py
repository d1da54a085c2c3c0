"""The queries on lineitem: 24 of all kinds that an index may answer, and filters without one."""

import re
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from benchmarks.bench_table import base_files
from benchmarks.scale.lineitem import COLUMNS
from benchmarks.scale.queries import Query

Where = Callable[[Random], str]

THREE = ("l_orderkey", "l_quantity", "l_shipmode")
_FIRST_DAY, _DAYS = date(1992, 1, 3), 2_500
_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")


def _one_of(values: tuple[str, ...]) -> Callable[[Random], str]:
    return lambda dice: f"'{dice.choice(values)}'"


def _day(dice: Random, days: int = _DAYS) -> str:
    return f"DATE '{_FIRST_DAY + timedelta(dice.randrange(days))}'"


def _days(width: int, column: str = "l_shipdate") -> Where:
    def where(dice: Random) -> str:
        first = _FIRST_DAY + timedelta(dice.randrange(_DAYS - width))
        return f"{column} BETWEEN DATE '{first}' AND DATE '{first + timedelta(width - 1)}'"

    return where


def _price(width: float) -> Where:
    def where(dice: Random) -> str:
        low = dice.randrange(1_000_000, 6_000_000) / 100
        return f"l_extendedprice BETWEEN {low:.2f} AND {low + width:.2f}"

    return where


def _joined(form: str, *parts: Where) -> Where:
    return lambda dice: form.format(*(f"({each(dice)})" for each in parts))


class Literals:
    """What conditions are made of: numbers by the table's scale, texts from one of its files."""

    def __init__(self, table: Path, scale: float) -> None:
        comments = pq.read_table(base_files(table)[0], columns=["l_comment"])["l_comment"]
        some = comments.slice(0, 200_000).to_pylist()
        words = Counter(word for each in some for word in set(re.findall(r"[a-z]+", each)))
        self.comments = [each for each in some[:20_000] if len(each) > 24 and "'" not in each]
        # Comments are cut from one long text, so words at their ends are cut, too.
        self.rare = sorted(w for w, times in words.items() if len(w) > 4 and times <= 3)
        self.orders = int(1_500_000 * scale)
        self.parts, self.suppliers = int(200_000 * scale), max(1, int(10_000 * scale))

    def order(self, dice: Random) -> int:
        """The key of an order: of 32 numbers, eight are used."""
        number = dice.randrange(self.orders)
        return number // 8 * 32 + number % 8 + 1

    def part(self, dice: Random) -> str:
        """An equality that about 30 rows fulfil."""
        return f"l_partkey = {dice.randrange(1, self.parts)}"

    def supplier(self, dice: Random) -> str:
        """An equality that about 600 rows fulfil."""
        return f"l_suppkey = {dice.randrange(1, self.suppliers + 1)}"

    def piece(self, dice: Random) -> str:
        """Twelve characters of the middle of a comment."""
        return str(dice.choice(self.comments)[6:18])

    def start(self, dice: Random) -> str:
        """The first nine characters of a comment."""
        return str(dice.choice(self.comments)[:9])


def lineitem_queries(table: Path, scale: float) -> list[Query]:
    """The 24 queries."""
    known = Literals(table, scale)
    part, supplier = known.part, known.supplier
    modes = _one_of(_MODES)

    def order(dice: Random) -> str:
        return f"l_orderkey = {known.order(dice)}"

    def parts(dice: Random) -> str:
        some = dice.sample(range(1, known.parts), min(100, known.parts - 1))
        return f"l_partkey IN ({', '.join(map(str, some))})"

    def orders(dice: Random) -> str:
        some = {known.order(dice) for _ in range(min(10_000, known.orders // 2))}
        return f"l_orderkey IN ({', '.join(map(str, sorted(some)))})"

    def mode(dice: Random) -> str:
        return f"l_shipmode = {modes(dice)}"

    def quantity(sign: str, least: int, most: int) -> Where:
        return lambda dice: f"l_quantity {sign} {dice.randint(least, most)}"

    def day(dice: Random) -> str:
        return f"l_shipdate = {_day(dice)}"

    def returned(dice: Random) -> str:
        return f"l_returnflag = '{dice.choice('ANR')}'"

    def few_orders(dice: Random) -> str:
        low = known.order(dice)
        return f"l_orderkey BETWEEN {low} AND {low + 64}"

    return [
        Query("one key", order, columns=THREE),
        Query("one key, 16 columns", order, columns=COLUMNS),
        Query("a few keys in order", few_orders, columns=THREE),
        Query("a part", part, columns=THREE),
        Query("a part, 16 columns", part, columns=COLUMNS),
        Query("a supplier", supplier, columns=THREE),
        Query("no row", lambda dice: f"l_partkey = {10**9 + dice.randrange(10**6)}", columns=THREE),
        Query("a day", day, columns=THREE),
        Query("a month", _days(30), columns=THREE),
        Query("a narrow range without order", _price(0.5), columns=THREE),
        Query("a rare word", lambda d: d.choice(known.rare), columns=THREE, words_of="l_comment"),
        Query("LIKE '%x%'", lambda dice: f"l_comment LIKE '%{known.piece(dice)}%'", columns=THREE),
        Query("LIKE 'x%'", lambda dice: f"l_comment LIKE '{known.start(dice)}%'", columns=THREE),
        Query(
            "OR of three columns",
            _joined("{} OR {} OR {}", part, _price(0.5), order),
            columns=THREE,
        ),
        Query("AND NOT", _joined("{} AND NOT ({} OR {})", supplier, mode, returned), columns=THREE),
        Query("IN of 100", parts, columns=THREE),
        Query("IN of 10,000", orders, columns=THREE),
        Query("two equalities", _joined("{} AND {}", supplier, mode), columns=THREE),
        Query("equality and half", _joined("{} AND {}", day, quantity("<", 20, 30)), columns=THREE),
        Query(
            "two wide conditions", _joined("{} AND {}", mode, quantity("<", 2, 9)), columns=THREE
        ),
        Query("count of a value", mode, columns=THREE, counts=True),
        Query("count of a month", _days(30), columns=THREE, counts=True),
        Query(
            "count of a month and a value",
            _joined("{} AND {}", _days(30), mode),
            columns=THREE,
            counts=True,
        ),
        Query("half of the rows", quantity("<=", 22, 28), columns=THREE),
    ]


def filters(table: Path, scale: float) -> list[Query]:
    """Conditions on columns of each type, evaluated without an index: a count of each, and three
    columns of its rows. Literals keep the share of rows about the same."""
    known = Literals(table, scale)
    instruction = _one_of(_INSTRUCTIONS)

    def discount(dice: Random) -> str:
        return f"l_discount = 0.0{dice.randrange(10)}"

    wheres: dict[str, Where] = {
        "integer": lambda dice: f"l_partkey = {dice.randrange(1, known.parts)}",
        "double": lambda dice: f"weight < {1 + dice.random():.6f}",
        "decimal": lambda dice: f"l_extendedprice < {dice.randrange(95_000, 105_000) / 100:.2f}",
        "date": lambda dice: f"l_commitdate = {_day(dice)}",
        "text =": lambda dice: f"l_shipinstruct = {instruction(dice)}",
        "text LIKE": lambda dice: f"l_comment LIKE '%{known.piece(dice)}%'",
        "text <": lambda dice: f"l_comment < 'l{dice.choice('abcdefgh')}{dice.choice('abcdefgh')}'",
        "two columns": _joined("{} AND {}", discount, lambda d: f"l_tax = 0.0{d.randrange(9)}"),
    }
    return [
        Query(f"{name}, {what}", where, indexed=False, columns=THREE, counts=what == "count")
        for name, where in wheres.items()
        for what in ("count", "3 columns")
    ]
