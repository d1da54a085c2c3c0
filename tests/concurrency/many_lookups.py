"""Looks up very many keys, each once: ``python -m tests.concurrency.many_lookups
<lookups | queries> <folder of a table>``, in a process of its own, whose memory nothing else uses.
Prints by how many KiB that grew after warming up, and the number of Java threads at the end."""

import json
import sys
from collections.abc import Callable
from itertools import repeat
from pathlib import Path

import pyarrow as pa

from hudi_index_service import open_table
from hudi_index_service.config import settings
from hudi_index_service.hudi.snapshot import FileSlice
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import BoundColumn, Compare, Operator
from hudi_index_service.read.parallel import Job, mapped
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage.store import Storage
from tests.index.golden import make

LOOKUPS, QUERIES = 100_000, 2_000
BEFORE = 0.25  # the share made before memory is measured: caches fill, Java compiles
AT_ONCE, THREADS = 20, 2

NAME = BoundColumn("name", pa.string())


def lookups(folder: Path) -> Callable[[int], None]:
    """Looks up in the golden entry, as a query that reads several slices in parallel does."""
    storage = Storage(folder)
    entry = EntryListing(storage, "lucene").find(make.base_file(folder))
    name = entry.manifest.column("name")
    serving = ServingEntry(entry, index_type("lucene"), (name,))
    pool, jobs = ReaderPool(storage, settings()), list(repeat(_job(), AT_ONCE))

    def look_up(turn: int) -> None:
        keys = iter(range(turn * AT_ONCE, (turn + 1) * AT_ONCE))

        def work(_: Job) -> int:
            leaf = Compare(NAME, Operator.EQ, pa.scalar(f"nobody {next(keys)}"))
            with pool.lease(serving) as opened:
                return len(opened.reader.row_ids(leaf))

        assert sum(mapped(work, jobs, THREADS, may_be_fast=False)) == 0

    return look_up


def queries(folder: Path) -> Callable[[int], None]:
    """Queries a table of several base files for rows, and for their number."""
    table = open_table(folder)

    def query(number: int) -> None:
        scan = table.scan(f"id = '{number}'", columns=["amount"], use_index="require")
        assert (scan.to_arrow().num_rows if number % 2 else scan.count()) == 1

    return query


def _job() -> Job:
    file_slice = FileSlice(make.PARTITION, make.FILE_ID, make.base_file(make.FOLDER))
    return SlicePlan(file_slice, Access.INDEX), SliceStatistics(file_slice.name, Access.INDEX)


def main(what: str, folder: Path) -> None:
    """Goes through all keys, and prints the result."""
    run, count = (
        (lookups(folder), LOOKUPS // AT_ONCE) if what == "lookups" else (queries(folder), QUERIES)
    )
    for number in range(int(count * BEFORE)):
        run(number)
    before = memory_kb()
    for number in range(int(count * BEFORE), count):
        run(number)
    grown = memory_kb() - before
    jvm.attach()
    from hudiindex import JavaThreads

    print(json.dumps({"grown_kb": grown, "java_threads": JavaThreads.count()}))


def memory_kb() -> int:
    """The process's own memory, without mapped files."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
