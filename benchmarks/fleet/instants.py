"""How soon new instants are indexed: in turn, beside builds that fail, after the service was
killed, and a week of them."""

import random
import statistics
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic, perf_counter, sleep
from typing import Any

from benchmarks.build import log
from benchmarks.fleet.hudi_writer import Table
from benchmarks.fleet.processes import tree
from benchmarks.fleet.service import Service, awaited, seconds_of

SLOTS = 2
HOURS_OF_A_WEEK = 7 * 24
FAULTS = {"sleeps": "BUILD_HUNG", "grows": "BUILD_OUT_OF_MEMORY", "segfaults": "BUILD_DIED"}
"""A fault → the code that the page has to show."""


@dataclass(frozen=True)
class Indexed:
    """A commit that was indexed; seconds since 1970.

    Attributes:
        committed: When it was complete.
        started, ended: Of its build.
    """

    committed: float
    started: float
    ended: float

    @property
    def seconds(self) -> float:
        """The seconds of its build."""
        return self.ended - self.started

    @property
    def lag(self) -> float:
        """The seconds until it was indexed."""
        return self.ended - self.committed


def commit_in_turn(
    service: Service, tables: Sequence[Table], poll: float, seconds: float
) -> list[Indexed]:
    """Commits to each table, spread over some seconds in an order of no kind, and waits until all
    are indexed. In two runs, each commit is as long before the next look at its table."""
    order = random.Random(41).sample(list(tables), len(tables))
    committed: dict[str, float] = {}
    sleep(poll - monotonic() % poll)
    began = monotonic()
    for number, table in enumerate(order):
        sleep(max(0.0, began + seconds * number / len(order) - monotonic()))
        committed[table.uri] = table.commit()

    def all_are() -> bool:
        return service.is_built() and all(
            seconds_of(each["at"]) > committed.get(each["uri"], 0.0) for each in service.tables()
        )

    awaited("all commits are indexed", all_are, 300, 1.0)
    names = {each["uri"]: each["name"] for each in service.tables()}
    return [
        _indexed(service.table(names[uri])["ended"], moment) for uri, moment in committed.items()
    ]


def _indexed(builds: Sequence[dict[str, Any]], committed: float) -> Indexed:
    """A commit with the first build that was of use after it; the newest comes first."""
    found = [each for each in builds if each["built"] and _is_after(each, committed)]
    return Indexed(committed, seconds_of(found[-1]["started"]), seconds_of(found[-1]["ended"]))


def _is_after(end: dict[str, Any], committed: float) -> bool:
    return seconds_of(end["ended"]) >= committed


def lags(found: Sequence[Indexed], poll: float, others: Sequence[Indexed] = ()) -> dict[str, Any]:
    """The lags, and how many are longer than a poll, the wait and the own build.

    Args:
        others: Further builds, which held a slot, too.
    """
    builds = [each.ended - each.started for each in found]
    taken = sorted(each.lag for each in found)
    over = [each.lag / (poll + _wait(each, (*found, *others)) + each.seconds) for each in found]
    return {
        "commits": len(found),
        "median_build_seconds": round(statistics.median(builds), 3),
        "mean_lag_seconds": round(statistics.mean(taken), 3),
        "median_lag_seconds": round(statistics.median(taken), 2),
        "p95_lag_seconds": round(taken[int(0.95 * len(taken))], 2),
        "most_lag_seconds": round(taken[-1], 2),
        "most_over_allowed": round(max(over), 3),
        "late": sum(each > 1 for each in over),
    }


def _wait(own: Indexed, builds: Sequence[Indexed]) -> float:
    """The time for which builds ran between a commit and its own build, over the slots."""
    parts = (
        min(own.started, each.ended) - max(own.committed, each.started)
        for each in builds
        if each is not own
    )
    return sum(max(0.0, each) for each in parts) / SLOTS


def indexed_in_turn(
    service: Service, tables: Sequence[Table], poll: float, seconds: float
) -> dict[str, Any]:
    """New instants of all tables."""
    result = lags(commit_in_turn(service, tables, poll, seconds), poll)
    log(f"new instants: {result}")
    return result


def beside_faults(
    service: Service, well: Sequence[Table], ill: Sequence[Table], poll: float, seconds: float
) -> dict[str, Any]:
    """New instants of all tables, of which three cannot be built, each for another reason; and
    whether the page says why."""
    for table, fault in zip(ill, FAULTS, strict=True):
        (service.faults / table.name).write_text(fault)
        table.commit()
    names = {each["uri"]: each["name"] for each in service.tables()}
    shown: dict[str, float] = {}

    def look() -> None:
        for table, code in zip(ill, FAULTS.values(), strict=True):
            if table.name not in shown:
                page = browser.get(f"/tables/{names[table.uri]}").text
                if code in page:
                    shown[table.name] = perf_counter() - began

    began = perf_counter()
    with closing(service.browser()) as browser:
        found = commit_in_turn(service, well, poll, seconds)
        result = lags(found, poll, [each for table in ill for each in _builds(service, table)])
        awaited("the page says why", lambda: look() or len(shown) == len(FAULTS), 120)

        def needy() -> int:
            return sum(each["severity"] == 2 for each in service.tables())

        awaited("the three need attention", lambda: needy() == len(FAULTS), 120)
        first = [each["name"] for each in service.tables()[: len(FAULTS)]]
    for table in ill:
        (service.faults / table.name).unlink()
        service.build(names[table.uri])
        assert names[table.uri] in first
    mended = awaited("the three are built", service.is_built, 120)
    result |= {
        "shown_on_the_page": len(shown),
        "seconds_until_attention": round(perf_counter() - began - mended, 1),
        "seconds_until_built_on_request": round(mended, 1),
    }
    log(f"beside faults: {result}")
    return result


def _builds(service: Service, table: Table) -> list[Indexed]:
    """The builds of a table that have ended, the last ten at most, and the one that runs."""
    (name,) = (each["name"] for each in service.tables() if each["uri"] == table.uri)
    seen = service.table(name)
    ended = [(each["started"], each["ended"]) for each in seen["ended"]]
    if seen["running"] is not None:
        ended.append((seen["running"]["started"], datetime.now(UTC).isoformat()))
    return [Indexed(0.0, seconds_of(start), seconds_of(end)) for start, end in ended]


def killed(service: Service, tables: Sequence[Table]) -> dict[str, Any]:
    """The service is killed when it has built a quarter of new instants, and started again."""
    before = service.metric("builds_total")
    for table in tables:
        table.commit()

    def built() -> float:
        return service.metric("builds_total") - before

    awaited("it builds", lambda: built() >= len(tables) / 4 and service.children(), 120, 0.01)
    children, done = service.children(), built()
    service.kill()
    gone = awaited("its children end", lambda: not any(map(tree, children)), 30, 0.01)
    began = perf_counter()
    service.start()
    awaited("all is built", service.is_built, 300)
    seconds = perf_counter() - began
    result = {
        "commits": len(tables),
        "built_before": round(done),
        "children": len(children),
        "seconds_until_children_ended": round(gone, 2),
        "seconds_until_all_built": round(seconds, 1),
        "lost": service.unindexed(tables),
    }
    log(f"killed: {result}")
    return result


def week(service: Service, table: Table, instants: int, seconds: float) -> dict[str, Any]:
    """A commit an hour for a week, replayed to a table of the fleet."""
    begin, began = datetime.now(UTC) - timedelta(hours=instants), monotonic()
    for hour in range(1, instants):
        sleep(max(0.0, began + seconds * hour / instants - monotonic()))
        table.commit(begin + timedelta(hours=hour))
    (name,) = (each["name"] for each in service.tables() if each["uri"] == table.uri)
    after = awaited("the week is indexed", lambda: not service.unindexed([table]), 120)
    seen = service.table(name)
    result = {
        "instants": table.commits,
        "replayed_in_seconds": round(seconds, 1),
        "seconds_until_indexed": round(after, 1),
        "base_files": seen["status"]["indexes"][0]["base_files"],
        "coverage": seen["coverage"],
        "failed_builds": sum(each["error"] is not None for each in seen["ended"]),
    }
    log(f"a week: {result}")
    return result
