"""The first query of a process on a remote store with latency."""

import json
import logging
import os
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from benchmarks.bench_table import ROOT
from benchmarks.build import log
from benchmarks.scale import tables
from benchmarks.scale.queries import look_ups
from hudi_index_service.index.metadata.documents import INDEX_ROOT
from hudi_index_service.storage.store import Storage
from tests.remote.s3_server import S3Server, serving

logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would print each request

LATENCY = 0.025
"""Seconds before each response."""


def first_remote_query(scratch: Path, files: int, rounds: int) -> dict[str, Any]:
    """Point look-ups, each in a process of its own with an empty cache.

    Returns:
        The median seconds from the start of a process to its end; and, for the query with the most
        requests above `allowed` (or the fewest below it), the rows, the requests to the index and
        to base files (`own`), and those to Hudi's metadata (`hudi`). Six requests are allowed, and
        three for each base file that is read.
    """
    with serving() as server:
        storage = Storage(f"s3://{server.make_bucket()}/t", server.options)
        _upload(tables.folder_of(scratch, files), storage)
        server.latency = LATENCY
        point = look_ups(files)[0]
        queries = [_query(server, storage.uri, where) for where in point.wheres(rounds, "remote")]
    most = max(queries, key=lambda each: each["own"] - each["allowed"])
    result = {**most, "seconds": round(statistics.median(each["seconds"] for each in queries), 3)}
    log(f"{files} base files, remote: {result}")
    return result


def _upload(table: Path, storage: Storage) -> None:
    files = [each for each in sorted(table.rglob("*")) if each.is_file() and each.suffix != ".crc"]
    log(f"uploading {len(files)} files …")
    for file in files:
        storage.upload(str(file.relative_to(table)), file)


def _query(server: S3Server, uri: str, where: str) -> dict[str, Any]:
    server.forget()
    options = json.dumps(server.options)
    with TemporaryDirectory() as cache:
        began = perf_counter()
        process = subprocess.run(
            [sys.executable, "-m", "benchmarks.scale.first", uri, where, options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HUDI_INDEX_CACHE_FOLDER": cache},
            stdout=subprocess.PIPE,
            check=True,
        )
        seconds = perf_counter() - began
    read = [each for each in server.requests if each.endswith(".parquet")]
    # The path of a listing names the bucket alone.
    own = [each for each in (*server.requests, *server.listed) if INDEX_ROOT in each]
    return {
        "seconds": seconds,
        "rows": int(process.stdout),
        "own": len(own) + len(read),
        "hudi": len(server.requests) - len(own) - len(read),
        "allowed": 6 + 3 * len(set(read)),
    }
