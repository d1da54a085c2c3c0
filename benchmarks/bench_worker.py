"""One build task, or the Java helper alone, in a process of its own.

`python -m benchmarks.bench_worker worker|helper <table>`: index A of the table's largest base file.
The helper is fed batches from memory that were read before the clock starts; the worker reads the
base file, indexes, packs and publishes. Prints one JSON object: rows, seconds, and the process's
greatest resident set in MiB.
"""

import json
import resource
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import pyarrow as pa

from benchmarks.bench_contestants import COLUMNS
from hudi_index_service import open_table
from hudi_index_service.build.entry.task import BuildTask, TaskStatus, run_task
from hudi_index_service.config import settings
from hudi_index_service.hudi.files.base_file import read_columns
from hudi_index_service.hudi.files.parquet_file import open_parquet
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.lucene import jvm
from hudi_index_service.storage.store import Storage


def by_helper(batches: Sequence[pa.RecordBatch], columns: Sequence[ColumnSpec]) -> float:
    """Seconds of the Java helper alone, the finished index included."""
    with tempfile.TemporaryDirectory() as folder:
        started = perf_counter()
        builder = index_type("lucene").builder(
            columns, Path(folder), memory_mb=settings().build.memory_mb
        )
        for batch in batches:
            builder.add(batch)
        builder.finish()
        return perf_counter() - started


def by_worker(task: BuildTask) -> float:
    """Seconds of a build task."""
    started = perf_counter()
    outcome = run_task(task)
    if outcome.status is not TaskStatus.BUILT:
        raise SystemExit(f"The task ended as {outcome.status.value}: {outcome.error}")
    return perf_counter() - started


def main(role: str, uri: str) -> None:
    """Measures and prints the results."""
    shutil.rmtree(Path(uri, ".hoodie", ".index"), ignore_errors=True)
    table = open_table(uri)
    table.create_index("bench", COLUMNS["A"])
    due = max(table.build(strategy="all", dry_run=True).due, key=lambda entry: entry.base_file.size)
    limits = settings().build
    storage = Storage(uri)
    with open_parquet(storage, due.base_file.path) as file:
        rows = file.metadata.num_rows
        schema = pa.schema([(spec.name, spec.type) for spec in due.columns])
        read = read_columns(file, schema, batch_rows=limits.batch_rows, source=due.base_file.path)
        batches = list(read) if role == "helper" else []
    jvm.attach()
    if role == "helper":
        seconds = by_helper(batches, due.columns)
    else:
        seconds = by_worker(
            BuildTask(
                storage,
                due,
                "000001",
                memory_mb=limits.memory_mb,
                batch_rows=limits.batch_rows,
                schema=table.schema(),
            )
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    json.dump({"rows": rows, "seconds": seconds, "peak_rss_mb": peak}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
