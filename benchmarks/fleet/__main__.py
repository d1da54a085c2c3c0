"""A fleet of 200 small tables, kept by one service: `make bench-fleet`.

The tables are written without Spark (`hudi_writer`), one base file of 200 rows each with a B-tree
of two columns, so that builds are short and what is measured is the service. It is the real
process, `hudi-index serve --config`, started by `command`, which lets builds fail on demand and
ends idle children after five seconds in place of five minutes.

- `idle`: at a poll of a minute, once the children have ended.
- `ms`: of the list of all tables, of a table, and of the metrics, as a client on this machine sees
  them.
- `instants`: a commit to each table within a minute, at a poll of five seconds. One is late if it
  was indexed later than a poll, its wait (the time for which builds ran after it and before its
  own, over the two slots) and its own build after it; `most_over_allowed` is the greatest ratio of
  its lag to that.
- `faults`: the same commits at the same distance from the polls, while three further tables cannot
  be built: one sleeps for ever, one takes ever more memory, one segfaults. The first is ended after
  five seconds without progress, in place of half an hour.
- `callbacks`: of 200 clients at once, with polls of an hour; `more_mib` is the service's memory
  above what it had before.
- `decisions`: for Spark's optimizer, each on another key of a table with 24 base files, alone and
  beside two builds of large files; `answered_by` the service, or by `serve-spark`.
- `killed`: by SIGKILL while it builds, and started again. `week`: a commit an hour for a week.
- `growth`: idle, with other numbers of tables; `extrapolated` to 10,000 by a line through all.

Written to benchmarks/results/fleet.json. A small run to try things out: `python -m benchmarks.fleet
--tables 6 --growth 12 --polls 0.05 --output /tmp/bench`.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bench_table import ROOT
from benchmarks.build import environment, log
from benchmarks.fleet import command, decisions
from benchmarks.fleet.callbacks import many_callbacks
from benchmarks.fleet.hudi_writer import Table
from benchmarks.fleet.idle import POLL_SECONDS, extrapolated, growth, idle, shown
from benchmarks.fleet.instants import (
    FAULTS,
    HOURS_OF_A_WEEK,
    SLOTS,
    beside_faults,
    indexed_in_turn,
    killed,
    week,
)
from benchmarks.fleet.service import Service, awaited
from benchmarks.fleet.targets import targets

RESULTS = ROOT / "benchmarks" / "results"
SHORT_POLL_SECONDS = 5.0
LONG_POLL_SECONDS = 3600.0


PARTS = ("idle", "instants", "faults", "killed", "week", "callbacks", "decisions", "growth")


def measured(scratch: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """The results of the selected parts."""
    fleet = Fleet(scratch, arguments)
    try:
        fleet.start()
        for part in PARTS:
            if part in arguments.parts:
                getattr(fleet, part)()
    finally:
        fleet.service.close()
    return fleet.result


class Fleet:
    """The fleet that is measured, and what is known of it. Each method after `start` is a part."""

    def __init__(self, scratch: Path, arguments: argparse.Namespace) -> None:
        self._scratch, self._arguments = scratch, arguments
        lake, few, long = scratch / "lake", scratch / "ill", scratch / "long"
        self._tables = [Table(lake / f"t{number:05}") for number in range(arguments.tables)]
        self._ill = [Table(few / fault) for fault in FAULTS]
        self._large = [
            Table(long / f"large{number}", rows=decisions.ROWS, groups=decisions.FILES, links=True)
            for number in range(SLOTS if "decisions" in arguments.parts else 0)
        ]
        self._week = Table(long / "week", groups=24)
        self._hours = max(30, round(HOURS_OF_A_WEEK * min(1, len(self._tables) / 200)))
        for each in (*self._tables, *self._ill, *self._large):
            each.create()
        self._week.create(datetime.now(UTC) - timedelta(hours=self._hours))
        log(f"{len(self._tables)} tables are written")
        self._spread_seconds = max(3.0, 0.3 * len(self._tables))
        self.service = Service(scratch / "service", lake, few, long)
        self.result: dict[str, Any] = {"tables": len(self._tables)}

    def start(self) -> None:
        """Starts the service, and has all tables built."""
        self.service.poll_every(POLL_SECONDS)
        started = self.service.start()
        first = awaited("the first builds", self.service.is_built, 600)
        self.result["start_seconds"] = round(started, 2)
        self.result["first_builds_seconds"] = round(first, 1)
        log(f"started in {started:.1f} s, all built after {first:.1f} s")

    def idle(self) -> None:
        """What nothing costs, and how long pages take."""
        number = len(self._tables) + len(self._ill) + len(self._large) + 1
        self.result["idle"] = idle(self.service, number, self._arguments.polls)
        self.result["ms"] = shown(self.service)

    def instants(self) -> None:
        """New instants."""
        self.service.poll_every(SHORT_POLL_SECONDS)
        self.result["instants"] = indexed_in_turn(
            self.service, self._tables, SHORT_POLL_SECONDS, self._spread_seconds
        )

    def faults(self) -> None:
        """New instants beside builds that fail."""
        self.service.poll_every(SHORT_POLL_SECONDS)
        self.result["faults"] = beside_faults(
            self.service, self._tables, self._ill, SHORT_POLL_SECONDS, self._spread_seconds
        )

    def killed(self) -> None:
        """SIGKILL in the middle."""
        self.service.poll_every(SHORT_POLL_SECONDS)
        self.result["killed"] = killed(self.service, self._tables)

    def week(self) -> None:
        """A week of one table."""
        self.service.poll_every(SHORT_POLL_SECONDS)
        self.result["week"] = week(self.service, self._week, self._hours, self._hours / 8)

    def callbacks(self) -> None:
        """Many callbacks at once, and no poll."""
        self.service.poll_every(LONG_POLL_SECONDS)
        awaited("it has read its file", self.service.is_built, 120)
        self.result["callbacks"] = many_callbacks(
            self.service, self._tables, 10 * len(self._tables)
        )

    def decisions(self) -> None:
        """Decisions beside builds."""
        self.service.poll_every(LONG_POLL_SECONDS)
        awaited("it has read its file", self.service.is_built, 120)
        self.result["decisions"] = decisions.beside_builds(
            self.service,
            self._week,
            self._large,
            self._scratch / "daemon",
            min(1000, 20 * len(self._tables)),
        )

    def growth(self) -> None:
        """Other numbers of tables."""
        self.service.close()
        self.result["growth"] = growth(
            self._scratch, self._tables[0].path, self._arguments.growth, self._arguments.polls
        )
        points = [self.result["idle"]] if "idle" in self.result else []
        points += self.result["growth"]
        if len(points) > 1:
            self.result["extrapolated"] = extrapolated(points)


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--parts", default=",".join(PARTS), help="separated by commas")
    parser.add_argument(
        "--growth", default="50,800", help="tables of further fleets, separated by commas"
    )
    parser.add_argument("--polls", type=float, default=1.0, help="how many minutes to be idle")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--scratch", type=Path, help="folder for tables; a temporary one if absent")
    parsed = parser.parse_args(arguments)
    parsed.growth = [int(each) for each in parsed.growth.split(",") if each]
    parsed.parts = parsed.parts.split(",")
    return parsed


def main(given: Sequence[str] | None = None) -> None:
    """Measures, prints and writes the results."""
    arguments, began = parse_arguments(given), perf_counter()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.scratch) as scratch:
        result = measured(Path(scratch), arguments)
    result = {
        "targets": targets(result),
        **result,
        "child_idle_seconds": command.IDLE_SECONDS,
        "child_memory_mb": command.MEMORY_MB,
        "seconds": round(perf_counter() - began),
        "environment": environment(),
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "fleet.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
