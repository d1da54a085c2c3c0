"""Bounds rule out a predicate only if no row can make it TRUE."""

import random
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_index_service.build.entry.column_facts import Extremes
from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.predicate import evaluate, negation_normal_form, parse_predicate
from hudi_index_service.predicate.bounds import UNKNOWN, ValueBounds, may_match
from hudi_index_service.predicate.expression import BoundColumn
from hudi_index_service.predicate.values import bound_of
from tests.example_counts import share

NAN = float("nan")
TYPES: dict[str, pa.DataType] = {
    "i": pa.int32(),
    "d": pa.float64(),
    "f": pa.float32(),
    "s": pa.string(),
    "n": pa.decimal128(9, 2),
    "b": pa.bool_(),
    "day": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "raw": pa.binary(),
}
SCHEMA = pa.schema(list(TYPES.items()))
VALUES: dict[str, list[object]] = {
    "i": [-3, 0, 5, 7, 2**31 - 1],
    "d": [-0.0, 0.0, 1.5, NAN, float("inf"), -2.5, 1e300],
    "f": [-0.0, 0.0, 0.1, NAN, 2.5],
    "s": ["", "a", "ab", "ab%", "b", "ä", "😀x", "z" * 200],
    "n": [Decimal("-1.50"), Decimal("0.00"), Decimal("3.10")],
    "b": [True, False],
    "day": [date(1, 1, 1), date(1969, 12, 31), date(2026, 1, 1)],
    "t": [datetime(1960, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, 2, 3, 4, tzinfo=UTC)],
    "raw": [b"", b"a", b"ab", b"\xff"],
}
LEAVES = [
    "i = 5",
    "i <> 5",
    "i < 0",
    "i <= -3",
    "i > 7",
    "i >= 2147483647",
    "i <=> 7",
    "NOT (i <=> 7)",
    "i IN (1, 5)",
    "i NOT IN (5, 7)",
    "i IN (1, NULL)",
    "i NOT IN (1, NULL)",
    "i BETWEEN 6 AND 9",
    "i IS NULL",
    "i IS NOT NULL",
    "i = 3000000000",
    "d = 0.0D",
    "d = CAST('NaN' AS DOUBLE)",
    "d > 1.5D",
    "d >= CAST('Infinity' AS DOUBLE)",
    "d < CAST('NaN' AS DOUBLE)",
    "d <> 1.5D",
    "d IN (1e300D, CAST('NaN' AS DOUBLE))",
    "NOT (d < 1.5D)",
    "f > 0.1D",
    "f = 2.5D",
    "s = 'ab'",
    "s > 'ab'",
    "s < 'a'",
    "s LIKE 'ab%'",
    "s LIKE 'ab%x'",
    "s LIKE 'b_'",
    "s LIKE '%b'",
    "s LIKE '😀%'",
    "s LIKE 'z'",
    "s LIKE '\ufffd%'",
    "s NOT LIKE 'a%'",
    "s IN ('b', 'c')",
    "n = 0",
    "n > 3.05",
    "n < -1.5",
    "b",
    "NOT b",
    "b IS NULL",
    "day = DATE'1969-12-31'",
    "day > DATE'2000-01-01'",
    "t < TIMESTAMP'1970-01-01 00:00:00'",
    "t >= TIMESTAMP'2026-01-01 01:02:03.000004'",
    "raw = X'6162'",
    "raw > X'FE'",
    "TRUE",
    "FALSE",
    "NULL",
]


def bound(known: Mapping[str, ValueBounds], column: BoundColumn) -> ValueBounds:
    return known[column.name]


def exact(column: pa.Array) -> ValueBounds:
    """Bounds of the values, computed by Arrow."""
    floating = pa.types.is_floating(column.type)
    has_nan = floating and pc.any(pc.is_nan(column)).as_py() is True
    found = pc.min_max(column.filter(pc.invert(pc.is_nan(column))) if floating else column)
    known = found["min"].is_valid
    return ValueBounds(
        may_be_null=column.null_count > 0,
        may_be_value=column.null_count < len(column),
        least=bound_of(found["min"]) if known else None,
        greatest=bound_of(found["max"]) if known else None,
        may_be_nan=has_nan,
    )


def from_manifest(column: pa.Array) -> ValueBounds:
    """Bounds of the values as an entry's manifest stores them."""
    extremes = Extremes()
    extremes.add(column)
    return StoredColumn(
        name="c",
        type=str(column.type),
        fields=("keyword",),
        null_count=column.null_count,
        minimum=extremes.minimum,
        maximum=extremes.maximum,
    ).bounds(len(column))


def without_null_and_nan(column: pa.Array) -> ValueBounds:
    """Bounds that do not say whether there are NULLs or NaNs."""
    known = exact(column)
    return ValueBounds(least=known.least, greatest=known.greatest)


@pytest.mark.parametrize("bounds_of", [exact, from_manifest, without_null_and_nan])
def test_matching_rows_are_never_ruled_out(
    bounds_of: Callable[[pa.Array], ValueBounds],
) -> None:
    dice = random.Random(51)
    leaves = [parse_predicate(where, SCHEMA, time_zone="UTC") for where in LEAVES]
    ruled_out = matched = 0
    for _ in range(share(120)):
        rows = dice.randrange(1, 4)
        table = pa.record_batch(
            [
                pa.array([dice.choice([*VALUES[name], None]) for _ in range(rows)], kind)
                for name, kind in TYPES.items()
            ],
            schema=SCHEMA,
        )
        known = {name: bounds_of(table.column(name)) for name in TYPES}
        texts = [f"({where})" for where in dice.sample(LEAVES, 3)]
        tree = f"NOT ({texts[0]} AND {texts[1]}) OR {texts[2]}"
        trees = [parse_predicate(tree, SCHEMA, time_zone="UTC")]
        for predicate in (*leaves, *trees):
            some = pc.any(evaluate(predicate, table)).as_py() is True
            may = may_match(negation_normal_form(predicate), partial(bound, known))
            assert may or not some, f"{predicate} on {table.to_pylist()}"
            ruled_out += not may
            matched += some
    assert matched > share(600)
    assert ruled_out > share(300)


def value_bounds(least: object = None, greatest: object = None, **more: bool) -> ValueBounds:
    return ValueBounds(least=least, greatest=greatest, **more)


@pytest.mark.parametrize(
    ("where", "bounds", "may"),
    [
        ("i = 5", value_bounds(6, 9), False),
        ("i = 5", value_bounds(1, 4), False),
        ("i = 5", value_bounds(), True),
        ("i <> 5", value_bounds(5, 5), False),
        ("i IN (1, 9)", value_bounds(2, 8), False),
        ("i IS NULL", value_bounds(may_be_null=False), False),
        ("i IS NOT NULL", value_bounds(may_be_value=False), False),
        ("i > 1", value_bounds(may_be_value=False), False),
        ("i IS NULL", value_bounds(), True),
        ("d > 5", value_bounds(1.0, 2.0), True),  # there may be NaN
        ("d > 5", value_bounds(1.0, 2.0, may_be_nan=False), False),
        ("d < -1", value_bounds(-0.0, 2.0), False),
        ("d < 0", value_bounds(-0.0, 2.0), False),
        ("d = 0", value_bounds(-0.0, -0.0, may_be_nan=False), True),
        ("s LIKE 'b%'", value_bounds(b"c", b"d"), False),
        ("s LIKE 'b%'", value_bounds(b"a", b"azz"), False),
        ("s LIKE 'b%'", value_bounds(b"a", b"b"), True),
        ("s LIKE '%b%'", value_bounds(b"c", b"d"), True),
        ("s LIKE '\ufffd%'", value_bounds(b"a", b"b"), True),
    ],
)
def test_may_match(where: str, bounds: ValueBounds, may: bool) -> None:
    predicate = negation_normal_form(parse_predicate(where, SCHEMA, time_zone="UTC"))
    assert may_match(predicate, lambda column: bounds) is may
    assert may_match(predicate, lambda column: UNKNOWN)


def test_unreadable_minimum_is_no_bound() -> None:
    column = StoredColumn(
        name="c", type="int32", fields=(), null_count=0, minimum="seven", maximum="08"
    )
    assert column.bounds(3) == ValueBounds(may_be_null=False)
