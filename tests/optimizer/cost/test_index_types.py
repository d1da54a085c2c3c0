"""Which of several index types answers a condition fastest, computed without files."""

import pytest

from hudi_index_service.index.factory import index_type
from hudi_index_service.optimizer.cost.constants import Constants
from hudi_index_service.optimizer.cost.index_types import answering_ms, costs_of
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from tests.index.plug_in import install
from tests.optimizer.tables import PaperTable

BTREE_AGAIN = """
from hudi_index_service.index.btree import BTreeIndexType
from hudi_index_service.index.contract import TypeCosts


class Plugged(BTreeIndexType):
    name = "{}"
"""

TABLE = PaperTable(
    {"a": "int64", "b": "string"},
    [{"rows": 1_000_000, "mb": 30, "types": ["lucene", "btree"], "index": {"a": {}, "b": {}}}],
)
KNOWN = Constants()


def cost_ms(kind: str, where: str, rows: float) -> float:
    leaf = negation_normal_form(parse_predicate(where, TABLE.schema, time_zone="UTC"))
    return answering_ms(index_type(kind), leaf, rows, KNOWN)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("a = 5", 1),
        ("a < 5", 300_000),
        (f"a IN ({', '.join(map(str, range(100)))})", 100),
        ("NOT (a IN (1, 2, 3))", 900_000),
    ],
)
def test_an_open_tree_answers_faster(where, rows):
    assert cost_ms("btree", where, rows) < cost_ms("lucene", where, rows)


@pytest.mark.parametrize("where", ["a = 5", "a < 5", "a IN (1, 2, 3)"])
@pytest.mark.parametrize("kind", ["lucene", "btree"])
def test_hbase_is_slower_than_local_index_types(kind, where):
    assert cost_ms(kind, where, 1_000) < cost_ms("hbase", where, 1_000)


def test_each_listed_value_and_each_row_adds_cost():
    assert cost_ms("lucene", "a IN (1, 2, 3)", 3) > cost_ms("lucene", "a IN (1, 2)", 3)
    assert cost_ms("lucene", "NOT (a IN (1, 2, 3))", 3) == cost_ms("lucene", "a IN (1, 2, 3)", 3)
    assert cost_ms("lucene", "a < 5", 1_000) > cost_ms("lucene", "a < 5", 100)


def test_a_plug_in_brings_its_costs_or_costs_as_much_as_lucene(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    own = "\n    costs = TypeCosts(1.0, 2.0, 3.0, 4.0)\n"
    install(tmp_path, "unmeasured", BTREE_AGAIN.format("unmeasured"))
    install(tmp_path, "measured", BTREE_AGAIN.format("measured") + own)
    assert costs_of(index_type("unmeasured"), KNOWN) == costs_of(index_type("lucene"), KNOWN)
    assert costs_of(index_type("measured"), KNOWN) == (1.0, 2.0, 3.0, 4.0)


def test_entries_are_ordered_fastest_first():
    (planned,) = TABLE.plan("a = 5", ["a"]).slices
    assert [each.index_type.name for each in planned.entries] == ["btree", "lucene"]
