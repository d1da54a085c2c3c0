"""How long decisions for Spark's sessions take while the service builds."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx

from benchmarks.bench_table import ROOT
from benchmarks.build import log
from benchmarks.fleet.hudi_writer import Table
from benchmarks.fleet.service import Service, awaited
from hudi_index_service.sql.rule.request import VERSION

ROWS, FILES = 300_000, 20
TOKEN = "benchmark"


def beside_builds(
    service: Service, asked: Table, large: Sequence[Table], folder: Path, least: int
) -> dict[str, Any]:
    """The decisions on a table, each on another key, with no build and beside as many builds as the
    service runs at a time. The service itself answers, if it does; else `hudi-index serve-spark`.

    Args:
        large: Tables that are written for the builds, as many as there are slots.
        least: How many decisions to take without builds, and at least beside them.
    """
    with ExitStack() as stack:
        decide, by = _of(service), "serve --config"
        try:
            decide(_question(asked, 0))
        except httpx.HTTPStatusError:
            decide, by = stack.enter_context(_daemon(asked.path.parent, folder)), "serve-spark"
        for number in range(least // 2):
            decide(_question(asked, number))
        awaited("the children end", service.is_quiet, 120)
        keys = count(least)
        alone = [_milliseconds(decide, _question(asked, next(keys))) for _ in range(least)]
        for table in large:
            for _ in range(FILES):
                table.commit()
            service.callback(table.uri)
        beside: list[float] = []
        while _all_build(service, large) or not beside:
            some = [_milliseconds(decide, _question(asked, next(keys))) for _ in range(50)]
            if _all_build(service, large):
                beside += some
        awaited("the builds end", service.is_built, 300)
    result = {
        "answered_by": by,
        "decisions": [len(alone), len(beside)],
        "alone_ms": quantiles(alone),
        "beside_ms": quantiles(beside),
        "p99_over_alone": round(quantiles(beside)["p99"] / quantiles(alone)["p99"], 2),
    }
    log(f"decisions: {result}")
    return result


def _all_build(service: Service, large: Sequence[Table]) -> bool:
    running = {each["uri"] for each in service.tables() if each["running"] is not None}
    return all(table.uri in running for table in large)


def quantiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """The median, and what 95 and 99 of 100 do not exceed."""
    taken = sorted(milliseconds)
    at = {"median": 0.5, "p95": 0.95, "p99": 0.99}
    return {name: round(taken[int(part * len(taken))], 2) for name, part in at.items()}


def _milliseconds(decide: Callable[[str], None], question: str) -> float:
    began = perf_counter()
    decide(question)
    return 1000 * (perf_counter() - began)


def _question(table: Table, number: int) -> str:
    """What the optimizer rule asks about a query of one key."""
    condition = {"op": "=", "column": ["id"], "type": "string", "values": [f"k{number:09}"]}
    return json.dumps(
        {
            "version": VERSION,
            "table": f"file:{table.uri}",
            "instants": [table.instant],
            "options": {"path": table.uri},
            "columns": [{"name": "id", "type": "string"}],
            "where": [condition],
        }
    )


def _of(service: Service) -> Callable[[str], None]:
    def decide(question: str) -> None:
        service.post(f"/v{VERSION}/decide?cores=2", question, role="read")

    return decide


@contextmanager
def _daemon(tables: Path, folder: Path) -> Iterator[Callable[[str], None]]:
    """The daemon, as a process; what asks it for a decision."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "HUDI_INDEX_ANSWER__TOKEN": TOKEN}
    environment |= {"HUDI_INDEX_STATE_FOLDER": str(folder / "state")}
    command = [sys.executable, "-u", "-m", "hudi_index_service", "serve-spark", str(tables)]
    with (
        (folder / "log").open("a") as log_file,
        subprocess.Popen(
            [*command, "--port", "0"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log_file,
            text=True,
        ) as process,
        httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client,
    ):
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            url = next(found[0] for line in lines if (found := re.search(r"http://[\w.:]+", line)))

            def decide(question: str) -> None:
                answer = client.post(f"{url}/v{VERSION}/decide?cores=2", content=question)
                answer.raise_for_status()

            yield decide
        finally:
            process.terminate()
