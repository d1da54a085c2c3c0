"""Which of several index types answers a condition fastest, computed without files."""

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


def cost_ms(kind: str, where: str, rows: float) -> float:
    leaf = negation_normal_form(parse_predicate(where, TABLE.schema, time_zone="UTC"))
    return answering_ms(kind, leaf, rows, KNOWN)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("a = 5", 1),
        ("a < 5", 300_000),
        (f"a IN ({', '.join(map(str, range(100)))})", 100),
        ("NOT (a IN (1, 2, 3))", 900_000),
    ],
)
def test_an_open_tree_answers_faster(where: str, rows: float) -> None:
    assert cost_ms("btree", where, rows) < cost_ms("lucene", where, rows)


@pytest.mark.parametrize("where", ["a = 5", "a < 5", "a IN (1, 2, 3)"])
@pytest.mark.parametrize("kind", ["lucene", "btree"])
def test_hbase_is_slower_than_local_index_types(kind: str, where: str) -> None:
    assert cost_ms(kind, where, 1_000) < cost_ms("hbase", where, 1_000)


def test_each_listed_value_and_each_row_adds_cost() -> None:
    assert cost_ms("lucene", "a IN (1, 2, 3)", 3) > cost_ms("lucene", "a IN (1, 2)", 3)
    assert cost_ms("lucene", "NOT (a IN (1, 2, 3))", 3) == cost_ms("lucene", "a IN (1, 2, 3)", 3)
    assert cost_ms("lucene", "a < 5", 1_000) > cost_ms("lucene", "a < 5", 100)


def test_an_unknown_index_type_costs_as_much_as_lucene() -> None:
    assert costs_of("of_a_plug_in", KNOWN) == costs_of("lucene", KNOWN)


def test_entries_are_ordered_fastest_first() -> None:
    (planned,) = TABLE.plan("a = 5", ["a"]).slices
    assert [each.index_type.name for each in planned.entries] == ["btree", "lucene"]
