"""Definitions of the fleet's file are planned and changed in children, and then built."""

from dataclasses import replace

import pytest

from hudi_index_service import Column, open_table
from hudi_index_service.build.strategy import WHOLE_BACKFILL
from hudi_index_service.fleet.policies.policy import DesiredIndex
from hudi_index_service.fleet.task import Task
from hudi_index_service.fleet.work import Listener
from tests.fleet.conftest import LIMITS, ended, seen

pytestmark = pytest.mark.slow

BY_TS = DesiredIndex("by_ts", (Column(name="ts"),), ("btree",))


def covers_ts(observation):
    return observation.status and any(
        each.definition.name == "by_ts" and each.coverage == 1 for each in observation.status
    )


def test_index_of_the_file_is_created_when_approved_and_built(supervising, policy):
    table = policy(definitions=(BY_TS,), backfill=WHOLE_BACKFILL)
    fleet = supervising(table, runner="hudi_index_service.fleet.builds.runner:run")
    waiting = seen(fleet, "orders", lambda now: now.plan)
    assert waiting.drift == ("by_ts",)
    assert "by_ts" in waiting.plan[0]
    assert [each.name for each in open_table(table.uri).indexes()] == ["by_sender"]

    assert ended(fleet, fleet.ask("orders", Task("define")).id).outcome == "finished"

    built = seen(fleet, "orders", covers_ts)
    assert (built.plan, built.drift) == ((), ())


def test_another_plan_than_the_approved_one_waits_for_another_approval(supervising, policy):
    table = policy(definitions=(BY_TS,))
    blocking = policy("sleeps", step="written", priority=9)
    fleet = supervising(table, limits=replace(LIMITS, slots=1))
    seen(fleet, "orders", lambda now: now.plan)
    fleet.apply([table, blocking])
    running = seen(fleet, "sleeps", lambda now: now.running).running
    shown = fleet.table("orders").plan_id
    approved = fleet.ask("orders", Task("define"))

    anew = DesiredIndex("anew", (Column(name="sender"),), ("btree",))
    fleet.apply([replace(table, definitions=(BY_TS, anew)), replace(blocking, enabled=False)])
    fleet.cancel(running.id)

    end = ended(fleet, approved.id)
    assert (end.outcome, end.error.code) == ("failed", "INDEX_CHANGED")
    assert [each.name for each in open_table(table.uri).indexes()] == ["by_sender"]
    new = seen(fleet, "orders", lambda now: len(now.drift) == 2 and now.plan)
    assert any("anew" in each for each in new.plan)
    old = ended(fleet, fleet.ask("orders", Task("define", plan=shown)).id)
    assert (old.outcome, old.error.code) == ("failed", "INDEX_CHANGED")

    assert ended(fleet, fleet.ask("orders", Task("define")).id).outcome == "finished"
    assert {each.name for each in open_table(table.uri).indexes()} == {
        *("by_sender", "by_ts", "anew")
    }


class Drifts(Listener):
    """Keeps the drift of each observation."""

    def __init__(self):
        self.seen = []

    def observed(self, observation):
        self.seen.append(observation.drift)


def test_what_the_fleet_is_about_to_change_is_no_drift(supervising, policy):
    drifts = Drifts()
    table = policy(definitions=(BY_TS,), apply="auto", backfill=WHOLE_BACKFILL)
    fleet = supervising(table, runner="hudi_index_service.fleet.builds.runner:run", listener=drifts)
    seen(fleet, "orders", covers_ts)

    assert set(drifts.seen) == {()}
    fleet.apply([replace(table, definitions=())])  # `on_removed` keeps the index
    assert seen(fleet, "orders", lambda now: now.drift).drift == ("by_ts",)


def test_drift_that_the_fleet_cannot_mend_is_said(supervising, policy):
    fleet = supervising(policy("killed", definitions=(BY_TS,), apply="auto"))

    assert seen(fleet, "killed", lambda now: now.drift).drift == ("by_ts",)


def test_index_is_created_unasked_and_a_wrong_one_is_said(supervising, policy):
    wrong = DesiredIndex("by_none", (Column(name="none"),), ("btree",))
    table = policy(definitions=(BY_TS, wrong), apply="auto", backfill=WHOLE_BACKFILL)
    fleet = supervising(table, runner="hudi_index_service.fleet.builds.runner:run")
    seen(fleet, "orders", covers_ts)
    found = seen(fleet, "orders", lambda now: now.invalid_definition)
    assert found.invalid_definition.code == "COLUMN_NOT_FOUND"
    fleet.apply([replace(table, definitions=(BY_TS,))])
    assert seen(fleet, "orders", lambda now: not (now.invalid_definition or now.drift))
