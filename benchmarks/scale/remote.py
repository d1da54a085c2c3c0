"""The first query of a process on a remote store with latency."""

import logging
import statistics
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.build import log
from benchmarks.scale import tables
from benchmarks.scale.measure import first_of_a_process
from benchmarks.scale.queries import Query, look_ups
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
        three for each base file that is read. `dependent_rounds` are the most of any process.
    """
    with serving() as server:
        storage = Storage(f"s3://{server.make_bucket()}/t", server.options)
        _upload(tables.folder_of(scratch, files), storage)
        server.latency = LATENCY
        point = replace(look_ups(files)[0], columns=("key",))
        wheres = point.wheres(rounds, "remote")
        queries = [_query(server, storage.uri, point, where) for where in wheres]
    most = max(queries, key=lambda each: each["own"] - each["allowed"])
    result = {
        **most,
        "seconds": round(statistics.median(each["seconds"] for each in queries), 3),
        "dependent_rounds": max(each["dependent_rounds"] for each in queries),
    }
    log(f"{files} base files, remote: {result}")
    return result


def _upload(table: Path, storage: Storage) -> None:
    files = [each for each in sorted(table.rglob("*")) if each.is_file() and each.suffix != ".crc"]
    log(f"uploading {len(files)} files …")
    for file in files:
        storage.upload(str(file.relative_to(table)), file)


def _query(server: S3Server, uri: str, point: Query, where: str) -> dict[str, Any]:
    server.forget()
    with TemporaryDirectory() as cache:
        variables = {"HUDI_INDEX_CACHE_FOLDER": cache}
        seconds, rows = first_of_a_process(
            "ours", uri, where, point, storage_options=server.options, variables=variables
        )
    read = [each for each in server.requests if each.endswith(".parquet")]
    # The path of a listing names the bucket alone.
    own = [each for each in (*server.requests, *server.listed) if INDEX_ROOT in each]
    return {
        "seconds": seconds,
        "rows": rows,
        "dependent_rounds": server.rounds,
        "own": len(own) + len(read),
        "hudi": len(server.requests) - len(own) - len(read),
        "allowed": 6 + 3 * len(set(read)),
    }
