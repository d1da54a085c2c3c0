"""A reason is shown after two observations, gone after one without it, and can be muted."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from hudi_index_service.fleet.observation import Observation
from hudi_index_service.fleet.signals.attention import Code, Reason, place
from hudi_index_service.fleet.signals.seen import Change, Seen
from tests.fleet.statuses import EXPECTED, NOW, ago, index, policy, status

MINUTE = timedelta(minutes=1)


def look(minute: int, *, damaged: int = 1, name: str = "t", erased: int = 0) -> Observation:
    """What was seen of a table in a minute after `NOW`."""
    found = status(index(10, 10 - damaged, damaged=damaged), at=-minute)
    return Observation(policy(name), ago(-minute), found, erased=erased)


def codes(reasons: Sequence[Reason]) -> list[Code]:
    """The codes of reasons."""
    return [each.code for each in reasons]


def observe(seen: Seen, *looks: Observation) -> list[Change]:
    """Observes each at the time of its look."""
    return [seen.observe(each, each.at or NOW) for each in looks]


def shown(seen: Seen, observation: Observation) -> list[Code]:
    """The codes shown at the time of a look."""
    return codes(seen.shown(observation, observation.at or NOW))


def test_a_reason_is_shown_from_the_second_observation_on() -> None:
    seen = Seen()

    first, second, third = observe(seen, look(0), look(1), look(2))

    assert first == third == Change()
    assert codes(second.appeared) == [Code.DAMAGED_ENTRIES]
    assert shown(seen, look(2)) == [Code.DAMAGED_ENTRIES]


def test_a_reason_goes_with_the_first_observation_without_it() -> None:
    seen = Seen()
    *_, gone = observe(seen, look(0), look(1), look(2, damaged=0))

    assert codes(gone.gone) == [Code.DAMAGED_ENTRIES]
    assert shown(seen, look(2)) == []


def test_a_reason_that_comes_and_goes_is_never_shown() -> None:
    seen = Seen()

    changes = observe(seen, *(look(minute, damaged=minute % 2) for minute in range(20)))

    assert set(changes) == {Change()}


def test_the_same_look_counts_once() -> None:
    seen = Seen()

    observe(seen, look(0), look(0), replace(look(0), erased=3))

    assert shown(seen, look(0)) == []


def test_each_reason_is_counted_for_itself() -> None:
    seen = Seen()

    observe(seen, look(0), look(1, erased=3))

    assert shown(seen, look(1)) == [Code.DAMAGED_ENTRIES]


def test_the_age_is_that_of_the_first_observation() -> None:
    seen = Seen()
    observe(seen, *(look(minute) for minute in range(5)))

    (reason,) = seen.shown(look(4), NOW + 4 * MINUTE)
    assert reason.since == NOW


def test_a_clock_set_back_neither_hides_nor_repeats_a_reason() -> None:
    seen = Seen()

    changes = observe(seen, look(0), look(1), look(-60), look(-59), look(2))

    assert [len(each.appeared) for each in changes] == [0, 1, 0, 0, 0]
    assert not any(each.gone for each in changes)


def test_a_muted_reason_is_hidden_until_its_date() -> None:
    seen = Seen()
    observe(seen, look(0), look(1))

    seen.mute("t", Code.DAMAGED_ENTRIES, NOW + 9 * MINUTE)

    assert seen.shown(look(8), NOW + 8 * MINUTE) == ()
    assert codes(seen.shown(look(9), NOW + 9 * MINUTE)) == [Code.DAMAGED_ENTRIES]


def test_a_mute_hides_one_reason_of_one_table() -> None:
    seen = Seen()
    both = [look(minute, name=name, erased=1) for minute in (0, 1) for name in ("t", "u")]
    observe(seen, *both)

    seen.mute("t", Code.DAMAGED_ENTRIES, NOW + 9 * MINUTE)

    assert shown(seen, both[2]) == [Code.ERASED_VALUES]
    assert shown(seen, both[3]) == [Code.DAMAGED_ENTRIES, Code.ERASED_VALUES]


def test_a_table_that_left_and_came_back_starts_anew() -> None:
    seen = Seen()
    observe(seen, look(0), look(1))

    seen.forget("t")

    assert shown(seen, look(1)) == []
    assert observe(seen, look(2)) == [Change()]


def test_tables_are_ranked_by_what_is_shown() -> None:
    seen = Seen()
    tables = [each.observation for each in EXPECTED]
    later = [replace(each, at=(each.at or NOW) + timedelta(seconds=1)) for each in tables]
    for each in (*tables, *later):
        seen.observe(each, NOW)

    def names() -> list[str]:
        by_place = sorted(later, key=lambda each: place(each.policy, seen.shown(each, NOW)))
        return [each.policy.name for each in by_place]

    assert names() == [each.name for each in EXPECTED]

    seen.mute("payments", Code.UNREACHABLE, NOW + MINUTE)
    order = names()
    # What is left is the lag, of severity 3.
    assert order.index("payments") == order.index("trades") - 1
