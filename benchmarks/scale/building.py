"""One build of a table's index, in a process of its own: `python -m benchmarks.scale.building TABLE
[--unrouted]` builds it in a copy of the table and prints the seconds. Without routing, no values
are hashed, and segments have statistics alone."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from unittest import mock

from benchmarks.bench_table import ROOT
from benchmarks.build import log
from benchmarks.scale import tables
from hudi_index_service import open_table
from hudi_index_service.build.entry import indexing


def build_ms_a_file(scratch: Path, files: int, rounds: int) -> dict[str, float]:
    """The medians, in milliseconds per base file.

    Returns:
        ``routed``, ``unrouted`` and ``over_unrouted``, the median of the rounds' ratios.
    """
    table = tables.folder_of(scratch, files)
    ms: dict[str, list[float]] = {"routed": [], "unrouted": []}
    for number in range(rounds):
        for name in sorted(ms, reverse=bool(number % 2)):
            ms[name].append(_build_seconds(table, name) * 1000 / files)
    ratios = [a / b for a, b in zip(ms["routed"], ms["unrouted"], strict=True)]
    result = {name: round(statistics.median(each), 2) for name, each in ms.items()}
    result["over_unrouted"] = round(statistics.median(ratios), 3)
    log(f"{files} base files: built in {result} ms each")
    return result


def _build_seconds(table: Path, name: str) -> float:
    option = [] if name == "routed" else ["--unrouted"]
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale.building", str(table), *option],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return float(process.stdout)


def main() -> None:
    """Builds once."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale.building")
    parser.add_argument("table", type=Path)
    parser.add_argument("--unrouted", action="store_true")
    arguments = parser.parse_args()
    copy = arguments.table.with_name("built")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(arguments.table, copy, ignore=shutil.ignore_patterns(".index"))
    is_routed = (lambda _: False) if arguments.unrouted else indexing.is_routed
    with mock.patch.object(indexing, "is_routed", is_routed), open_table(copy) as opened:
        opened.create_index("bench", tables.INDEXED)
        started = perf_counter()
        opened.build(strategy="all").raise_for_failures()
        print(perf_counter() - started)
    shutil.rmtree(copy)


if __name__ == "__main__":
    main()
