"""The targets of the benchmark of reads by others, and whether it reached them."""

from functools import partial
from typing import Any

from benchmarks.bench_targets import Target, at_least, at_most, found


def targets(result: dict[str, Any]) -> list[Target]:
    """The targets, by the results of all parts; what was left out is not reached."""

    of = partial(found, result)
    by_clients: list[Target] = []
    for name, key in (("100 clients", "alone"), ("100 clients beside two builds", "beside_builds")):
        by_clients += [
            at_least(
                f"{name}: queries a second, of those with 2", 0.8, of("clients", key, "over_two")
            ),
            at_most(f"{name}: p99 over p50", 3, of("clients", key, "p99_over_p50")),
            at_most(f"{name}: MiB more", 200, of("clients", key, "more_mib")),
        ]
    return [
        at_most("HTTP: ms more than in the process, worst", 3, of("calls", "http", "worst_ms")),
        at_most("MCP: ms more than in the process, worst", 25, of("calls", "mcp", "worst_ms")),
        at_most(
            "MCP by HTTP: ms more than in the process, worst",
            25,
            of("calls", "mcp_by_http", "worst_ms"),
        ),
        at_least(
            "a million rows of eight columns: time from memory over time",
            0.6,
            of("stream", "ratio"),
        ),
        *by_clients,
        *(
            at_most(f"{engine}, {query}: over the Parquet files", bound, of("engines", engine, key))
            for engine in ("polars", "duckdb")
            for query, key, bound in (
                ("u = x", "one_value", 0.1),
                ("half of the rows", "half", 1.2),
                ("a sum over half of the rows", "sum_of_half", 1.2),
            )
        ),
    ]
