"""A fleet of 200 small tables, kept by one service: `make bench-fleet`.

The tables are written without Spark (`hudi_writer`), one base file of 200 rows each with a B-tree
of two columns, so that builds are short and what is measured is the service. It is the real
process, `hudi-index serve --config`, started by `command`, which lets builds fail on demand and
ends idle children after five seconds in place of five minutes.

- `idle`: at a poll of a minute, once the children have ended.
- `ms`: of the list of all tables, of a table, and of the metrics, as a client on this machine sees
  them.
- `instants`: a commit to each table. One is late if it was indexed later than a poll, its wait (the
  builds that ended meanwhile, over the two slots, times the median build) and its own build after
  it; `most_over_allowed` is the greatest ratio of its lag to that.
- `faults`: the same, while three further tables cannot be built: one sleeps for ever, one takes
  ever more memory, one segfaults.
- `callbacks`: of 200 clients at once, with polls of an hour; `more_mib` is the service's memory
  above what it had before.
- `killed`: by SIGKILL while it builds, and started again. `week`: a commit an hour for a week.
- `growth`: idle, with other numbers of tables.

Written to benchmarks/results/fleet.json. A small run to try things out: `python -m benchmarks.fleet
--tables 6 --growth 12 --polls 0.05 --output /tmp/bench`.
"""

import argparse
import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bench_table import ROOT
from benchmarks.build import environment, log
from benchmarks.fleet import command
from benchmarks.fleet.callbacks import many_callbacks
from benchmarks.fleet.hudi_writer import Table
from benchmarks.fleet.idle import POLL_SECONDS, growth, idle, shown
from benchmarks.fleet.instants import (
    FAULTS,
    HOURS_OF_A_WEEK,
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


def measured(scratch: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """All results."""
    lake, few, long = scratch / "lake", scratch / "ill", scratch / "long"
    tables = [Table(lake / f"t{number:05}") for number in range(arguments.tables)]
    ill = [Table(few / fault) for fault in FAULTS]
    for each in (*tables, *ill):
        each.create()
    hours = max(30, round(HOURS_OF_A_WEEK * min(1, len(tables) / 200)))
    of_a_week = Table(long / "week", groups=24)
    of_a_week.create(datetime.now(UTC) - timedelta(hours=hours))
    log(f"{len(tables)} tables are written")
    service = Service(scratch / "service", lake, few, long)
    result: dict[str, Any] = {"tables": len(tables)}
    number = len(tables) + len(ill) + 1
    try:
        service.poll_every(POLL_SECONDS)
        result["start_seconds"] = round(service.start(), 2)
        first = awaited("the first builds", service.is_built, 600)
        result["first_builds_seconds"] = round(first, 1)
        log(f"started in {result['start_seconds']} s, all built after {first:.1f} s")
        result["idle"] = idle(service, number, arguments.polls)
        result["ms"] = shown(service)
        service.poll_every(SHORT_POLL_SECONDS)
        poll, seconds = SHORT_POLL_SECONDS, max(3.0, len(tables) / 5)
        result["instants"] = indexed_in_turn(service, tables, poll, seconds)
        result["faults"] = beside_faults(service, tables, ill, poll, seconds)
        result["killed"] = killed(service, tables)
        result["week"] = week(service, of_a_week, hours, hours / 8)
        service.poll_every(LONG_POLL_SECONDS)
        awaited("it has read its file", service.is_built, 120)
        result["callbacks"] = many_callbacks(service, tables, 10 * len(tables))
    finally:
        service.close()
    result["growth"] = growth(scratch, tables[0].path, arguments.growth, arguments.polls)
    return result


def parse_arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument(
        "--growth", default="50,800", help="tables of further fleets, separated by commas"
    )
    parser.add_argument("--polls", type=float, default=1.0, help="how many minutes to be idle")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--scratch", type=Path, help="folder for tables; a temporary one if absent")
    arguments = parser.parse_args()
    arguments.growth = [int(each) for each in arguments.growth.split(",") if each]
    return arguments


def main() -> None:
    """Measures, prints and writes the results."""
    arguments, began = parse_arguments(), perf_counter()
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
