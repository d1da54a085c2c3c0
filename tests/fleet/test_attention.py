"""Attention says of forty tables what was written by hand, in that order; what each code means is
on the docs' page, which is made from the codes: ``python -m tests.fleet.test_attention``."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.fleet.observation import Observation
from hudi_index_service.fleet.signals.attention import Code, Reason, attention, place
from hudi_index_service.index.metadata.build_records import BuildState
from tests.fleet.statuses import (
    EXPECTED,
    NOW,
    Expected,
    ago,
    ended,
    index,
    policy,
    record,
    running,
    status,
)

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "attention.md"


@pytest.mark.parametrize("case", EXPECTED, ids=lambda case: case.name)
def test_a_table_gives_the_expected_reasons(case: Expected) -> None:
    given = [
        (each.code, (NOW - each.since) / timedelta(minutes=1), each.value, each.limit)
        for each in attention(case.observation, NOW)
    ]

    assert given == [tuple(each) for each in case.reasons]


@pytest.mark.parametrize("seed", range(5))
def test_tables_are_ranked_as_expected(seed: int) -> None:
    tables = [each.observation for each in EXPECTED]
    random.Random(seed).shuffle(tables)

    ranked = sorted(tables, key=lambda each: place(each.policy, attention(each, NOW)))

    assert [each.policy.name for each in ranked] == [each.name for each in EXPECTED]


def test_every_code_is_expected_of_some_table() -> None:
    assert {code for each in EXPECTED for code, *_ in each.reasons} == set(Code)


def test_reasons_come_worst_first() -> None:
    for each in EXPECTED:
        severities = [reason.code.severity for reason in attention(each.observation, NOW)]
        assert severities == sorted(severities)


def test_a_clock_set_back_makes_nothing_older_nor_younger() -> None:
    early = NOW - timedelta(days=30)

    for each in EXPECTED:
        now = {reason.code for reason in attention(each.observation, NOW)}
        back = attention(each.observation, early)
        # Whether a build that runs is hung is not known before the clock has caught up.
        assert {reason.code for reason in back} <= now
        assert all(reason.since <= early for reason in back)


def test_what_was_late_when_seen_stays_late_if_the_clock_is_set_back() -> None:
    late = Observation(policy("late"), ago(0), status(index(99, 98, due=1, late=61)))

    (reason,) = attention(late, ago(10_000))

    assert reason.code is Code.LAG
    assert reason.value == 61 * 60


@pytest.mark.parametrize(
    ("observation", "remedies"),
    [
        (
            Observation(policy("a b"), ago(0), status(index(99, 98, damaged=1)), erased=1),
            ["hudi-index verify 's3://lake/a b' --repair", "hudi-index clean 's3://lake/a b'"],
        ),
        (
            Observation(policy("t"), ago(0), status(index(9, 2, outdated=7))),
            ["hudi-index build s3://lake/t --strategy refresh"],
        ),
        (
            Observation(policy("t", strategy=Strategy.ALL), ago(0), status(index(9, 2))),
            ["hudi-index build s3://lake/t --strategy all"],
        ),
        (
            Observation(policy("t"), ago(0), running=running(90, 60)),
            ["hudi-index cancel s3://lake/t"],
        ),
        # There is nothing left to cancel.
        (
            Observation(policy("t"), ago(0), ended=[ended("hung", 60)]),
            ["hudi-index build s3://lake/t"],
        ),
        (
            Observation(policy("t"), ago(0), drift=["i"]),
            ["hudi-index fleet check fleet.yaml --explain t"],
        ),
    ],
)
def test_the_remedy_is_a_command(observation: Observation, remedies: list[str]) -> None:
    assert [each.remedy for each in attention(observation, NOW)] == remedies


def test_a_refused_build_between_failures_does_not_end_the_row() -> None:
    refused = ended("failed", 20, code="BUILD_IN_PROGRESS")
    observation = Observation(policy("t"), ended=[ended("died", 5), refused, ended("hung", 60)])

    (reason,) = attention(observation, NOW)

    assert (reason.code, reason.value) == (Code.FAILED_BUILDS, 2)


def test_only_builds_count_as_failed_builds() -> None:
    failed = [replace(ended("failed", minutes), action="verify") for minutes in (5, 9)]

    assert not attention(Observation(policy("t"), ended=failed), NOW)


def test_what_a_verification_found_damaged_is_told() -> None:
    observation = Observation(policy("t"), ago(0), status(index(9, 9)), damaged=2)

    (reason,) = attention(observation, NOW)

    assert (reason.code, reason.value) == (Code.DAMAGED_ENTRIES, 2)
    assert reason.words == "The entries of 2 base files are damaged."


def test_a_build_elsewhere_that_was_seen_long_ago_hides_nothing() -> None:
    found = status(index(9, 1, due=8), at=31, builds=[record(3, BuildState.RUNNING, 200, None)])

    (reason,) = attention(Observation(policy("t"), ago(0), found), NOW)

    assert reason.code is Code.LOW_COVERAGE


def test_entries_of_a_newer_release_are_not_missing() -> None:
    observation = Observation(policy("t"), ago(0), status(index(10, 1, newer=9)))

    assert not attention(observation, NOW)


def test_a_reason_tells_its_number_and_its_limit() -> None:
    observation = Observation(policy("t"), ago(0), status(index(100, 50, due=50, late=61)))

    assert attention(observation, NOW)[1] == Reason(
        Code.LOW_COVERAGE,
        since=datetime(2026, 3, 2, 12, tzinfo=UTC),
        words="Index by_id covers 50.0% of the base files that it should.",
        value=0.5,
        limit=0.9,
        remedy="hudi-index build s3://lake/t",
    )


def test_resuming_a_paused_table_shows_its_reasons() -> None:
    (paused,) = (each for each in EXPECTED if each.name == "paused_and_broken")
    resumed = replace(paused.observation, policy=policy("paused_and_broken"))

    assert {each.code for each in attention(resumed, NOW)} >= {Code.UNREACHABLE, Code.LAG}


def table_of_codes() -> str:
    """The docs' table."""
    lines = ["| severity | code | when | remedy |", "| --- | --- | --- | --- |"]
    for each in Code:
        command = each.remedy.format(uri="TABLE", name="NAME")
        lines.append(f"| {each.severity} | `{each}` | {each.meaning} | `{command}` |")
    return "\n".join(lines) + "\n"


def page() -> tuple[str, str, str]:
    """The docs' page: what is before the table, the table, what is after."""
    text = PAGE.read_text()
    start = text.index("| severity |")
    end = text.index("\n\n", start) + 1
    return text[:start], text[start:end], text[end:]


def test_the_docs_list_the_codes() -> None:
    assert page()[1] == table_of_codes()


if __name__ == "__main__":
    before, _, after = page()
    PAGE.write_text(before + table_of_codes() + after)
