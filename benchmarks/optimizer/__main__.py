"""How well the optimizer decides: `make bench-optimizer`.

200 queries from a fixed seed (`queries.py`) on tables of 1, 20 and 100 base files (`tables.py`),
every second query on a table that is clustered; and 80 on two tables of TPC-H's, which are no
results of TPC-H in the sense of the TPC. Each query is asked in three ways in turn, round by
round, warm, the first of a round being another one in each:

- `auto`: as the optimizer chooses, planning included, without a history of queries;
- `index`: always by index (`use_index="require"`), missing where no index can serve the query;
- `scan`: always by scan (`use_index="never"`).

`ratio`: `auto` over the better one of the other two, the median of the rounds. It shall be at most
1.2 for 95 % of the queries and never above 2. `cpu_ratio`: the same of the medians of processor
time, which other load on the machine changes less. `or_within_a_decision`: so many queries are
within 1.2, or take no more milliseconds longer than a decision may. `decide_ms`: the optimizer's
rules, the snapshot cached: at most 1 ms for one base file and 5 ms for 100; `cover_ms`: listing the
index folder and finding the entries of base files; `plan_ms`: planning in all, a listing of the
timeline included. `stated`: how many rows match by EXPLAIN's word, at least, as expected, and at
most; `within`: whether it is true.

`history`: the same queries by cost alone, and by cost and what queries of the same shapes, with
other literals, had (`learning.py`).

Written to benchmarks/results/optimizer.json. Tables are kept in the scratch folder. What has been
measured is, too: a run that is out of `--seconds` goes on when it is started again, and one that is
complete begins anew. The optimizer goes by the shipped constants, or, with `--calibrated`, by those
that are measured first. A small run to try things out:
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
from benchmarks.build import environment, say
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
from hudi_index_service.calibrate import calibrate
from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost import constants_path

RESULTS = ROOT / "benchmarks" / "results"
TPCH_QUERIES = 80
SCRATCH = ROOT / "build" / "bench-optimizer"


def options() -> argparse.Namespace:
    """What the command line asks for."""
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


class Kept:
    """What a run has measured so far, a line a query.

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
        """Keeps one row more."""
        self.rows.append(row)
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def forget(self) -> None:
        """The next run begins anew."""
        self._path.unlink(missing_ok=True)


class OutOfTime(Exception):
    """The run's seconds are over."""


class Run:
    """One run, over several calls where it takes long.

    Args:
        asked: What the command line asks for.
    """

    def __init__(self, asked: argparse.Namespace) -> None:
        self.layouts = [each for each in LAYOUTS if each.group in asked.files.split(",")]
        self._asked = asked
        self._until = perf_counter() + asked.seconds
        self.state = asked.scratch / f"{asked.run}-state"
        self.decisions = Kept(asked.scratch / f"{asked.run}-decisions.jsonl")
        self.learnt = Kept(asked.scratch / f"{asked.run}-learnt.jsonl")
        self.history = Kept(asked.scratch / f"{asked.run}-history.jsonl")

    def measure(self) -> bool:
        """Measures what is missing; says whether nothing is any more."""
        if self._asked.calibrated and not constants_path(self._settings()).is_file():
            say("Measuring the constants …")
            calibrate(self._settings())
        try:
            for part in self._asked.parts.split(","):
                for layout in self.layouts:
                    {"decisions": self._decisions, "history": self._history}[part](layout)
        except OutOfTime:
            return False
        return True

    def _settings(self) -> Settings:
        return settings(self.state, history=False)

    def _left(self, layout: Layout, literals: int, kept: Kept) -> Iterator[Query]:
        """The queries that are still to be asked: every second one on each layout of a group."""
        alike = [each for each in LAYOUTS if each.group == layout.group]
        folder = folder_of(self._asked.scratch, layout)
        most = min(self._asked.queries, TPCH_QUERIES if layout.group == "tpch" else QUERIES)
        for query in queries(folder, layout.kind, literals)[:most]:
            mine = query.number % len(alike) == alike.index(layout)
            if mine and not kept.has(layout.name, query.number + QUERIES * literals):
                if perf_counter() > self._until:
                    raise OutOfTime
                yield query

    def _decisions(self, layout: Layout) -> None:
        of_table = {"table": layout.name, "group": layout.group}
        folder = folder_of(self._asked.scratch, layout)
        with open_table(folder, settings=self._settings()) as table:
            for query in self._left(layout, MEASURED, self.decisions):
                row = measured(table, query, self._asked.rounds)
                self.decisions.add({**of_table, **row})
                ms = ", ".join(f"{way} {ms:g}" for way, ms in row["ms"].items())
                say(f"{layout.name} {query.number}: {row['ratio']:g} ({ms} ms; {row['chosen']})")

    def _history(self, layout: Layout) -> None:
        of_table = {"table": layout.name, "group": layout.group}
        folder = folder_of(self._asked.scratch, layout)
        with contestants(folder, self.state) as tables:
            for literals in LEARNT:
                for query in self._left(layout, literals, self.learnt):
                    learn(tables, query)
                    self.learnt.add({**of_table, "number": query.number + QUERIES * literals})
            say(f"{layout.name}: learnt")
            for query in self._left(layout, MEASURED, self.history):
                row = compared(tables, query, self._asked.rounds)
                self.history.add({**of_table, **row})
                ms = ", ".join(f"{name} {ms:g}" for name, ms in row["ms"].items())
                say(f"{layout.name} {query.number}: {ms} ms, {row.get('q_error')}")

    def forget(self) -> None:
        """The next run begins anew."""
        for each in (self.decisions, self.learnt, self.history):
            each.forget()
        shutil.rmtree(self.state, ignore_errors=True)


def main() -> None:
    """Measures, prints and writes the results."""
    asked = options()
    run = Run(asked)
    prepare(asked.scratch, run.layouts)
    done = run.measure()
    rows = run.decisions.rows
    summed = summary(rows)
    found = {
        "targets": targets(summed),
        "summary": summed,
        "history": learning.summary(run.history.rows),
        "complete": done,
        "calibrated": asked.calibrated,
        "rounds": asked.rounds,
        "environment": environment(),
    }
    print(worst(rows))
    print(json.dumps(found, indent=1))
    asked.output.mkdir(parents=True, exist_ok=True)
    head = json.dumps(found, indent=1).rstrip("}").rstrip()
    lists = {"queries": rows, "history_queries": run.history.rows}
    tail = ",\n".join(
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in each) + "\n ]"
        for name, each in lists.items()
    )
    (asked.output / "optimizer.json").write_text(f"{head},\n{tail}\n}}\n")
    if done:
        run.forget()
    else:
        say("Out of time. The same command goes on.")


if __name__ == "__main__":
    main()
