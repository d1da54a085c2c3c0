"""Tables are looked at, queued and built; what goes wrong with one is said, and harms no other."""

import logging
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest

from hudi_index_service import open_table
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import (
    CallbackRefused,
    ConfigInvalid,
    RequestUnknown,
    TableNotInFleet,
)
from hudi_index_service.fleet.builds.process import Limits
from hudi_index_service.fleet.ledger import Ledger
from hudi_index_service.fleet.observation import EndedBuild, RunningBuild
from hudi_index_service.fleet.policies.policy import DesiredIndex
from hudi_index_service.fleet.policies.references import FromFile
from hudi_index_service.fleet.shard import Shard
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.task import Task
from hudi_index_service.fleet.work import Listener
from hudi_index_service.index.metadata.build_records import BuildRecords
from hudi_index_service.index.metadata.definitions import Column
from tests.fleet.conftest import LIMITS, ended, is_covered, seen
from tests.programs import awaited

pytestmark = pytest.mark.slow

HOUR = timedelta(hours=1)


class Recorded(Listener):
    """Keeps what it is told."""

    def __init__(self):
        self.ended, self.mutes, self.requests = [], [], Counter()

    def build_ended(self, policy, ended, seconds):
        self.ended.append((policy.name, ended.outcome, ended.trigger, seconds >= 0))

    def counted(self, counted):
        self.requests.update(counted.requests)

    def muted(self, table, code, until):
        self.mutes.append((table, code, until > datetime.now(UTC)))


def test_due_table_is_built_by_a_poll_and_seen(supervising, policy):
    listener = Recorded()
    fleet = supervising(policy(), listener=listener)

    found = seen(fleet, "orders", is_covered)

    last = seen(fleet, "orders", lambda now: now.ended and not now.running).ended[-1]
    assert (last.outcome, last.trigger, last.error, last.built) == ("finished", "poll", None, 1)
    assert isinstance(fleet.build_of(last.id), EndedBuild)
    assert listener.ended[0] == ("orders", "finished", "poll", True)
    assert listener.requests["write"] > 0  # all of which a child made
    assert found.unreachable_polls == 0


def test_log_has_a_line_for_each_change_and_none_for_a_look(supervising, policy, caplog):
    gone = replace(policy("gone"), uri="/tables/none")
    with caplog.at_level(logging.INFO, "hudi_index_service"):
        fleet = supervising(policy(), gone)
        looks = {seen(fleet, "orders", lambda now: is_covered(now) and not now.running).at}
        seen(fleet, "orders", lambda now: looks.add(now.at) or len(looks) > 4)
        seen(fleet, "gone", lambda now: now.unreachable_polls > 4)

    lines = [each for each in caplog.records if each.name.startswith("hudi_index_service")]
    assert sorted(each.getMessage() for each in lines) == [
        "gone cannot be looked at: TABLE_NOT_FOUND: Nothing is stored at /tables/none.",
        "orders: build begins: 1 entry",
        "orders: build finished: 1 built",
    ]
    assert {each.table for each in lines} == {fleet.table("orders").policy.uri, gone.uri}
    assert len({each.build for each in lines if "build " in each.getMessage()}) == 1


def test_commit_is_built_after_a_callback_and_callbacks_share_a_build(supervising, policy, golden):
    table = policy(step="written", poll=HOUR)
    fleet = supervising(table)
    seen(fleet, "orders", lambda now: now.ended and not now.running)
    golden("messages_of_users").put(Path(table.uri), "clustered")

    requests = [fleet.callback(f"file://{table.uri}/") for _ in range(3)]

    assert seen(fleet, "orders", is_covered)
    assert ended(fleet, requests[0].id).trigger == "callback"
    assert len({each.id for each in requests}) <= 2  # the first may run already


def test_new_instant_is_noticed(supervising, policy, golden):
    table = policy(step="written")
    fleet = supervising(table)
    seen(fleet, "orders", lambda now: now.ended and not now.running)
    golden("messages_of_users").put(Path(table.uri), "clustered")
    assert seen(fleet, "orders", is_covered)


def test_table_is_built_by_callbacks_alone_if_so_wanted(supervising, policy, golden):
    table = policy(step="written", woken_by="callback")
    fleet = supervising(table)
    seen(fleet, "orders", lambda now: now.ended and not now.running)
    golden("messages_of_users").put(Path(table.uri), "clustered")
    due = seen(fleet, "orders", lambda now: now.status and now.status[0].due)
    assert (due.queued, due.running) == (None, None)
    fleet.callback(table.uri)
    assert seen(fleet, "orders", is_covered)

    fleet.apply([replace(table, woken_by="poll")])
    with pytest.raises(CallbackRefused):
        fleet.callback(table.uri)


def test_table_that_leaves_while_it_waits_is_built_when_it_comes_back(supervising, policy):
    blocking, table = policy("sleeps", priority=9), policy()
    fleet = supervising(blocking, limits=replace(LIMITS, slots=1))
    running = seen(fleet, "sleeps", lambda now: now.running).running
    fleet.apply([blocking, table])
    seen(fleet, "orders", lambda now: now.queued)
    fleet.apply([blocking])
    fleet.apply([blocking, table])
    fleet.cancel(running.id)
    assert seen(fleet, "orders", is_covered)


def test_request_has_an_id_and_a_key(supervising, policy):
    fleet = supervising(policy("works", step="written"))

    first = fleet.ask("works", Task("build", Strategy.ALL), key="k", requested_by="anna")
    again = fleet.ask("works", Task("build", Strategy.ALL), key="k", requested_by="anna")

    assert (again.id, again.repeated, first.repeated) == (first.id, True, False)
    end = ended(fleet, first.id)
    assert (end.trigger, end.requested_by, end.built) == ("request", "anna", 1)
    assert fleet.ask("works", Task("build", Strategy.ALL), key="k").repeated  # after its end, too
    assert not fleet.ask("works", Task("build", Strategy.ALL), key="other").repeated


def test_requested_strategy_prevails(supervising, policy):
    fleet = supervising(policy(step="written", poll=HOUR))
    first = seen(fleet, "orders", lambda now: now.ended).ended[0]
    assert first.built == 0
    asked = fleet.ask("orders", Task("build", Strategy.ALL))
    assert ended(fleet, asked.id).built == 1


def test_clean_and_verify_are_told_in_words(supervising, policy):
    fleet = supervising(policy())
    seen(fleet, "orders", is_covered)
    assert ended(fleet, fleet.ask("orders", Task("clean", dry_run=True)).id).summary.endswith(
        "would be deleted."
    )
    verified = ended(fleet, fleet.ask("orders", Task("verify")).id)
    assert (verified.outcome, verified.action) == ("finished", "verify")
    assert verified.summary == "1 entry read, 0 damaged."
    assert {each.action for each in fleet.table("orders").ended} == {"build"}


def test_damage_is_seen(supervising, policy):
    table = policy()
    fleet = supervising(table)
    seen(fleet, "orders", is_covered)
    for packed in Path(table.uri, ".hoodie", ".index").rglob("*"):
        if packed.is_file() and "btree" in packed.as_posix() and packed.suffix != ".json":
            content = bytearray(packed.read_bytes())
            content[len(content) // 2] ^= 0xFF
            packed.write_bytes(content)

    end = ended(fleet, fleet.ask("orders", Task("verify")).id)

    assert (end.outcome, end.error.code) == ("failed", "ENTRY_INVALID")
    assert "verify" in end.error.remedy
    assert fleet.table("orders").damaged == 1
    repaired = ended(fleet, fleet.ask("orders", Task("verify", repair=True)).id)
    assert (repaired.outcome, repaired.summary) == (
        "finished",
        "1 entry read, 0 damaged, 1 repaired.",
    )
    assert fleet.table("orders").damaged == 0


def test_share_of_the_entries_is_verified_each_week(supervising, policy, fleet_settings, caplog):
    table = policy()
    ledger = Ledger(fleet_settings.state_folder / "fleet")
    ledger.verify(table.uri, datetime.now(UTC) - timedelta(days=8), 0)
    ledger.close()
    with caplog.at_level(logging.INFO, "hudi_index_service.fleet"):
        fleet = supervising(table)
        seen(fleet, "orders", is_covered)
        assert awaited(lambda: "verify finished" in caplog.text, 60)
    fleet.close()
    (before,) = (each for each in caplog.records if each.getMessage().count("verify finished"))
    assert before.trigger == "schedule"
    ledger = Ledger(fleet_settings.state_folder / "fleet")
    assert datetime.now(UTC) - ledger.table(table.uri).verified < timedelta(days=1)
    ledger.close()


FAULTS = [
    ("sleeps", "hung", "BUILD_HUNG"),
    ("killed", "died", "BUILD_DIED"),
    ("segfaults", "died", "BUILD_DIED"),
    ("grows", "out_of_memory", "BUILD_OUT_OF_MEMORY"),
    ("breaks", "failed", "INDEX_SERVICE_ERROR"),
]


def test_faults_are_said_and_harm_no_other_table(supervising, policy):
    ill = [policy(name) for name, _, _ in FAULTS]
    ill[0] = replace(ill[0], build_timeout=timedelta(seconds=1))
    well = [policy(f"orders-{number}") for number in range(3)]
    fleet = supervising(*ill, *well)

    for table in well:
        assert seen(fleet, table.name, is_covered)
    for name, outcome, code in FAULTS:
        observation = seen(fleet, name, lambda now: now.ended)
        assert (observation.ended[0].outcome, observation.ended[0].error.code) == (outcome, code)
        assert observation.ended[0].error.remedy
    assert seen(fleet, "killed", lambda now: len(now.ended) > 1).ended[0].trigger == "retry"


def test_operators_request_waits_for_no_rest(supervising, policy, fleet_settings):
    hook = fleet_settings.hook.model_copy(update={"backoff_seconds": 3600.0})
    long_rest = fleet_settings.model_copy(update={"hook": hook})
    hangs = policy("sleeps", build_timeout=timedelta(seconds=1))
    fleet = supervising(policy("breaks"), hangs, settings=long_rest)
    seen(fleet, "sleeps", lambda now: now.running)
    asked = fleet.ask("sleeps", Task("build"), requested_by="anna")
    resting = seen(fleet, "breaks", lambda now: now.ended and now.queued and not now.running)
    assert len(resting.ended) == 1

    again = fleet.ask("breaks", Task("build"), requested_by="anna")

    assert ended(fleet, again.id).outcome == "failed"
    assert ended(fleet, asked.id).outcome == "hung"  # another time


def test_progress_is_seen_and_cancelled(supervising, policy):
    fleet = supervising(policy("sleeps"))

    running = seen(fleet, "sleeps", lambda now: now.running and now.running.progress).running
    assert running.progress.files_done == 1
    assert isinstance(fleet.build_of(running.id), RunningBuild)
    fleet.cancel(running.id, requested_by="anna")

    assert ended(fleet, running.id).outcome == "cancelled"
    found = seen(fleet, "sleeps", lambda now: now.ended)
    assert found.running is None
    assert found.queued is None  # no poll asks for it again
    fleet.cancel(running.id)
    with pytest.raises(RequestUnknown):
        fleet.cancel("none")
    with pytest.raises(RequestUnknown):
        fleet.build_of("none")


def test_waiting_request_is_cancelled(supervising, policy):
    fleet = supervising(policy("sleeps"), limits=replace(LIMITS, slots=1))
    seen(fleet, "sleeps", lambda now: now.running)
    asked = fleet.ask("sleeps", Task("build", Strategy.ALL))
    assert fleet.build_of(asked.id) is None
    assert fleet.table("sleeps").queued is not None
    fleet.cancel(asked.id)
    assert ended(fleet, asked.id).outcome == "cancelled"
    assert fleet.table("sleeps").queued is None


def test_store_that_does_not_answer_is_seen_and_nothing_is_lost(supervising, policy, caplog):
    table = policy()
    away = Path(f"{table.uri}-away")
    Path(table.uri).rename(away)
    with caplog.at_level(logging.INFO, "hudi_index_service.fleet"):
        fleet = supervising(table)
        gone = seen(fleet, "orders", lambda now: now.unreachable_polls >= 3)
        assert gone.error.code == "TABLE_NOT_FOUND"
        assert gone.unreachable_since <= gone.at
        asked = fleet.ask("orders", Task("build"), requested_by="anna")
        away.rename(table.uri)
        back = seen(fleet, "orders", is_covered)
    assert (back.unreachable_polls, back.error) == (0, None)
    assert ended(fleet, asked.id)
    assert caplog.text.count("cannot be looked at") == 1  # none a poll
    assert caplog.text.count("can be looked at again") == 1


def test_paused_and_unknown_tables_are_not_built(supervising, policy):
    table = policy(enabled=False)
    fleet = supervising(table)
    assert seen(fleet, "orders", lambda now: now.status).queued is None
    for ask in (lambda: fleet.ask("orders", Task("build")), lambda: fleet.callback(table.uri)):
        with pytest.raises(CallbackRefused):
            ask()
    for ask in (lambda: fleet.ask("none", Task("build")), lambda: fleet.callback("/none")):
        with pytest.raises(TableNotInFleet):
            ask()

    fleet.apply([replace(table, enabled=True)])
    assert seen(fleet, "orders", is_covered)


def test_fleet_is_reloaded(supervising, policy):
    first, second = policy("works-1", step="written"), policy("works-2", step="written")
    fleet = supervising(first)
    seen(fleet, "works-1", lambda now: now.ended)

    fleet.apply([second, replace(first, priority=3)])
    assert [each.policy.priority for each in fleet.tables()] == [3, 0]
    fleet.apply([second])

    assert [each.policy.name for each in fleet.tables()] == ["works-2"]
    assert seen(fleet, "works-2", lambda now: now.ended)


def test_build_of_another_process_is_awaited(supervising, policy):
    table = policy()
    with open_table(table.uri) as opened:
        records = BuildRecords(opened.hudi_table.storage, stale_seconds=120)
    with records.start({}) as other:
        fleet = supervising(table)
        waiting = seen(fleet, "orders", lambda now: now.queued)
        assert not waiting.ended
        other.finish({"state": "finished"})
    assert seen(fleet, "orders", is_covered)
    assert fleet.table("orders").ended[-1].outcome == "finished"


def test_two_services_on_one_table_do_no_harm(supervising, policy):
    table = policy()
    services = [supervising(table), supervising(table)]
    for each in services:
        assert seen(each, "orders", is_covered)
        assert all(end.error is None for end in each.table("orders").ended)


def test_shards_share_the_tables():
    uris = [f"s3://bucket/table-{number}" for number in range(100)]
    shards = [Shard(number, 3) for number in (1, 2, 3)]
    assert all(sum(each.has(uri) for each in shards) == 1 for uri in uris)
    assert all(sum(map(each.has, uris)) > 10 for each in shards)
    assert Shard.parse("2/3") == shards[1]
    for wrong in ("", "0/3", "4/3", "1", "a/b", "1/0"):
        with pytest.raises(ConfigInvalid):
            Shard.parse(wrong)


def test_service_keeps_the_tables_of_its_shard(supervising, policy):
    tables = [policy(f"works-{number}", step="written") for number in range(4)]
    names = [
        [each.policy.name for each in supervising(*tables, shard=Shard(number, 2)).tables()]
        for number in (1, 2)
    ]
    assert sorted(names[0] + names[1]) == [each.name for each in tables]


def test_ending_service_finishes_what_runs_and_takes_nothing_more(supervising, policy):
    fleet = supervising(policy("works", step="written"), policy("sleeps"))
    running = seen(fleet, "sleeps", lambda now: now.running and now.running.progress).running
    asked = fleet.ask("sleeps", Task("build", Strategy.ALL), requested_by="anna")
    pids = fleet.pids()

    closing = Thread(target=fleet.close, kwargs={"seconds": 0.5})
    closing.start()
    awaited(lambda: _refuses(fleet))
    closing.join()

    assert pids
    assert not fleet.pids()
    assert fleet.table("sleeps").ended == ()  # nobody cancelled it: it is to be built
    assert fleet.build_of(asked.id) is None
    assert fleet.build_of(running.id) is None


def _refuses(fleet: Supervisor) -> bool:
    try:
        fleet.callback(fleet.table("works").policy.uri)
    except CallbackRefused:
        return True
    return False


def test_next_start_knows_requests_keys_builds_and_mutes(
    policy, fleet_settings, supervising, caplog
):
    table, broken = policy(), policy("sleeps")
    options = {"settings": fleet_settings}
    fleet = supervising(table, broken)
    built = seen(fleet, "orders", lambda now: is_covered(now) and now.ended).ended[-1]
    seen(fleet, "sleeps", lambda now: now.running)
    asked = fleet.ask("sleeps", Task("build", Strategy.ALL), key="k", requested_by="anna")
    fleet.mute("orders", "coverage", days=1)
    fleet.close(seconds=0)

    listener = Recorded()
    fleet = Supervisor([table, broken], listener=listener, **options)

    assert fleet.table("orders").ended[-1] == built
    assert fleet.build_of(built.id) == built
    assert fleet.build_of(asked.id) is None
    assert fleet.table("sleeps").queued is not None
    assert fleet.ask("sleeps", Task("build", Strategy.ALL), key="k") == replace(
        asked, repeated=True
    )
    assert listener.mutes == [("orders", "coverage", True)]
    assert list(fleet.table("orders").muted) == ["coverage"]
    with caplog.at_level(logging.INFO, "hudi_index_service.fleet"):
        fleet.unmute("orders", "coverage")
    (line,) = [each for each in caplog.records if "muted" in each.getMessage()]
    assert line.table == fleet.table("orders").policy.uri
    assert listener.mutes[1:] == [("orders", "coverage", False)]
    assert fleet.table("orders").muted["coverage"] <= datetime.now(UTC)
    fleet.close()


def test_table_that_is_built_is_not_built_again_after_a_restart(policy, supervising):
    table = policy()
    fleet = supervising(table)
    seen(fleet, "orders", is_covered)
    # A build that began after its last change finds nothing to do.
    before = seen(fleet, "orders", lambda now: now.ended and not (now.running or now.queued)).ended
    fleet.close()
    fleet = supervising(table)
    seen(fleet, "orders", lambda now: now.status)
    assert fleet.table("orders").queued is None
    assert fleet.table("orders").ended == before


def test_plan_is_shown_and_carried_out_when_approved(supervising, policy):
    wanted = DesiredIndex("by_msg", (Column(name="msg"),))
    fleet = supervising(policy("defines", definitions=(wanted,)))
    assert seen(fleet, "defines", lambda now: now.plan).plan == ("create by_msg",)
    assert fleet.table("defines").drift == ("by_msg",)

    approved = fleet.ask("defines", Task("define"), requested_by="anna")

    end = ended(fleet, approved.id)
    assert (end.action, end.outcome, end.requested_by) == ("define", "finished", "anna")
    found = fleet.table("defines")
    assert (found.plan, found.invalid_definition.code) == ((), "COLUMN_NOT_FOUND")


def test_missing_secret_is_said(supervising, policy, tmp_path):
    secret = tmp_path / "secret"
    fleet = supervising(policy(storage={"secret": FromFile(secret)}))
    asked = fleet.ask("orders", Task("build"))
    assert ended(fleet, asked.id).error.code == "CONFIG_INVALID"
    assert seen(fleet, "orders", lambda now: now.error).error.code == "CONFIG_INVALID"
    secret.write_text("canary")
    assert seen(fleet, "orders", is_covered)


def test_idle_children_end(supervising, policy):
    fleet = supervising(policy(), limits=Limits(slots=1, idle_seconds=0.2, tick_seconds=0.05))
    seen(fleet, "orders", is_covered)
    assert awaited(lambda: not fleet.pids(), 30)
