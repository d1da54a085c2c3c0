"""What a fleet costs while nothing happens, and how long its page takes."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shutil import copytree
from time import monotonic, perf_counter, sleep
from typing import Any

from benchmarks.build import log
from benchmarks.fleet.processes import cpu_seconds, pss_mib, tree, with_jvm
from benchmarks.fleet.service import Service, awaited

POLL_SECONDS = 60.0
ATTEMPTS = 3
MANY = 10_000
REQUESTS_A_GLOB = 2
"""Of the fleet file, each minute, however many tables it finds."""


def idle(service: Service, tables: int, polls: float) -> dict[str, Any]:
    """The processor, the memory and the requests of some polls of each table, with no child. What
    the service logs meanwhile, such as a verification of a week's sample, is no idleness: then it
    is measured again."""
    quiet = awaited("the children end", service.is_quiet, 120)
    for _ in range(ATTEMPTS):
        said = service.logged_bytes()
        result = _idle(service, tables, polls)
        if service.logged_bytes() == said:
            break
        log("It was not idle.")
        awaited("the children end", service.is_quiet, 120)
    result |= {"seconds_until_no_child": round(quiet, 1)}
    log(f"idle: {result}")
    return result


def _idle(service: Service, tables: int, polls: float) -> dict[str, Any]:
    requests, began = service.metric("store_requests_total"), monotonic()
    before = cpu_seconds(service.pid)
    sleep(polls * POLL_SECONDS)
    used, seconds = cpu_seconds(service.pid) - before, monotonic() - began
    processes = tree(service.pid)
    made = service.metric("store_requests_total") - requests
    polls_made = seconds / POLL_SECONDS
    of_tables = made - service.globs * REQUESTS_A_GLOB * polls_made
    return {
        "tables": tables,
        "seconds": round(seconds, 1),
        "percent_of_a_core": round(100 * used / seconds, 2),
        "pss_mib": pss_mib(*processes),
        "processes": len(processes),
        "with_jvm": len(list(with_jvm(processes))),
        "requests": round(made),
        "requests_a_table_and_poll": round(of_tables / tables / polls_made, 1),
    }


def shown(service: Service, times: int = 40) -> dict[str, dict[str, float]]:
    """Milliseconds of the list of all tables, of a table's page, and of the metrics, on the
    loopback interface."""
    browser = service.browser()
    name = service.tables()[0]["name"]
    asked: dict[str, Callable[[], int]] = {
        "list": lambda: browser.get("/").raise_for_status().status_code,
        "table": lambda: browser.get(f"/tables/{name}").raise_for_status().status_code,
        "metrics": lambda: service.get("/metrics", "metrics").status_code,
    }
    results = {}
    for what, ask in asked.items():
        ask()
        taken = sorted(_milliseconds(ask) for _ in range(times))
        results[what] = {
            "median": round(statistics.median(taken), 1),
            "p95": round(taken[int(0.95 * len(taken))], 1),
        }
    browser.close()
    log(f"milliseconds: {results}")
    return results


def _milliseconds(ask: Callable[[], int]) -> float:
    began = perf_counter()
    ask()
    return 1000 * (perf_counter() - began)


def growth(scratch: Path, indexed: Path, numbers: Sequence[int], polls: float) -> list[Any]:
    """Idle services of fleets of other sizes, on copies of an indexed table. They are paused: a
    paused table is looked at as any other, and its first builds need not be awaited."""
    results = []
    for number in numbers:
        folder = scratch / f"growth-{number}"
        for table in range(number):
            copytree(indexed, folder / "lake" / f"t{table:05}")
        service = Service(folder / "service", folder / "lake", paused=True)
        service.poll_every(POLL_SECONDS)
        try:
            began = perf_counter()
            service.start()
            awaited("the first looks", service.is_built, 300)
            seen = round(perf_counter() - began, 1)
            results.append({"seconds_until_seen": seen, **idle(service, number, polls)})
            results[-1]["ms"] = shown(service, 10)
        finally:
            service.close()
    return results


def extrapolated(measured: Sequence[Mapping[str, Any]], tables: int = MANY) -> dict[str, float]:
    """What an idle fleet of so many tables would take, by the line through the measured ones."""
    numbers = [each["tables"] for each in measured]
    result: dict[str, float] = {"tables": tables}
    for name in ("pss_mib", "percent_of_a_core", "requests"):
        line = statistics.linear_regression(numbers, [each[name] for each in measured])
        result[name] = round(line.intercept + line.slope * tables, 1)
    return result
