"""The targets of the fleet's benchmark, and whether it reached them."""

from typing import Any

from benchmarks.bench_targets import Target, at_least, at_most
from benchmarks.fleet.instants import FAULTS


def targets(result: dict[str, Any]) -> list[Target]:
    """The targets, by the results of all parts."""
    idle, ms = result["idle"], result["ms"]
    faults, callbacks = result["faults"], result["callbacks"]
    return [
        at_most("idle at a poll of a minute: percent of a core", 3, idle["percent_of_a_core"]),
        at_most("idle: MiB of all processes (PSS)", 600, idle["pss_mib"]),
        at_most("idle: processes with a JVM", 0, idle["with_jvm"]),
        at_most("store requests a table and poll", 2, idle["requests_a_table_and_poll"]),
        at_most(
            "a new instant: lag over poll, wait and build",
            1,
            result["instants"]["most_over_allowed"],
        ),
        at_most("beside three faults: the same of the others", 1, faults["most_over_allowed"]),
        at_most(
            "beside three faults: the median lag over that without",
            1.1,
            round(faults["median_lag_seconds"] / result["instants"]["median_lag_seconds"], 3),
        ),
        at_least("faults that the page explains", len(FAULTS), faults["shown_on_the_page"]),
        at_most("callbacks: seconds", 5, callbacks["seconds"]),
        at_most("callbacks: answers that are neither 202 nor 503", 0, callbacks["others"]),
        at_most("callbacks: builds lost", 0, callbacks["builds_lost"]),
        at_most("callbacks: MiB more", 100, callbacks["more_mib"]),
        at_most("killed: builds lost", 0, result["killed"]["lost"]),
        at_least("a week of instants: coverage", 1, result["week"]["coverage"]),
        at_most("a week of instants: failed builds", 0, result["week"]["failed_builds"]),
        at_most("the page of all tables: ms, 95 of 100", 300, ms["list"]["p95"]),
        at_most("metrics: ms, 95 of 100", 50, ms["metrics"]["p95"]),
    ]
