"""Planning takes a few steps for each slice, and reads nothing."""

import cProfile
import pstats
from dataclasses import replace
from functools import cache

import pytest

from benchmarks.optimizer.measure import measured
from benchmarks.optimizer.queries import Query
from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.plan import Access, QueryPlan
from hudi_index_service.optimizer.rules import optimize
from hudi_index_service.predicate.expression import Predicate
from tests.optimizer.tables import Ordered, PaperTable

WHERE = "name = 'x' AND amount BETWEEN 5 AND 900000 AND (city = 'a' OR city = 'b')"
COLUMNS = {"name": "string", "city": "string", "amount": "int64"} | {
    f"other{number}": "int64" for number in range(9)
}
CALLS_PER_SLICE = 100


def table(slices: int) -> PaperTable:
    index = {
        name: {"distinct": 1000} | ({"min": "0", "max": "999999"} if kind == "int64" else {})
        for name, kind in COLUMNS.items()
    }
    described = {"rows": 1_000_000, "mb": 100, "index": index}
    return PaperTable(COLUMNS, [described] * slices)


@cache
def calls(slices: int) -> int:
    """Function calls of all rules, given the slices' entries."""
    paper = table(slices)
    first = paper.first_plan(WHERE, ["name", "amount"])
    covered = paper.covered(first)

    def entries(plan: QueryPlan) -> QueryPlan:
        return plan if plan.predicate is None else replace(plan, slices=covered.slices)

    optimize(first, Settings(), entries)  # fills the process's caches
    profile = cProfile.Profile()
    plan = profile.runcall(optimize, first, Settings(), entries)
    assert plan.slices[0].expected is not None
    return int(pstats.Stats(profile).total_calls)


def test_the_effort_grows_linearly_with_the_slices():
    of_one, of_ten, of_hundred = calls(1), calls(10), calls(100)
    per_slice = (of_ten - of_one) / 9
    assert per_slice < CALLS_PER_SLICE
    assert of_hundred - of_ten == pytest.approx(90 * per_slice, rel=0.1)


def test_rules_see_only_the_slices_that_are_not_excluded():
    paper = table(100)
    first = paper.first_plan("amount = 5", ["name"])
    reached: list[int] = []

    def exclude(plan):
        slices = (
            each if number % 50 == 7 else each.skipped("excluded", "a rule")
            for number, each in enumerate(plan.slices)
        )
        return replace(plan, slices=tuple(slices))

    def entries(plan):
        reached.append(len(plan.slices))
        return paper.covered(plan)

    plan = optimize(first, Settings(), entries, exclude)
    assert reached == [2]
    assert [each.file_slice for each in plan.slices] == list(paper.snapshot.slices)
    assert plan.left() == [7, 57]
    assert all(plan.slices[number].expected is not None for number in plan.left())
    assert {each.reason for each in plan.slices if each.access is Access.SKIP} == {"excluded"}


def test_entries_with_equally_stored_columns_share_their_answers(monkeypatch):
    answered: list[Predicate] = []

    def answer(self, leaf, columns):
        answered.append(leaf)
        return Answer.EXACT

    monkeypatch.setattr(Ordered, "answer", answer)
    described = {"rows": 1000, "mb": 10, "index": {"name": {}, "city": {}}, "types": ["ordered"]}
    others = described | {"index": {"city": {}}}
    paper = PaperTable(COLUMNS, [described, others] * 50)
    where = "(name = 'x' OR city = 'a') AND (name = 'y' OR city = 'b')"

    plan = paper.plan(where, use_index="require")
    assert plan.count(Access.INDEX) == 100
    assert len(answered) == 2 * 2  # an OR's arms, for each layout


def test_the_benchmark_of_the_optimizer_measures_a_query_in_all_ways(golden_index):
    with open_table(golden_index("hundred_base_files", ["amount"])) as table:
        query = Query(1, "range", "amount BETWEEN 20 AND 60", ("id",), counts=False)
        row = measured(table, query, 1)
        assert set(row["ms"]) == {"auto", "index", "scan"}
        assert row["rows"] == 41
        assert 0 < row["decide_ms"] < row["plan_ms"]
        assert row["within"]
