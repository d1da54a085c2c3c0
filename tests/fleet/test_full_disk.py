"""A full disk is told where people look, and what waited for it is built afterwards."""

from datetime import UTC, datetime

import pytest

from hudi_index_service import Column
from hudi_index_service.fleet.policies.policy import DesiredIndex
from hudi_index_service.fleet.signals.attention import Code, attention
from tests.fleet.conftest import is_covered, seen

pytestmark = pytest.mark.slow


def test_tables_full_store_is_a_reason_and_nothing_is_lost(supervising, policy, tmp_path):
    (tmp_path / "is_full").touch()
    fleet = supervising(policy("full"), policy("orders"))

    ill = seen(fleet, "full", lambda now: len(now.ended) > 1)

    assert {each.error.code for each in ill.ended} == {"STORAGE_FAILED"}
    (reason,) = attention(ill, datetime.now(UTC))
    assert reason.code is Code.FAILED_BUILDS
    assert "File too large" in reason.words  # the system's word for this limit
    assert seen(fleet, "orders", is_covered)
    (tmp_path / "is_full").unlink()
    well = seen(fleet, "full", lambda now: is_covered(now) and not now.running)
    assert attention(well, datetime.now(UTC)) == ()


def test_index_that_a_full_store_did_not_take_is_created_later(supervising, policy, tmp_path):
    (tmp_path / "is_full").touch()
    by_ts = DesiredIndex("by_ts", (Column(name="ts"),), ("btree",))
    fleet = supervising(policy("full", definitions=(by_ts,), apply="auto"))

    ill = seen(fleet, "full", lambda now: now.invalid_definition)

    assert ill.invalid_definition.code == "STORAGE_FAILED"
    (tmp_path / "is_full").unlink()
    well = seen(fleet, "full", lambda now: not now.drift and len(now.status or ()) == 2)
    assert well.invalid_definition is None


def test_full_disk_of_the_service_is_a_problem_until_it_has_room(
    supervising, policy, fleet_settings
):
    folder = fleet_settings.state_folder
    folder.mkdir()
    (folder / "fleet").touch()  # where a folder should be
    fleet = supervising(policy("orders"))

    (problem,) = fleet.problems()

    assert problem.code == "STORAGE_FAILED"
    assert seen(fleet, "orders", is_covered)
