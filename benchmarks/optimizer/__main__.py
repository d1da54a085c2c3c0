"""The optimizer's decisions: `make bench-optimizer`.

200 queries from a fixed seed (`queries.py`) on tables of 1, 20 and 100 base files (`tables.py`),
every second query on a clustered table; and 80 on two tables of TPC-H's, which are not TPC-H
results as defined by the TPC. Each query runs, warm, in three ways in turn, each round starting
with the next one:

- `auto`: as the optimizer chooses, planning included, without a history of queries;
- `index`: always by index (`use_index="require"`); missing if no index can serve the query;
- `scan`: always by scan (`use_index="never"`).

`ratio`: `auto` over the better of the other two, the median over the rounds. The target is at most
1.2 for 95 % of the queries and never above 2. `cpu_ratio`: the ratio of the medians of processor
time, which other load on the machine affects less. `or_within_a_decision`: the number of queries
within 1.2, or slower by no more milliseconds than a decision may take. `decide_ms`: the optimizer's
rules with a cached snapshot: at most 1 ms for one base file and 5 ms for 100; `cover_ms`: listing
the index folder and finding the entries of base files; `plan_ms`: all of planning, a listing of the
timeline included. `stated`: EXPLAIN's least, expected and greatest number of matching rows;
`within`: whether these bounds hold.

`history`: the same queries by cost alone, and by cost and the history of queries of the same shapes
with other literals (`learning.py`).

Written to benchmarks/results/optimizer.json. Tables and measurements are kept in the scratch
folder: a run that exceeded `--seconds` continues when started again, and a complete one starts
afresh. The optimizer uses the shipped constants, or, with `--calibrated`, those that the run
measures first. A small run to try things out:
`python -m benchmarks.optimizer --files 1 --queries 20 --rounds 1 --output /tmp/bench`.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bench_table import ROOT
from benchmarks.build import environment, log
from benchmarks.calibrate import calibrate
from benchmarks.optimizer import learning
from benchmarks.optimizer.learning import (
    LEARNT,
    MEASURED,
    compared,
    contestants,
    learn,
    settings,
)
from benchmarks.optimizer.measure import measured
from benchmarks.optimizer.queries import QUERIES, Query, queries
from benchmarks.optimizer.summary import summary, targets, worst
from benchmarks.optimizer.tables import LAYOUTS, Layout, folder_of, is_ready
from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import constants_path

RESULTS = ROOT / "benchmarks" / "results"
TPCH_QUERIES = 80
SCRATCH = ROOT / "build" / "bench-optimizer"


def parse_arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--files", default="1,20,100,tpch", help="numbers of base files, tpch")
    parser.add_argument("--queries", type=int, default=QUERIES, help="the first so many")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--parts", default="decisions,history", help="what is measured")
    parser.add_argument("--calibrated", action="store_true", help="measure the constants first")
    parser.add_argument("--run", default="run", help="a name for what is measured")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--scratch", type=Path, default=SCRATCH, help="folder of the tables")
    return parser.parse_args()


def prepare(scratch: Path, layouts: list[Layout]) -> None:
    """Writes the tables that are missing, in a process of its own."""
    missing = [each.name for each in layouts if not is_ready(scratch, each)]
    if missing:
        command = [sys.executable, "-m", "benchmarks.optimizer.tables", str(scratch), *missing]
        subprocess.run(command, cwd=ROOT, check=True)


class RowFile:
    """The measurements of a run so far, one line per query.

    Args:
        path: A file, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.is_file() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def has(self, table: str, number: int) -> bool:
        """Whether the query is measured."""
        return any(row["table"] == table and row["number"] == number for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row."""
        self.rows.append(row)
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def forget(self) -> None:
        """Deletes the file: the next run starts afresh."""
        self._path.unlink(missing_ok=True)


class OutOfTime(Exception):
    """The run has exceeded its seconds."""


class Run:
    """One run, which may take several calls.

    Args:
        arguments: Of the command line.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.layouts = [each for each in LAYOUTS if each.group in arguments.files.split(",")]
        self._arguments = arguments
        self._until = perf_counter() + arguments.seconds
        self.state = arguments.scratch / f"{arguments.run}-state"
        self.decisions = RowFile(arguments.scratch / f"{arguments.run}-decisions.jsonl")
        self.learnt = RowFile(arguments.scratch / f"{arguments.run}-learnt.jsonl")
        self.history = RowFile(arguments.scratch / f"{arguments.run}-history.jsonl")

    def measure(self) -> bool:
        """Measures what is missing; returns whether the run is complete."""
        if self._arguments.calibrated and not constants_path(self._settings()).is_file():
            log("Measuring the constants …")
            calibrate(self._settings())
        try:
            for part in self._arguments.parts.split(","):
                for layout in self.layouts:
                    {"decisions": self._decisions, "history": self._history}[part](layout)
        except OutOfTime:
            return False
        return True

    def _settings(self) -> Settings:
        return settings(self.state, history=False)

    def _left(self, layout: Layout, literals: int, rows: RowFile) -> Iterator[Query]:
        """The queries still to run; the layouts of a group share them."""
        alike = [each for each in LAYOUTS if each.group == layout.group]
        folder = folder_of(self._arguments.scratch, layout)
        most = min(self._arguments.queries, TPCH_QUERIES if layout.group == "tpch" else QUERIES)
        for query in queries(folder, layout.kind, literals)[:most]:
            mine = query.number % len(alike) == alike.index(layout)
            if mine and not rows.has(layout.name, query.number + QUERIES * literals):
                if perf_counter() > self._until:
                    raise OutOfTime
                yield query

    def _decisions(self, layout: Layout) -> None:
        of_table = {"table": layout.name, "group": layout.group}
        folder = folder_of(self._arguments.scratch, layout)
        with open_table(folder, settings=self._settings()) as table:
            for query in self._left(layout, MEASURED, self.decisions):
                row = measured(table, query, self._arguments.rounds)
                self.decisions.add({**of_table, **row})
                ms = ", ".join(f"{way} {ms:g}" for way, ms in row["ms"].items())
                log(f"{layout.name} {query.number}: {row['ratio']:g} ({ms} ms; {row['chosen']})")

    def _history(self, layout: Layout) -> None:
        of_table = {"table": layout.name, "group": layout.group}
        folder = folder_of(self._arguments.scratch, layout)
        with contestants(folder, self.state) as tables:
            for literals in LEARNT:
                for query in self._left(layout, literals, self.learnt):
                    learn(tables, query)
                    self.learnt.add({**of_table, "number": query.number + QUERIES * literals})
            log(f"{layout.name}: learnt")
            for query in self._left(layout, MEASURED, self.history):
                row = compared(tables, query, self._arguments.rounds)
                self.history.add({**of_table, **row})
                ms = ", ".join(f"{name} {ms:g}" for name, ms in row["ms"].items())
                log(f"{layout.name} {query.number}: {ms} ms, {row.get('q_error')}")

    def forget(self) -> None:
        """Deletes all measurements: the next run starts afresh."""
        for each in (self.decisions, self.learnt, self.history):
            each.forget()
        shutil.rmtree(self.state, ignore_errors=True)


def main() -> None:
    """Measures, prints and writes the results."""
    arguments = parse_arguments()
    run = Run(arguments)
    prepare(arguments.scratch, run.layouts)
    done = run.measure()
    rows = run.decisions.rows
    summed = summary(rows)
    report = {
        "targets": targets(summed),
        "summary": summed,
        "history": learning.summary(run.history.rows),
        "complete": done,
        "calibrated": arguments.calibrated,
        "rounds": arguments.rounds,
        "environment": environment(),
    }
    print(worst(rows))
    print(json.dumps(report, indent=1))
    arguments.output.mkdir(parents=True, exist_ok=True)
    head = json.dumps(report, indent=1).rstrip("}").rstrip()
    lists = {"queries": rows, "history_queries": run.history.rows}
    tail = ",\n".join(
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in each) + "\n ]"
        for name, each in lists.items()
    )
    (arguments.output / "optimizer.json").write_text(f"{head},\n{tail}\n}}\n")
    if done:
        run.forget()
    else:
        log("Out of time. The same command goes on.")


if __name__ == "__main__":
    main()
