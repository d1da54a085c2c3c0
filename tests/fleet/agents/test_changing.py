"""Agents at the fleet's service have it build and clean, in two steps."""

import shutil
from typing import Any

from hudi_index_service import open_table
from hudi_index_service.fleet.observation import Refusal
from tests.fleet.agents.asking import OPERATE, READ, refusal
from tests.fleet.memory_fleet import seen
from tests.fleet.served import SALES_SECRET


def test_a_build_is_planned_asked_for_and_followed(ask, fleet):
    table = "sales.messages"
    wanted = {"table": table, "change": "build", "strategy": "all"}
    planned = ask(OPERATE, "plan_change", **wanted).structured_content
    assert (planned["files"], planned["bytes"]) == (0, 0)  # all is built
    assert not fleet.calls
    begun = ask(OPERATE, "apply_change", table=table, plan=planned["plan"]).structured_content
    assert fleet.calls == [("build", table, "operater", "all")]

    def state(secret: str = OPERATE) -> Any:
        return ask(secret, "change_state", request=begun["request"])

    assert state().structured_content["state"] == "waiting"
    fleet.begin(begun["request"])
    assert state(SALES_SECRET).structured_content["state"] == "running"
    fleet.end(table, "failed", Refusal("BUILD_FAILED", "A file was not there.", "Try again."))
    found = state().structured_content
    assert (found["state"], found["code"], found["built"]) == ("failed", "BUILD_FAILED", 7)
    assert refusal(ask(OPERATE, "change_state", request="made up")) == "REQUEST_UNKNOWN"


def test_a_clean_is_planned_and_asked_for(ask, fleet):
    table = "sales.messages"
    planned = ask(OPERATE, "plan_change", table=table, change="clean").structured_content
    assert not ask(OPERATE, "apply_change", table=table, plan=planned["plan"]).is_error
    assert fleet.calls == [("clean", table, "operater", False)]


def test_a_plan_is_applied_once_by_its_caller_for_its_table(ask, fleet):
    table = "sales.messages"
    assert refusal(ask(OPERATE, "apply_change", table=table, plan="made up")) == "PLAN_UNKNOWN"
    planned = ask(OPERATE, "plan_change", table=table, change="clean").structured_content
    plan = {"table": table, "plan": planned["plan"]}
    assert refusal(ask(SALES_SECRET, "apply_change", **plan)) == "PLAN_UNKNOWN"
    assert refusal(ask(READ, "apply_change", **plan)) == "REQUEST_INVALID"  # it has no such tool
    other = {**plan, "table": "hr.people"}
    assert refusal(ask(OPERATE, "apply_change", **other)) == "PLAN_UNKNOWN"
    assert not fleet.calls
    assert not ask(OPERATE, "apply_change", **plan).is_error
    assert refusal(ask(OPERATE, "apply_change", **plan)) == "PLAN_UNKNOWN"
    assert len(fleet.calls) == 1


def test_a_plan_is_outdated_once_the_table_has_changed(ask, fleet, path, tmp_path):
    copy = shutil.copytree(path, tmp_path / "own")
    fleet.add(seen("sales.own", uri=str(copy), agents="change"))
    planned = ask(OPERATE, "plan_change", table="sales.own", change="build").structured_content
    open_table(copy).create_index("by_ts", ["ts"], using="btree")
    plan = {"table": "sales.own", "plan": planned["plan"]}
    assert refusal(ask(OPERATE, "apply_change", **plan)) == "PLAN_OUTDATED"
    assert not fleet.calls


def test_what_the_fleets_file_does_not_allow_is_refused(ask, fleet, path):
    def plan(table: str, secret: str = OPERATE) -> Any:
        return ask(secret, "plan_change", table=table, change="clean")

    assert refusal(plan("hr.people")) == "ACCESS_DENIED"
    assert refusal(plan("hr.people", SALES_SECRET)) == "TABLE_NOT_FOUND"
    assert refusal(plan("sales.closed")) == "TABLE_NOT_FOUND"
    planned = plan("sales.messages").structured_content
    fleet.add(seen("sales.messages", uri=str(path)))  # the file has changed
    fleet.add(seen("sales.paused", uri=str(path), agents="change", enabled=False))
    applied = ask(OPERATE, "apply_change", table="sales.messages", plan=planned["plan"])
    assert refusal(applied) == "ACCESS_DENIED"
    planned = plan("sales.paused").structured_content
    applied = ask(OPERATE, "apply_change", table="sales.paused", plan=planned["plan"])
    assert refusal(applied) == "CALLBACK_REFUSED"
    assert not fleet.calls
