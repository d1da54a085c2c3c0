"""Which of several index types answers a condition soonest, on paper."""

import pytest

from hudi_index_service.optimizer.cost import Constants
from hudi_index_service.optimizer.cost.index_types import answering_ms, costs_of
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from tests.optimizer.tables import PaperTable

TABLE = PaperTable(
    {"a": "int64", "b": "string"},
    [{"rows": 1_000_000, "mb": 30, "types": ["lucene", "btree"], "index": {"a": {}, "b": {}}}],
)
KNOWN = Constants()


def asked(kind: str, where: str, rows: float) -> float:
    leaf = negation_normal_form(parse_predicate(where, TABLE.schema, time_zone="UTC"))
    return answering_ms(kind, leaf, rows, KNOWN)


@pytest.mark.parametrize(
    ("where", "rows"), [("a = 5", 1), ("a < 5", 300_000), ("NOT (a IN (1, 2, 3))", 900_000)]
)
def test_an_open_tree_answers_sooner(where: str, rows: float) -> None:
    assert asked("btree", where, rows) < asked("lucene", where, rows)


def test_lists_of_values_are_lucenes() -> None:
    where = f"a IN ({', '.join(map(str, range(100)))})"
    assert asked("lucene", where, 100) < asked("btree", where, 100)


@pytest.mark.parametrize("where", ["a = 5", "a < 5", "a IN (1, 2, 3)"])
@pytest.mark.parametrize("kind", ["lucene", "btree"])
def test_what_lies_in_hbase_is_asked_last(kind: str, where: str) -> None:
    assert asked(kind, where, 1_000) < asked("hbase", where, 1_000)


def test_each_value_of_a_list_and_each_row_counts() -> None:
    assert asked("lucene", "a IN (1, 2, 3)", 3) > asked("lucene", "a IN (1, 2)", 3)
    assert asked("lucene", "NOT (a IN (1, 2, 3))", 3) == asked("lucene", "a IN (1, 2, 3)", 3)
    assert asked("lucene", "a < 5", 1_000) > asked("lucene", "a < 5", 100)


def test_a_type_that_nobody_measured_counts_like_lucene() -> None:
    assert costs_of("of somebody", KNOWN) == costs_of("lucene", KNOWN)


def test_the_first_to_be_opened_is_the_one_that_answers_sooner() -> None:
    (planned,) = TABLE.plan("a = 5", ["a"]).slices
    assert [each.index_type.name for each in planned.entries] == ["btree", "lucene"]
