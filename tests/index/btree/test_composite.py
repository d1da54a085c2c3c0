"""Composite keys: their order, and the rows found by conditions on the first columns."""

import random
from decimal import Decimal
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service.index.btree.fields import composite_keys
from hudi_index_service.index.contract import Answer, Conjunction
from hudi_index_service.index.factory import index_type
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And, Predicate
from tests.index.conftest import IndexedData, building, joined, rows_where

TEXTS = ["", "\0", "\0\0", "\0a", "\x01", "a", "a\0", "a\0\0", "a\0b", "ab", "b", "é", "\U0010ffff"]
NUMBERS = [-(2**63), -256, -1, 0, 1, 255, 256, 2**63 - 1]
VALUES = {
    pa.string(): TEXTS,
    pa.binary(): [b"", b"\0", b"\0\0", b"\0\xff", b"\xff", b"\xff\xff"],
    pa.int64(): NUMBERS,
    pa.decimal128(38, 1): [Decimal(-(10**30)), Decimal("-0.5"), Decimal(0), Decimal(10**30)],
    pa.bool_(): [False, True],
}


@pytest.mark.parametrize(("first", "second"), [*product(VALUES, repeat=2)], ids=str)
def test_keys_sort_by_the_first_column_then_by_the_next(
    first: pa.DataType, second: pa.DataType
) -> None:
    rows = list(product([None, *VALUES[first]], [None, *VALUES[second]]))  # in order
    columns = [pa.array([row[at] for row in rows], type) for at, type in enumerate((first, second))]
    keys = composite_keys(columns).to_pylist()
    assert keys == sorted(keys)
    assert len(set(keys)) == len(rows)


def rows_of(seed: int, count: int, texts: list[str]) -> pa.Table:
    dice = random.Random(seed)

    def some(values: list[object]) -> list[object]:
        return [None if dice.random() < 0.1 else dice.choice(values) for _ in range(count)]

    return pa.table(
        {
            "s": pa.array(some(list(texts)), pa.string()),
            "n": pa.array(some(list(NUMBERS)), pa.int64()),
            "d": pa.array(some([0.0, -0.0, float("nan"), 1.5, float("-inf")]), pa.float64()),
        }
    )


@pytest.fixture(scope="module", params=["short", "long"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> IndexedData:
    """Rows with a key of three columns; long texts do not fit into it."""
    long = [text + end for text in ("x" * 300, "x" * 505, "x" * 600) for end in ("", "a", "b\0")]
    texts = TEXTS if request.param == "short" else TEXTS[:4] + long
    folder = tmp_path_factory.mktemp("composite")
    build = building(index_type("btree"), folder)
    return build(rows_of(1, 3000, texts), key=("s", "n", "d"), memory_mb=1)


def flattened(predicate: Predicate) -> Predicate:
    """The conjuncts as one look-up."""
    return Conjunction(predicate.operands) if isinstance(predicate, And) else predicate


S = [
    *("s = 'a'", "s = ''", "s IN ('a', 'b', '\\0')", "s IS NULL", "s >= 'a'", "s < 'b'"),
    *("s LIKE 'a%'", "s <=> 'é'", "s IS NOT NULL", f"s = '{'x' * 600}a'", f"s > '{'x' * 505}'"),
    *(f"s <= '{'x' * 505}a'", f"s IN ('{'x' * 300}', '{'x' * 505}a')"),
]
N = [
    *("n = 0", "n IN (-1, 256, 7)", "n > -1", "n BETWEEN -256 AND 1", "n IS NULL"),
    *("n IS NOT NULL", "n >= -9223372036854775808", "n <= 9223372036854775807"),
]
D = [
    *("d = 0", "d = CAST('NaN' AS DOUBLE)", "d > 0", "d < 1.5", "d IS NULL"),
    "d >= CAST('-Infinity' AS DOUBLE)",
]
CONDITIONS = [
    *S,
    *(f"{s} AND {n}" for s, n in product(S, N)),
    *(f"{s} AND {n} AND {d}" for s, n, d in product(S[::2], N[::2], D)),
]


def test_the_rows_found_are_those_that_spark_finds(built: IndexedData) -> None:
    answers: dict[Answer, int] = dict.fromkeys(Answer, 0)
    for where in CONDITIONS:
        predicate = negation_normal_form(parse_predicate(where, built.data.schema))
        leaf = flattened(predicate)
        answer = built.answer(leaf)
        answers[answer] += 1
        if answer is Answer.NONE:
            continue
        found, expected = built.reader.row_ids(leaf), rows_where(predicate, built.data)
        assert found >= expected, where
        if answer is Answer.EXACT:
            assert found == expected, where
        bounds = built.reader.row_bounds(leaf)
        assert bounds is not None
        assert bounds[0] <= len(expected) <= bounds[1], where
    is_cut = any(column.truncated for column in built.columns)
    assert answers[Answer.SUPERSET if is_cut else Answer.EXACT] > len(CONDITIONS) // 4


@pytest.mark.parametrize("where", ["n = 1", "n = 1 AND d > 0", "s > 'a' AND n = 1", "s <> 'a'"])
def test_conditions_that_are_no_interval_of_the_key_are_not_answered(
    built: IndexedData, where: str
) -> None:
    predicate = negation_normal_form(parse_predicate(where, built.data.schema))
    assert built.answer(flattened(predicate)) is Answer.NONE


def test_an_index_with_a_composite_key_passes_its_check(built: IndexedData) -> None:
    assert built.kind.verify(built.index, built.columns) == []


def test_parts_are_joined_with_their_composite_keys(tmp_path: Path) -> None:
    build, data, key = building(index_type("btree"), tmp_path), rows_of(2, 900, TEXTS), ("s", "n")
    parts = [build(data.slice(start, 300), key=key) for start in (0, 300, 600)]
    whole = joined(parts, tmp_path, parts[0].columns)
    predicate = negation_normal_form(parse_predicate("s = 'a' AND n > 0", data.schema))
    assert whole.reader.row_ids(flattened(predicate)) == rows_where(predicate, data) != BitMap()
    whole.reader.close()
