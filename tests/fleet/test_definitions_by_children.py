"""Definitions of the fleet's file are planned and changed in children, and then built."""

from dataclasses import replace

import pytest

from hudi_index_service import Column, open_table
from hudi_index_service.build.strategy import WHOLE_BACKFILL
from hudi_index_service.fleet.policy import DesiredIndex
from tests.fleet.conftest import ended, seen

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

    assert ended(fleet, fleet.approve("orders").id).outcome == "finished"

    built = seen(fleet, "orders", covers_ts)
    assert (built.plan, built.drift) == ((), ())


def test_index_is_created_unasked_and_a_wrong_one_is_said(supervising, policy):
    wrong = DesiredIndex("by_none", (Column(name="none"),), ("btree",))
    table = policy(definitions=(BY_TS, wrong), apply="auto", backfill=WHOLE_BACKFILL)
    fleet = supervising(table, runner="hudi_index_service.fleet.builds.runner:run")
    seen(fleet, "orders", covers_ts)
    found = seen(fleet, "orders", lambda now: now.invalid_definition)
    assert found.invalid_definition.code == "COLUMN_NOT_FOUND"
    fleet.apply([replace(table, definitions=(BY_TS,))])
    assert seen(fleet, "orders", lambda now: not (now.invalid_definition or now.drift))
