"""Slices are read as expected. A fixture is a YAML file named after a rule: tables without files
(see `tables`), and queries for which it fires and does not fire, with their expected plans."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.errors import IndexRequired
from hudi_index_service.optimizer.history.history import stored_history
from hudi_index_service.optimizer.history.record import Observation
from hudi_index_service.optimizer.plan import QueryPlan
from hudi_index_service.optimizer.rules import optimize
from tests.optimizer.tables import PaperTable

FOLDER = Path(__file__).parent / "rules"


def cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.yaml")):
        described = yaml.safe_load(path.read_text())
        for kind in ("fires", "does_not_fire"):
            for case in described[kind]:
                table = PaperTable(**described["tables"][case.get("table", "plain")])
                yield pytest.param(table, case, id=f"{path.stem}-{kind}-{case['where']}")


@pytest.mark.parametrize(("table", "case"), list(cases()))
def test_slices_are_read_as_expected(table, case, tmp_path):
    settings = Settings(read=ReadSettings(**case.get("read", {})), state_folder=tmp_path)
    first = table.first_plan(case["where"], case.get("columns"), case.get("use_index", "auto"))
    remember(case.get("history"), first.table, settings)
    if "error" in case:
        with pytest.raises(IndexRequired, match=case["error"]):
            optimize(first, settings, table.covered)
    else:
        assert_expected(optimize(first, settings, table.covered), case)


def remember(history: Mapping[str, Any] | None, table: str, settings: Settings) -> None:
    """Records queries in the history, with their expected and actual number of rows."""
    if history is not None:
        nothing: frozenset[str] = frozenset()
        for _ in range(history["queries"]):
            seen = Observation(
                history["shape"], nothing, nothing, nothing, tuple(history["rows"]), {}
            )
            stored_history(settings).record(table, seen)


def assert_expected(plan: QueryPlan, case: Mapping[str, Any]) -> None:
    """Each slice's access and rule are as expected, and the reason has the expected words."""
    found = [f"{each.access.value} by {each.rule}" for each in plan.slices]
    assert found == case["slices"]
    for each, words in zip(plan.slices, case.get("reasons", []), strict=False):
        assert words in each.reason
    if "predicate" in case:
        assert str(plan.predicate) == case["predicate"]
    if "expected_rows" in case:
        expected = [each.expected for each in plan.slices]
        assert [each and round(each.rows.expected) for each in expected] == case["expected_rows"]
    if "entries" in case:
        assert [each.index_type.name for each in plan.slices[0].entries] == case["entries"]
