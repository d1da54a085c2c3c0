"""Contestants that run the same queries in turn."""

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bench_process import INSTALLED
from benchmarks.bench_table import ROOT
from benchmarks.build import log
from benchmarks.scale.contestant import Contestant
from benchmarks.scale.queries import Query

A_ROUND = 11
"""Conditions in each round; a contestant that is slow runs only the first three of them."""
SLOW_MS = 50
FILLING, FILLED_BELOW_MS = 2_000, 20
"""Conditions after which nearly all pages that a query of single rows reads are kept; a query that
takes longer reads them all sooner."""
THREADS = (1, 2, 4, 8)

Contestants = dict[str, Contestant]


@contextmanager
def started(table: Path, *names: str) -> Iterator[Contestants]:
    """These contestants on the table, for the length of the block."""
    log(f"{table.name}: starting {', '.join(names)} …")
    contestants: Contestants = {}
    try:
        for name in names:
            contestants[name] = Contestant(name, table)
        yield contestants
    finally:
        for contestant in contestants.values():
            contestant.close()


def in_turn(
    contestants: Contestants, query: Query, rounds: int, conditions: int = A_ROUND
) -> dict[str, Any]:
    """One row of the results: the medians of all conditions in milliseconds, and for each
    contestant the medians, over the rounds, of what the others take as a multiple of its time."""
    names = list(contestants)
    limits = dict.fromkeys(names, conditions)
    for name in names:  # not counted: virtual machines compile, pages are kept
        first = contestants[name].run(query.wheres(3, "warm"), query.how)["ms"]
        if min(first) < SLOW_MS:
            fills = name == "filled" and min(first) < FILLED_BELOW_MS
            more = FILLING if fills else 10 * conditions
            contestants[name].run(query.wheres(more, "warmer"), query.how)
        else:
            limits[name] = min(3, conditions)
    ms: dict[str, list[float]] = defaultdict(list)
    rows: dict[str, list[int]] = defaultdict(list)
    medians: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        start = number % len(names)
        wheres = query.wheres(conditions, str(number))
        for name in names[start:] + names[:start]:
            response = contestants[name].run(wheres[: limits[name]], query.how)
            ms[name] += response["ms"]
            medians[name].append(statistics.median(response["ms"]))
            # Of the conditions that all contestants run.
            rows[name] += islice(response["rows"], min(limits.values()))
    for name in names:
        if rows[name] != rows["ours"]:
            raise SystemExit(f"{query.name}: other numbers of rows: {dict(rows)}")
    every = sorted(ms["ours"])
    row = {
        "query": query.name,
        "where": query.wheres(1, "0")[0][:200],
        "returns": "count" if query.counts else list(query.columns),
        "ms": {name: round(statistics.median(each), 3) for name, each in ms.items()},
        "p90_ms": round(every[int(0.9 * len(every))], 3),
        "rows": round(statistics.mean(rows["ours"]), 1),
        "over": {name: _ratios(medians, name, statistics.median) for name in names},
        "spread": [_ratios(medians, "ours", min), _ratios(medians, "ours", max)],
    }
    log(f"{query.name}: {row['rows']:g} rows, {row['ms']}")
    return row


def _ratios(
    medians: dict[str, list[float]], name: str, of_rounds: Callable[[list[float]], float]
) -> dict[str, float]:
    """The contestant's time over that of each other one."""
    return {
        other: round(of_rounds([a / b for a, b in zip(medians[name], each, strict=True)]), 4)
        for other, each in medians.items()
        if other != name
    }


def all_in_turn(
    contestants: Contestants, queries: Sequence[Query], rounds: int, conditions: int = A_ROUND
) -> list[dict[str, Any]]:
    """The rows of these queries."""
    return [in_turn(contestants, each, rounds, conditions) for each in queries]


def memory(contestants: Contestants, query: Query) -> dict[str, dict[str, int]]:
    """``anonymous`` and ``resident`` MiB of each contestant after all its queries."""
    result = {}
    for name, contestant in contestants.items():
        response = contestant.run(query.wheres(1, "memory"), query.how)
        kinds = ("anonymous", "resident")
        result[name] = {kind: round(response[f"{kind}_mib"]) for kind in kinds}
    log(f"MiB: {result}")
    return result


def by_threads(contestants: Contestants, query: Query, rounds: int) -> dict[str, Any]:
    """``queries_a_second`` and ``busy_cores`` of each contestant, by the number of threads that
    share the queries."""
    number = 400
    rates: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    cores: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each_round in range(rounds):
        for threads in THREADS:
            for name in sorted(contestants, reverse=bool(each_round % 2)):
                wheres = query.wheres(number, f"{threads} {each_round}")
                response = contestants[name].run(wheres, query.how, threads)
                rates[name][threads].append(number / response["seconds"])
                cores[name][threads].append(response["cpu_seconds"] / response["seconds"])
    results = {
        what: {
            name: {threads: round(statistics.median(it), 2) for threads, it in each.items()}
            for name, each in measured.items()
        }
        for what, measured in (("queries_a_second", rates), ("busy_cores", cores))
    }
    log(f"by threads: {results}")
    return results


def fresh(table: Path, query: Query, rounds: int, *names: str) -> dict[str, Any]:
    """Seconds of the first query of a process, from its start to its end, of each contestant; and
    ours over each other one's."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for number, where in enumerate(query.wheres(rounds + 1, "first")):
        for name in sorted(names, reverse=bool(number % 2)):
            elapsed, _ = first_of_a_process(name, str(table), where, query)
            if number:  # else files are read from the disk
                seconds[name].append(elapsed)
    ours = seconds["ours"]
    result = {
        "query": query.name,
        "seconds": {name: round(statistics.median(each), 3) for name, each in seconds.items()},
        "over": {
            name: round(statistics.median(a / b for a, b in zip(ours, each, strict=True)), 3)
            for name, each in seconds.items()
            if name != "ours"
        },
    }
    log(f"{table.name}, first of a process: {result}")
    return result


def first_of_a_process(
    name: str, table: str, where: str, query: Query, **options: Any
) -> tuple[float, int]:
    """Seconds of a process that runs one query, and its rows.

    Args:
        options: ``storage_options``, and ``variables`` of the process.
    """
    request = {"name": name, "table": table, "where": where, "how": asdict(query.how)}
    request["storage_options"] = options.get("storage_options")
    path = {"PYTHONPATH": f"{ROOT}:{INSTALLED}"}
    began = perf_counter()
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale.first"],
        cwd=ROOT,
        env={**os.environ, **path, **options.get("variables", {})},
        input=json.dumps(request),
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    return perf_counter() - began, int(process.stdout.split()[-1])
