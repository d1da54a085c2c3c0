"""The targets of the fleet's benchmark, and whether it reached them."""

from functools import partial
from typing import Any

from benchmarks.bench_targets import Target, at_least, at_most, found
from benchmarks.fleet.instants import FAULTS

_FAULTY = "beside three faults"


def targets(result: dict[str, Any]) -> list[Target]:
    """The targets, by the results of all parts; what was left out is not reached."""

    of = partial(found, result)
    late = of("faults", "mean_lag_seconds"), of("instants", "mean_lag_seconds")
    over = None if None in late else round(late[0] / late[1], 3)
    return [
        at_most("idle, poll of a minute: percent of a core", 3, of("idle", "percent_of_a_core")),
        at_most("idle: MiB of all processes (PSS)", 600, of("idle", "pss_mib")),
        at_most("idle: processes with a JVM", 0, of("idle", "with_jvm")),
        at_most("store requests a table and poll", 2, of("idle", "requests_a_table_and_poll")),
        at_most(
            "a new instant: lag over poll, wait and build", 1, of("instants", "most_over_allowed")
        ),
        at_most(f"{_FAULTY}: the same of the others", 1, of("faults", "most_over_allowed")),
        at_most(f"{_FAULTY}: mean lag of the others over that without", 1.1, over),
        at_least("faults that the page explains", len(FAULTS), of("faults", "shown_on_the_page")),
        at_most("callbacks: seconds", 5, of("callbacks", "seconds")),
        at_most("callbacks: answers but 202 and 503", 0, of("callbacks", "others")),
        at_most("callbacks: builds lost", 0, of("callbacks", "builds_lost")),
        at_most("callbacks: MiB more", 100, of("callbacks", "more_mib")),
        at_most(
            "a decision beside two builds: p99 over that alone",
            1.5,
            of("decisions", "p99_over_alone"),
        ),
        at_most("killed: builds lost", 0, of("killed", "lost")),
        at_least("a week of instants: coverage", 1, of("week", "coverage")),
        at_most("a week of instants: failed builds", 0, of("week", "failed_builds")),
        at_most("the page of all tables: ms, 95 of 100", 300, of("ms", "list", "p95")),
        at_most("metrics: ms, 95 of 100", 50, of("ms", "metrics", "p95")),
    ]
