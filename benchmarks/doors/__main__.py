"""Reads by HTTP, by agents, by Polars and DuckDB, next to the same reads in the process: `make
bench-doors`.

The table of 1,000 base files is that of `benchmarks.scale`: 2,000,000 rows in 100 partitions, each
value of `u` in about five files. The service is the real process, `hudi-index serve --config`, and
its clients are on the same machine: a connection for each, kept open. No part uses a condition
twice.

- `calls`: counts and rows of one value by HTTP, and by an agent, over standard input and output and
  over HTTP, in turn with the same call in this process; the medians' difference in milliseconds.
- `stream`: a million rows of eight columns as Arrow, of which the bytes are counted, in turn with
  the same batches from the service's memory; `ratio` is that time over the first.
- `clients`: rows of one value for two clients and for 100, alone and beside two builds of large
  files; `more_mib` is the service's own memory above that with two.
- `engines`: Polars and DuckDB through the index over the same engine on the snapshot's Parquet
  files, in turn in one process: rows of one value, half of the rows, and a sum over half of them.

Written to benchmarks/results/doors.json. A small run to try things out: `python -m benchmarks.doors
--files 6 --smaller 20 --rounds 2 --seconds 1 --output /tmp/bench`.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bench_process import ContestantProcess
from benchmarks.build import environment, log
from benchmarks.doors.calls import calls
from benchmarks.doors.clients import many_clients
from benchmarks.doors.stream import million_rows
from benchmarks.doors.targets import targets
from benchmarks.fleet.service import Service
from benchmarks.scale import tables
from benchmarks.scale.__main__ import RESULTS, SCRATCH, written

PARTS = ("calls", "stream", "clients", "engines")
NO_INDEX = {"definitions": [], "apply": "plan"}
"""Rules for the table that is read, whose index is built."""


def measured(table: Path, scratch: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """The results of the selected parts."""
    files, rounds = arguments.files, arguments.rounds
    result: dict[str, Any] = {"files": files, "rows": tables.rows_of(files)}
    service = Service(
        scratch / "service", table.parent, scratch / "long", rules={table.parent.name: NO_INDEX}
    )
    if "engines" in arguments.parts:
        process = ContestantProcess("benchmarks.doors.engines", str(table), str(files))
        result["engines"] = process.request({"rounds": rounds})
        process.close()
        log(f"engines: {result['engines']}")
    service.poll_every(3600)
    try:
        service.start()
        if "calls" in arguments.parts:
            result["calls"] = calls(service, table, files, arguments.calls)
        if "stream" in arguments.parts:
            result["stream"] = million_rows(service, table, scratch, rounds)
        if "clients" in arguments.parts:
            result["clients"] = many_clients(
                service, table, files, scratch / "long", arguments.seconds
            )
    finally:
        service.close()
    return result


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.doors", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--files", type=int, default=1_000, help="base files of the table")
    parser.add_argument("--smaller", type=int, default=1, help="divides the rows of each file")
    parser.add_argument("--parts", default=",".join(PARTS), help="separated by commas")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10, help="for which clients ask")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--scratch", type=Path, default=SCRATCH, help="folder of the tables")
    parsed = parser.parse_args(arguments)
    parsed.parts = parsed.parts.split(",")
    return parsed


def main(given: Sequence[str] | None = None) -> None:
    """Measures, prints and writes the results."""
    arguments = parse_arguments(given)
    os.environ[tables.SMALLER] = str(arguments.smaller)
    written(arguments.scratch, [arguments.files], 0)
    table = tables.folder_of(arguments.scratch, arguments.files)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.scratch) as scratch:
        result = measured(table, Path(scratch), arguments)
    result = {"targets": targets(result), **result, "environment": environment()}
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "doors.json").write_text(json.dumps(result, indent=1) + "\n")
    for each in result["targets"]:
        log(f"{'reached' if each['reached'] else 'MISSED '}  {each['name']}: {each['measured']}")


if __name__ == "__main__":
    main()
