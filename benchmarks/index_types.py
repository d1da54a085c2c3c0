"""The index types side by side: `make bench-types`.

Two tables of the same rows, of one base file and of twenty, written by Hudi. Each contestant has a
copy of its own of each, and an index on `msg`, `sender`, `city`, `amount` and `event_ts`; all
copies are open in one process. Contestants build and run queries in turn, each round starting with
the next one; times are medians over the rounds, and a ratio is the median of the rounds' ratios to
Lucene. A query that a type does not support is null.

- build: seconds of `IndexedTable.build`, with two local workers;
- bytes: of all entries' files, and of the cells in HBase, which also runs on this machine
  (`python -m dev.hbase`): requests cross no network, and nothing is cached (`hbase.cache_mb` is 0);
- the others: milliseconds of a warm query by the index, planning included: `count`, or two columns
  of the rows where the name contains "rows". Each runs with several literals in sequence.

Written to benchmarks/results/types.json, and as a table into docs/index_types.md. A small run to
try things out, which changes no page:
`python -m benchmarks.index_types --rows 100000 --rounds 1 --output /tmp/bench`.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bench_table import ROOT, spark_session, write_table
from benchmarks.bench_targets import Target, at_most
from benchmarks.build import environment, log
from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.config import settings
from hudi_index_service.errors import IndexRequired, PredicateUnsupported
from hudi_index_service.index.factory import index_type

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "index_types.md"
MARKS = ("<!-- from benchmarks/results/types.json -->\n", "<!-- until here -->\n")
FILE_COUNTS = (1, 20)
COLUMNS = ("msg", "sender", "city", "amount", "event_ts")
BASELINE = "lucene"
# A tenth above the first measurements.
MAX_OVER_LUCENE = {
    "build": {"btree": 1.0, "hbase": 1.35},
    "bytes": {"btree": 1.0, "hbase": 1.0},
    "point": {"btree": 1.0},
    "point_number": {"btree": 1.0},
    "point_rows": {"btree": 1.0},
    "in_100": {"btree": 1.0},
    "in_100_numbers": {"btree": 1.0},
    "in_10000": {"btree": 0.5},
    "in_10000_numbers": {"btree": 0.5},
    "range": {"btree": 1.0},
    "range_times": {"btree": 1.0},
    "range_rows": {"btree": 1.0},
    "few_values": {"btree": 1.0},
    "prefix": {"btree": 1.0},
}
WARM_SECONDS = 0.5


@dataclass(frozen=True)
class Contestant:
    """An index type with options of `msg`.

    Attributes:
        title: In the table.
        started: What it needs during the measurements, such as a server.
        elsewhere: Base path of a table → bytes stored outside its index folder.
    """

    index_type: str
    title: str
    options: dict[str, str] = field(default_factory=dict)
    started: Callable[[], AbstractContextManager[object]] = nullcontext
    elsewhere: Callable[[str], int] = lambda uri: 0


@contextmanager
def hbase_on_this_machine() -> Iterator[None]:
    """A real HBase on the loopback interface, to which the settings point in the block."""
    from dev.hbase import running_hbase

    with running_hbase() as hbase:
        os.environ["HUDI_INDEX_HBASE__HOST"] = hbase.host
        os.environ["HUDI_INDEX_HBASE__PORT"] = str(hbase.port)
        os.environ["HUDI_INDEX_HBASE__CACHE_MB"] = "0"
        settings.cache_clear()
        yield


def bytes_in_hbase(uri: str) -> int:
    """Bytes of the keys and values of all cells of a table's entries, without HBase's overhead."""
    import happybase

    from hudi_index_hbase.store import EntryKeys

    hbase = settings().hbase
    connection = happybase.Connection(hbase.host, hbase.port, timeout=60_000)
    cells = connection.table(hbase.table)
    size = 0
    for path in index_type("hbase").stored(uri):
        for key, row in cells.scan(row_prefix=EntryKeys.of(uri, path).prefix, batch_size=100):
            size += sum(len(key) + len(name) + len(value) for name, value in row.items())
    connection.close()
    return size


CONTESTANTS = {
    "lucene": Contestant("lucene", "lucene"),
    "lucene_words": Contestant("lucene", "lucene, `msg` analyzed", {"analyzer": "standard"}),
    "btree": Contestant("btree", "btree"),
    "hbase": Contestant("hbase", "hbase", started=hbase_on_this_machine, elsewhere=bytes_in_hbase),
}


@dataclass(frozen=True)
class Kind:
    """A kind of query: its conditions, and the columns of the rows; without columns, the rows are
    counted."""

    name: str
    title: str
    wheres: tuple[str, ...]
    columns: tuple[str, ...] = ()


def kinds() -> list[Kind]:
    """The kinds of query, the same in every run."""
    choose = random.Random(8)

    def times(count: int, make: Callable[[], str]) -> tuple[str, ...]:
        return tuple(make() for _ in range(count))

    def number(below: int) -> int:
        return choose.randrange(below)

    def senders(count: int) -> str:
        return ", ".join(f"'User{number(400_000)}'" for _ in range(count))

    def amounts(count: int) -> str:
        return ", ".join(str(number(1_000_000)) for _ in range(count))

    def one_percent() -> str:
        low = number(990_000)
        return f"amount BETWEEN {low} AND {low + 9_999}"

    def days() -> str:
        day = f"2026-{1 + number(11):02d}-1"
        return f"event_ts >= timestamp'{day}0 00:00:00Z' AND event_ts < timestamp'{day}3 15:36:00Z'"

    point = times(5, lambda: f"sender = {senders(1)}")
    point_number = times(5, lambda: f"amount = {amounts(1)}")
    in_texts = times(3, lambda: f"sender IN ({senders(100)})")
    in_numbers = times(3, lambda: f"amount IN ({amounts(100)})")
    long_texts = times(2, lambda: f"sender IN ({senders(10_000)})")
    long_numbers = times(2, lambda: f"amount IN ({amounts(10_000)})")
    wide = times(5, one_percent)
    cities = times(5, lambda: f"city = 'city{number(300)}'")
    parts = times(2, lambda: f"msg LIKE '%tag{10_000 + number(90_000)}%'")
    words = times(3, lambda: f"match(msg, 'tag{number(500_000)}')")
    rows = ("key", "price")
    return [
        Kind("point", "one text, `=`", point),
        Kind("point_number", "one number, `=`", point_number),
        Kind("point_rows", "one text, its rows", point, rows),
        Kind("in_100", "IN with 100 texts", in_texts),
        Kind("in_100_numbers", "IN with 100 numbers", in_numbers),
        Kind("in_10000", "IN with 10,000 texts", long_texts),
        Kind("in_10000_numbers", "IN with 10,000 numbers", long_numbers),
        Kind("range", "1 % range of numbers", wide),
        Kind("range_times", "1 % range of times", times(5, days)),
        Kind("range_rows", "1 % range of numbers, its rows", wide[:2], rows),
        Kind("few_values", "one of 300 texts, `=`", cities),
        Kind("prefix", "`LIKE 'text%'`, 3 %", ("sender LIKE 'User12%'", "sender LIKE 'User31%'")),
        Kind("contains", "`LIKE '%text%'`", parts),
        Kind("full_text", "full text, a rare word", words),
        Kind("full_text_common", "full text, a common word", ("match(msg, 'winter')",)),
    ]


def copied(table: Path, target: Path) -> Path:
    """Copies a table by hard links: its files are never changed."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(table, target, copy_function=os.link)
    return target


def built(table: IndexedTable, contestant: Contestant) -> float:
    """Seconds of building the index anew."""
    if table.indexes():
        table.drop_index("bench", purge=True)
    first, *others = COLUMNS
    columns = [Column(name=first, options=contestant.options), *others]
    table.create_index("bench", columns, using=contestant.index_type)
    started = perf_counter()
    table.build(strategy="all").raise_for_failures()
    return perf_counter() - started


def index_bytes(table: Path) -> int:
    """Bytes of all entries' data files."""
    return sum(path.stat().st_size for path in (table / ".hoodie" / ".index").rglob("*.pack"))


def run_queries(table: IndexedTable, kind: Kind) -> tuple[float, list[int]]:
    """Runs a kind's queries; returns the mean milliseconds, and the number of rows of each."""
    rows = []
    started = perf_counter()
    for where in kind.wheres:
        scan = table.scan(where, columns=list(kind.columns) or None, use_index="require")
        rows.append(scan.to_arrow().num_rows if kind.columns else scan.count())
    return (perf_counter() - started) * 1000 / len(kind.wheres), rows


def warmed(table: IndexedTable, kind: Kind) -> list[int] | None:
    """Runs the queries for `WARM_SECONDS`; returns the number of rows of each, or None if the
    index does not support them."""
    began = perf_counter()
    try:
        _, rows = run_queries(table, kind)
    except (IndexRequired, PredicateUnsupported):  # full text without an analyzed column
        return None
    while perf_counter() - began < WARM_SECONDS:
        run_queries(table, kind)
    return rows


def in_turn(
    names: Sequence[str], rounds: int, measure: Callable[[str], float]
) -> dict[str, list[float]]:
    """The measurements of each contestant; each round starts with the next one."""
    samples: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        start = number % max(1, len(names))
        for name in [*names[start:], *names[:start]]:
            samples[name].append(measure(name))
    return samples


def over_baseline(samples: dict[str, list[float]]) -> dict[str, float]:
    """The ratio of each contestant to Lucene."""
    base = samples.get(BASELINE)
    if base is None:
        return {}
    return {
        name: round(statistics.median(a / b for a, b in zip(times, base, strict=True)), 2)
        for name, times in samples.items()
        if name != BASELINE
    }


def row(name: str, files: int, samples: dict[str, list[float]], unit: str) -> dict[str, Any]:
    """One row of the results."""
    medians = {
        each: round(statistics.median(samples[each]), 3) if each in samples else None
        for each in CONTESTANTS
    }
    return {"what": name, "files": files, unit: medians, "over_lucene": over_baseline(samples)}


def measured(folder: Path, files: int, rounds: int, build_rounds: int) -> list[dict[str, Any]]:
    """All results of the table of so many files."""
    names = list(CONTESTANTS)
    folders = {name: copied(folder / str(files), folder / f"{files}-{name}") for name in names}
    results: list[dict[str, Any]] = []
    with ExitStack() as stack:
        tables = {name: stack.enter_context(open_table(path)) for name, path in folders.items()}
        log(f"{files} files: building …")
        seconds = in_turn(names, build_rounds, lambda name: built(tables[name], CONTESTANTS[name]))
        results.append(row("build", files, seconds, "seconds"))
        sizes = {
            name: [float(index_bytes(path) + CONTESTANTS[name].elsewhere(tables[name].uri))]
            for name, path in folders.items()
        }
        results.append(row("bytes", files, sizes, "bytes"))
        for kind in kinds():
            log(f"{files} files: {kind.name} …")
            counts = {name: warmed(tables[name], kind) for name in names}
            able = {name: rows for name, rows in counts.items() if rows is not None}
            if len({tuple(rows) for rows in able.values()}) != 1:
                raise SystemExit(f"The answers differ: {kind.wheres}: {able}")
            ms = in_turn(
                list(able), rounds, lambda name, kind=kind: run_queries(tables[name], kind)[0]
            )
            each = row(kind.name, files, ms, "ms")
            rows = next(iter(able.values()))
            results.append(
                each | {"where": kind.wheres[0][:200], "rows": round(statistics.mean(rows), 1)}
            )
    return results


def targets(results: list[dict[str, Any]]) -> list[Target]:
    """Builds, sizes and queries of the other types over Lucene."""
    return [
        at_most(f"{each['what']}, files: {each['files']}, {name} over lucene", bound, over)
        for each in results
        if each["what"] in MAX_OVER_LUCENE
        for name, bound in MAX_OVER_LUCENE[each["what"]].items()
        if (over := each["over_lucene"].get(name)) is not None
    ]


def as_markdown(results: dict[str, Any]) -> str:
    """The results as the table in docs/index_types.md."""
    titles = {kind.name: f"{kind.title}, ms" for kind in kinds()}
    titles |= {"build": "build, s", "bytes": "index, MB"}
    heads = [
        f"{contestant['title']}, {files} {'file' if files == 1 else 'files'}"
        for files in results["files"]
        for contestant in results["contestants"].values()
    ]
    lines = [f"| | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    by_place = {(each["what"], each["files"]): each for each in results["results"]}
    for what in dict.fromkeys(each["what"] for each in results["results"]):
        cells = []
        for files in results["files"]:
            each = by_place[what, files]
            values = next(each[unit] for unit in ("ms", "seconds", "bytes") if unit in each)
            cells += [_cell(what, values[name]) for name in results["contestants"]]
        lines.append(f"| {titles[what]} | {' | '.join(cells)} |")
    where = results["where"]
    caption = (
        f"{results['rows']:,} rows, {where['cores']} cores, {where['machine']}, "
        f"load {results['load']} before it began:"
    )
    return "\n".join([caption, "", *lines, ""])


def page_with(results: dict[str, Any] | None, page: str) -> str:
    """The page with these results between its marks; None if there are none yet."""
    shown = "Not measured yet.\n" if results is None else as_markdown(results)
    before, rest = page.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    return f"{before}{MARKS[0]}{shown}{MARKS[1]}{after}"


def _cell(what: str, value: float | None) -> str:
    if value is None:
        return "-"
    if what == "bytes":
        return f"{value / 1e6:.1f}"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def write_tables(folder: Path, rows: int) -> None:
    """Writes both tables, by Spark in this process."""
    missing = [files for files in FILE_COUNTS if not (folder / str(files)).exists()]
    if not missing:
        return
    spark = spark_session(folder)
    for files in missing:
        write_table(spark, folder / str(files), rows, files)
    spark.stop()


def parse_arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--build-rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--scratch", type=Path, help="folder for tables; a temporary one if absent")
    parser.add_argument("--write-tables", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Writes the tables in a process of its own, which ends before anything is measured."""
    arguments = parse_arguments()
    output = arguments.output / "types.json"
    if arguments.write_tables:
        write_tables(arguments.scratch, arguments.rows)
        return
    load = round(os.getloadavg()[0], 1)  # of other processes: about 0 on a quiet machine
    with ExitStack() as stack:
        make = partial(tempfile.mkdtemp, prefix="bench-types-")
        folder = arguments.scratch or Path(make())
        if arguments.scratch is None:
            stack.callback(shutil.rmtree, folder)
        log(f"Writing {arguments.rows:,} rows twice, unless they are there …")
        command = [sys.executable, "-m", "benchmarks.index_types", "--write-tables"]
        command += ["--scratch", str(folder), "--rows", str(arguments.rows)]
        subprocess.run(command, check=True, cwd=ROOT)
        for contestant in CONTESTANTS.values():
            stack.enter_context(contestant.started())
        results = [
            each
            for files in FILE_COUNTS
            for each in measured(folder, files, arguments.rounds, arguments.build_rounds)
        ]
    report = {
        "where": environment(),
        "load": load,
        "rows": arguments.rows,
        "files": list(FILE_COUNTS),
        "columns": list(COLUMNS),
        "contestants": {
            name: {"index_type": each.index_type, "title": each.title, "options": each.options}
            for name, each in CONTESTANTS.items()
        },
        "results": results,
    }
    report = {"targets": targets(results), **report}
    arguments.output.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(report, indent=1) + "\n")
    if arguments.output == RESULTS:
        PAGE.write_text(page_with(report, PAGE.read_text()))
    log(f"Written to {output}.")


if __name__ == "__main__":
    main()
