"""Generated conditions in Polars' own language."""

from datetime import datetime
from functools import reduce
from operator import and_, or_, xor
from random import Random

import polars as pl

from tests.engines.drawn_values import COLUMNS, PLAIN, Values

_FLOATS = {"price": pl.Float64, "ratio": pl.Float32, "place.geo.lat": pl.Float64}
_INTEGERS = {"amount": pl.Int64, "small": pl.Int32, "place.zip": pl.Int32, "ts": pl.Int64}
_TEXTS = ("name", "msg", "place.City", "id", "part")


def polars_predicate(random: Random, values: Values, depth: int = 3) -> pl.Expr:
    """A condition of comparisons, IN, ranges, patterns, their negations and connections; some parts
    are such as nothing but Polars evaluates."""
    if depth == 0 or random.random() < 0.3:
        return _leaf(random, values)
    match random.randrange(5):
        case 0:
            return ~polars_predicate(random, values, depth - 1)
        case 1 if random.random() < 0.3:
            return reduce(xor, _several(random, values, depth))
        case 1 | 2:
            return reduce(or_, _several(random, values, depth))
        case _:
            return reduce(and_, _several(random, values, depth))


def _several(random: Random, values: Values, depth: int) -> list[pl.Expr]:
    return [polars_predicate(random, values, depth - 1) for _ in range(random.randint(2, 3))]


def column(name: str) -> pl.Expr:
    """A column, or a field of a struct."""
    first, *rest = name.split(".")
    return reduce(lambda parent, part: parent.struct.field(part), rest, pl.col(first))


def _leaf(random: Random, values: Values) -> pl.Expr:
    name = random.choice([*COLUMNS, *PLAIN])
    own = column(name)
    kinds = [_compared, _compared, _compared, _listed, _listed, _between, _null, _of_other_kind]
    if name in _TEXTS:
        kinds.append(_pattern)
    if name == "flag":
        kinds.append(lambda random, values, name, own: own)
    if name in _FLOATS:
        kinds.append(_not_a_number)
    return random.choice(kinds)(random, values, name, own)


def _literal(random: Random, values: Values, name: str) -> pl.Expr:
    """A value: of a type of its own, or one that Polars makes fit."""
    value = values.one(random, name)
    return pl.lit(value, dtype=_FLOATS.get(name) if random.random() < 0.5 else None)


def _compared(random: Random, values: Values, name: str, own: pl.Expr) -> pl.Expr:
    literal = _literal(random, values, name)
    compare = random.choice(
        ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "eq_missing", "ne_missing"]
    )
    if random.random() < 0.1:
        return getattr(literal, compare)(own)
    return getattr(own, compare)(literal)


def _listed(random: Random, values: Values, name: str, own: pl.Expr) -> pl.Expr:
    some: list[object] = values.some(random, name)
    if random.random() < 0.2:
        some.append(None)
    kind = _FLOATS.get(name) or _INTEGERS.get(name)
    is_typed = kind is not None and random.random() < 0.5
    return own.is_in(pl.lit(pl.Series(some, dtype=kind)).implode() if is_typed else some)


def _between(random: Random, values: Values, name: str, own: pl.Expr) -> pl.Expr:
    low, high = (pl.lit(values.one(random, name)) for _ in range(2))
    return own.is_between(low, high, closed=random.choice(("both", "left", "right", "none")))


def _null(random: Random, values: Values, name: str, own: pl.Expr) -> pl.Expr:
    own = random.choice([own, pl.col("place"), pl.col("tags")])
    return own.is_null() if random.random() < 0.5 else own.is_not_null()


def _pattern(random: Random, values: Values, name: str, own: pl.Expr) -> pl.Expr:
    text = values.one(random, name)
    start = random.randint(0, len(text))
    part = text[start : start + random.randint(0, 8)]
    match random.randrange(4):
        case 0:
            return own.str.starts_with(text[:start])
        case 1:
            return own.str.ends_with(text[start:])
        case 2:
            return own.str.contains(part, literal=True)
    return own.str.contains("^[aB]")


def _not_a_number(random: Random, values: Values, name: str, own: pl.Expr) -> pl.Expr:
    return own.is_nan() if random.random() < 0.5 else own.is_not_nan()


def _of_other_kind(random: Random, values: Values, name: str, own: pl.Expr) -> pl.Expr:
    """What has to be cast, or is computed."""
    match random.randrange(8):
        case 0:
            return pl.col("amount") > random.choice([1.5, 300.0, float("nan")])
        case 1:
            return pl.col("small") < random.choice([3_000_000_000, 2**53 + 1, 10])
        case 2:
            return pl.col("ratio") == pl.lit(random.choice([0.1, 1.5, -1.5]), dtype=pl.Float64)
        case 3:
            return pl.col("born") <= datetime(1500, 1, 1, 12)
        case 4:
            return pl.col("small") == pl.col("place").struct.field("zip")
        case 5:
            return pl.col("amount") % 7 == random.randrange(7)
        case 6:
            return pl.col("name").str.to_uppercase() == "PLAIN"
    return pl.any_horizontal(pl.col("amount") == values.one(random, "amount"), pl.col("flag"))
