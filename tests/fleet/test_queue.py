"""The queue is fair: no table is lost, starves, or waits for another's rest, whatever the clock
does."""

from hypothesis import given
from hypothesis import strategies as st

from hudi_index_service.fleet.queue import FairQueue
from hudi_index_service.storage.waiting import Backoff

BACKOFF = Backoff(first=10.0, longest=60.0)
TABLES = ("a", "b", "c", "d")


def queue(**options: float) -> FairQueue:
    return FairQueue(BACKOFF, **options)


def taken(waiting: FairQueue, now: float) -> list[str]:
    """The tables in their order, each of which is taken."""
    order = []
    while (table := waiting.take(now)) is not None:
        order.append(table)
    return order


def test_table_waits_once():
    waiting = queue()
    for now, table in enumerate(["a", "b", "a", "a"]):
        waiting.wake(table, now)
    assert len(waiting) == 2
    assert taken(waiting, 5) == ["a", "b"]
    assert not waiting.waits("a")


def test_wake_up_during_a_build_is_kept_for_one_more():
    waiting = queue()
    waiting.wake("a", 0)
    assert waiting.take(0) == "a"
    waiting.wake("a", 1)
    waiting.wake("a", 2)
    assert waiting.take(3) is None
    waiting.done("a", 4, failed=False)
    assert taken(waiting, 4) == ["a"]


def test_priority_comes_first_and_waiting_counts():
    waiting = queue(aging=100.0)
    waiting.wake("low", 0)
    waiting.wake("high", 50, priority=1)
    assert taken(waiting, 50) == ["high", "low"]

    patient = queue(aging=100.0)
    patient.wake("low", 0)
    patient.wake("high", 150, priority=1)
    assert taken(patient, 150) == ["low", "high"]


def test_rest_that_is_ended_does_not_make_the_next_one_shorter():
    waiting = queue()
    waiting.wake("a", 0)
    waiting.take(0)
    waiting.done("a", 0, failed=True)
    waiting.wake("a", 1)
    assert waiting.take(1) is None

    waiting.end_rest("a")
    waiting.end_rest("unknown")

    assert waiting.take(1) == "a"
    waiting.done("a", 1, failed=True)
    waiting.wake("a", 2)
    assert waiting.take(20) is None
    assert waiting.take(21) == "a"


def test_tables_that_failed_leave_room_for_others():
    waiting = queue(most_doubtful=1)
    for table in ("a", "b"):
        waiting.wake(table, 0)
    assert taken(waiting, 0) == ["a", "b"]  # nobody knows yet
    for table in ("a", "b"):
        waiting.done(table, 1, failed=True)
    for table in ("a", "b", "c"):
        waiting.wake(table, 2)

    assert taken(waiting, 100) == ["a", "c"]
    waiting.end_rest("b")  # an operator has mended it
    assert taken(waiting, 100) == ["b"]
    waiting.done("b", 101, failed=True)
    waiting.wake("b", 101)
    assert taken(waiting, 300) == []
    waiting.done("a", 300, failed=False)
    assert taken(waiting, 300) == ["b"]


def test_table_that_fails_rests_longer_each_time():
    waiting = queue()
    now, rests = 0.0, []
    for _ in range(5):
        waiting.wake("a", now)
        assert waiting.take(now) == "a"
        waiting.done("a", now, failed=True)
        waiting.wake("a", now)
        assert waiting.take(now) is None
        rests.append(waiting.delay(now))
        now += rests[-1]
    assert rests == [10, 20, 40, 60, 60]
    assert waiting.take(now) == "a"
    waiting.done("a", now, failed=False)
    waiting.wake("a", now)
    assert waiting.take(now) == "a"  # a success ends it


def test_rest_does_not_delay_other_tables():
    waiting = queue()
    waiting.wake("ill", 0, priority=9)
    assert waiting.take(0) == "ill"
    waiting.done("ill", 0, failed=True)
    waiting.wake("ill", 1, priority=9)
    waiting.wake("well", 2)
    assert taken(waiting, 2) == ["well"]


def test_table_is_woken_later():
    waiting = queue()
    waiting.wake_later("a", 0, 30)
    waiting.wake_later("a", 0, 90)
    assert waiting.delay(0) == 30
    assert waiting.take(29) is None
    assert taken(waiting, 30) == ["a"]
    waiting.done("a", 30, failed=False)
    assert waiting.delay(30) is None


def test_table_that_may_not_run_waits():
    waiting = queue()
    waiting.wake("a", 0)
    waiting.wake("b", 1)
    assert waiting.take(2, lambda table: table != "a") == "b"
    assert waiting.waits("a")


def test_forgotten_and_withdrawn_tables_are_not_taken():
    waiting = queue()
    waiting.wake("a", 0)
    waiting.wake("b", 0)
    waiting.forget("a")
    waiting.withdraw("b")
    waiting.done("a", 0, failed=True)
    assert taken(waiting, 9) == []
    assert waiting.delay(9) is None


def test_clock_that_steps_back_prolongs_no_rest_and_loses_no_turn():
    waiting = queue()
    waiting.wake("a", 1000)
    waiting.take(1000)
    waiting.done("a", 1000, failed=True)
    waiting.wake("a", 1000)
    assert waiting.delay(0) == 10  # not 1,010
    waiting.wake("b", 0)
    assert taken(waiting, 10) == ["a", "b"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["wake", "take", "well", "failed", "later"]),
        st.sampled_from(TABLES),
        st.floats(-50, 50),
        st.integers(-3, 3),
    ),
    max_size=60,
)


@given(STEPS)
def test_nothing_is_lost_whatever_happens(steps):
    """After any history, each table that was woken since it was taken is taken once the rests are
    over; no other is, but one that was to be woken later."""
    waiting, now, running, expected, later = queue(), 0.0, set(), set(), set()
    for action, table, seconds, priority in steps:
        now += seconds
        if action == "wake":
            waiting.wake(table, now, priority=priority)
            expected.add(table)
        elif action == "later":
            waiting.wake_later(table, now, abs(seconds))
            later.add(table)
        elif action == "take":
            first = waiting.take(now)
            if first is not None:
                assert first in expected | later
                assert first not in running
                running.add(first)
                expected.discard(first)
        elif table in running:
            running.discard(table)
            waiting.done(table, now, failed=action == "failed")
    for table in running:
        waiting.done(table, now, failed=False)
    assert expected <= set(taken(waiting, now + 1000)) <= expected | later


@given(
    st.lists(st.integers(-5, 5), min_size=2, max_size=4),
    st.floats(1, 500),
    st.floats(0.5, 20),
)
def test_no_table_starves(priorities, aging, seconds):
    """Tables that are woken again as soon as they were built: each has its turn within the time
    that makes up for the priorities, and a round."""
    waiting, now = queue(aging=aging), 0.0
    tables = dict(zip(TABLES, priorities, strict=False))
    last = dict.fromkeys(tables, 0.0)
    for table, priority in tables.items():
        waiting.wake(table, now, priority=priority)
    longest = (max(priorities) - min(priorities)) * aging + (len(tables) + 1) * seconds
    while now < 3 * longest and now < 400 * seconds:
        table = waiting.take(now)
        now += seconds
        last[table] = now
        waiting.done(table, now, failed=False)
        waiting.wake(table, now, priority=tables[table])
        assert all(now - moment <= longest + seconds for moment in last.values())
