"""A table of messages, a build that hangs, and a client that posts what Hudi would post."""

import http.client
import json
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Self
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession

from hudi_index_service.fleet.builds.child import Progress
from hudi_index_service.fleet.builds.messages import Ended, Order
from hudi_index_service.hook.write_options import CALLBACK_PATH, SECRET_HEADER
from tests.hudi_tables import write

SECRET = "secret-for-tests"

INLINE_CLUSTERING = {
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "1",
}
INLINE_COMPACTION = {
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
}


@dataclass
class MessageTable:
    """A small Hudi table of messages, written by Spark."""

    spark: SparkSession
    path: Path
    options: dict[str, str]

    def rows(self, count: int = 200) -> DataFrame:
        return self.spark.range(count).selectExpr(
            "cast(id AS string) AS id", "id AS ts", "concat('User', id % 10) AS sender"
        )

    def write(self, more: dict[str, str] | None = None) -> None:
        write(self.rows(), self.path, self.options | (more or {}))


@dataclass
class BlockedBuild:
    """A build that hangs until it is released, at the latest when its context ends; records the
    tables for which it was called."""

    begun: Event = field(default_factory=Event)
    released: Event = field(default_factory=Event)
    tables: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()

    def __call__(self, order: Order, progress: Progress) -> Ended:
        self.tables.append(order.table)
        self.begun.set()
        assert self.released.wait(60)
        return nothing_built(order, progress)


def nothing_built(order: Order, progress: Progress) -> Ended:
    """A build with nothing due."""
    return Ended(order.request, "finished")


def callback_of(table: Path | str) -> bytes:
    """The body of a callback as Hudi 1.2.0 sends it."""
    return json.dumps(
        {
            "commitTime": "20260101000000000",
            "tableName": "messages",
            "basePath": f"file:{table}",
            "hoodieWriteStat": [{"fileId": "a-0", "path": "a-0_0-1-1_20260101000000000.parquet"}],
            "commitActionType": {"empty": False, "present": True},
            "extraMetadata": {"empty": False, "present": True},
        }
    ).encode()


def service_callback_of(table: Path | str, action: str = "replacecommit") -> bytes:
    """The body of a callback for a table service's own commit, as releases after 1.2 send it
    (apache/hudi#18988)."""
    instant = "20260101000000001"
    written = {
        "fileId": "b-0",
        "path": f"b-0_0-1-1_{instant}.parquet",
        "prevCommit": "20260101000000000",
    }
    return json.dumps(
        {
            "commitTime": instant,
            "tableName": "messages",
            "basePath": f"file:{table}",
            "hoodieWriteStat": [written],
            "commitActionType": action,
            "extraMetadata": {"schema": "{}"},
            "prevFilePaths": {written["path"]: "a-0_0-1-1_20260101000000000.parquet"},
            "extraContext": {"operationType": "cluster", "asynchronous": True},
            "a field of a later release": [None],
        }
    ).encode()


def post(
    address: str, body: bytes, *, secret: str | None = SECRET, method: str = "POST"
) -> tuple[int, dict[str, Any]]:
    """The answer of the service at an address: status and JSON."""
    url = urlsplit(address)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=60)
    try:
        headers = {"Content-Type": "application/json"}
        if secret is not None:
            headers[SECRET_HEADER] = secret
        connection.request(method, CALLBACK_PATH, body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()
