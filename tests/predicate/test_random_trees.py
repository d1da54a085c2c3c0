"""Rewriting random predicates keeps their results; `tests/proof` compares those with Spark's."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudi_index_service.errors import PredicateUnsupported
from hudi_index_service.predicate import evaluate, negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And, Not, Or
from tests.example_counts import examples
from tests.proof.drawn import drawn
from tests.proof.families import families
from tests.proof.predicates import Condition, predicates

FAMILY = drawn(families("UTC"), 1, 20240101)[0]
KEYS = {place.name: place for place in FAMILY.predicate_places if place.name in ("id", "part")}
ROWS = 12
DATA = pa.table(
    {
        **pa.Table.from_pylist(FAMILY.rows(1, ROWS), FAMILY.schema).to_pydict(),
        **{name: (place.values * ROWS)[:ROWS] for name, place in KEYS.items()},
    },
    pa.schema([*FAMILY.schema, *((name, place.kind.arrow) for name, place in KEYS.items())]),
)


@examples(300)
@given(predicates(FAMILY), st.integers(min_value=1, max_value=4))
def test_forms_texts_and_batches_of_a_predicate_give_the_same_results(
    condition: Condition, rows: int
) -> None:
    try:
        predicate = parse_predicate(str(condition), DATA.schema)
    except PredicateUnsupported:
        return
    expected = evaluate(predicate, DATA)

    normal = negation_normal_form(predicate)
    assert evaluate(normal, DATA) == expected
    assert negation_normal_form(normal) == normal
    assert all(not node.operand.children for node in nodes(normal) if isinstance(node, Not))

    again = parse_predicate(str(predicate), DATA.schema)
    assert str(again) == str(predicate)
    assert evaluate(again, DATA) == expected
    if "NaN" not in str(predicate):  # Arrow's NaN scalars are not equal
        assert again == predicate
        assert hash(again) == hash(predicate)

    batches = DATA.to_batches(max_chunksize=rows)
    assert pa.concat_arrays([evaluate(predicate, batch) for batch in batches]) == expected
    assert evaluate(predicate, pa.Table.from_batches(batches)) == expected
    assert len(evaluate(predicate, DATA.slice(0, 0))) == 0


def nodes(predicate):
    yield predicate
    for child in predicate.children:
        yield from nodes(child)


def test_nested_operators_of_the_same_kind_are_flattened():
    def parse(where):
        return parse_predicate(where, DATA.schema)

    flat = parse("n = 1 AND n = 2 AND n = 3")
    assert parse("n = 1 AND (n = 2 AND n = 3)") == flat
    assert isinstance(flat, And)
    assert len(flat.operands) == 3
    either = parse("(n = 1 OR n = 2) OR n = 3")
    assert isinstance(either, Or)
    assert len(either.operands) == 3
