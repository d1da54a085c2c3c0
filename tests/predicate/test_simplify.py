"""A simplified predicate is TRUE for the same rows, whatever the values."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index_service.predicate import evaluate, negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And, Constant, Predicate
from hudi_index_service.predicate.simplify import simplified
from tests.example_counts import examples

NAN = "CAST('NaN' AS DOUBLE)"
SCHEMA = pa.schema(
    [("n", pa.int32()), ("x", pa.float64()), ("s", pa.string()), ("d", pa.decimal128(6, 2))]
)
VALUES = {
    "n": ["-1", "0", "1", "2", "3"],
    "x": ["-1.0D", "-0.0D", "0.0D", "1.5D", "CAST('Infinity' AS DOUBLE)", NAN],
    "s": ["''", "'a'", "'ab'", "'b'", "'ü'"],
    "d": ["-0.50", "0.00", "0.50", "1.25"],
}
ROWS = pa.table(
    {
        "n": pa.array([None, -1, 0, 1, 2, 3] * 2, pa.int32()),
        "x": pa.array([None, -1, -0.0, 0.0, 1.5, float("inf"), float("nan")] + [7.0] * 5),
        "s": pa.array([None, "", "a", "ab", "abc", "b", "ü"] + ["z"] * 5),
        "d": pa.array([None, "-0.50", "0.00", "0.50", "1.25", "9.99"] * 2).cast(SCHEMA[3].type),
    }
)
BATCHES = ROWS.to_batches()


@st.composite
def leaves(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(["n", "x", "x", "s", "d"]))
    value = st.sampled_from(VALUES[column])
    kind = draw(st.sampled_from(["compare", "compare", "compare", "in", "null", "like"]))
    if kind == "compare":
        operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
        leaf = f"{column} {operator} {draw(value)}"
    elif kind == "in":
        listed = draw(st.lists(value, min_size=1, max_size=3))
        leaf = f"{column} IN ({', '.join([*listed, *draw(st.sampled_from([[], ['NULL']]))])})"
    elif kind == "like" and column == "s":
        leaf = f"s LIKE '{draw(st.sampled_from(['a%', '%b', '%', 'ab']))}'"
    else:
        leaf = f"{column} IS NULL"
    return f"NOT ({leaf})" if draw(st.booleans()) else leaf


PREDICATES = st.recursive(
    leaves(),
    lambda below: st.builds(
        lambda word, some: "(" + f" {word} ".join(some) + ")",
        st.sampled_from(["AND", "OR"]),
        st.lists(below, min_size=2, max_size=4),
    ),
    max_leaves=8,
)


def true_rows(predicate: Predicate) -> list[bool]:
    if isinstance(predicate, Constant):
        return [predicate.value is True] * ROWS.num_rows
    found = [evaluate(predicate, batch).fill_null(False).to_pylist() for batch in BATCHES]
    return [each for batch in found for each in batch]


@examples(400)
@given(PREDICATES)
def test_simplified_predicate_keeps_the_same_rows(where: str) -> None:
    predicate = negation_normal_form(parse_predicate(where, SCHEMA, time_zone="UTC"))
    shorter = simplified(predicate)
    assert true_rows(shorter) == true_rows(predicate), str(shorter)
    assert len(list(shorter.leaves())) <= len(list(predicate.leaves()))


@pytest.mark.parametrize(
    "where", ["n > 1", "n > 1 AND s = 'a'", "n > 1 AND n < 3", "n = 1 OR n > 1"]
)
def test_minimal_predicate_is_returned_unchanged(where: str) -> None:
    predicate = negation_normal_form(parse_predicate(where, SCHEMA, time_zone="UTC"))
    assert simplified(predicate) is predicate


def test_full_text_and_patterns_are_left_to_the_index() -> None:
    predicate = negation_normal_form(
        parse_predicate("s = 'a' AND s RLIKE 'x' AND s LIKE 'a%'", SCHEMA, time_zone="UTC")
    )
    shorter = simplified(predicate)
    assert isinstance(shorter, And)
    assert [str(each) for each in shorter.operands] == ["`s` = 'a'", "`s` RLIKE 'x'"]
