"""An S3 server on the loopback interface, and real Hudi tables in a bucket of its."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any
from urllib.parse import parse_qs
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from pyspark.sql import SparkSession
from werkzeug.serving import make_server
from werkzeug.wsgi import ClosingIterator

from hudi_index_service import open_table
from hudi_index_service.storage import Storage
from tests.hudi_tables import hudi_options, numbered_rows, write

# Three pages a base file: fetching one of them is less than fetching the file.
ROWS = 100_000


@dataclass
class S3Server:
    """A server of moto's.

    Attributes:
        url: Its endpoint.
        requests: Method and path of every request since the last `forget`.
        sent: How many bytes were sent in answer, by method and path.
        listed: What the listings among them asked for: the beginning of the keys.
        rounds: How many requests, at least, had to wait for each other: one that comes when another
            has been answered may depend on it.
        latency: Seconds that each answer takes.
        failing: How many requests from now on are answered with an error.
        losing: How many writes from now on are done, and answered with an error.
    """

    url: str = ""
    requests: list[str] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    listed: list[str] = field(default_factory=list)
    rounds: int = 0
    latency: float = 0.0
    failing: int = 0
    losing: int = 0

    @property
    def options(self) -> dict[str, str]:
        """What `open_table` and `Storage` need to reach it."""
        return {
            "endpoint": self.url,
            "access_key_id": "anybody",
            "secret_access_key": "anything",
            "region": "us-east-1",
            "allow_http": "true",
        }

    def make_bucket(self) -> str:
        """A new, empty bucket."""
        name = f"bucket-{uuid4().hex[:8]}"
        self._put(name, b"")
        return name

    def forbid(self, bucket: str, *actions: str) -> None:
        """Refuses the actions, such as ``s3:PutObject``, on everything in the bucket."""
        statement = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": list(actions),
            "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
        }
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        self._put(f"{bucket}?policy", json.dumps(policy).encode())

    def forget(self) -> None:
        """Starts counting anew."""
        self.requests.clear()
        self.sent.clear()
        self.listed.clear()
        self.rounds = 0

    def _put(self, path: str, body: bytes) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        with urlopen(Request(f"{self.url}/{path}", body, headers, method="PUT"), timeout=30):
            pass


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """The server, on a free port, until the tests end."""
    server = S3Server()
    moto = DomainDispatcherApplication(create_backend_app)

    def counted(request: str, answer: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in answer:
            server.sent[request] += len(chunk)
            yield chunk

    def counting(environ: dict[str, Any], start_response: Any) -> Any:
        request = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        server.requests.append(request)
        server.listed.extend(parse_qs(environ["QUERY_STRING"]).get("prefix", ()))
        round = server.rounds + 1
        sleep(server.latency)
        server.rounds = max(server.rounds, round)
        writing = environ["REQUEST_METHOD"] in ("PUT", "POST")
        if server.failing:
            server.failing -= 1
        elif server.losing and writing:
            server.losing -= 1
            list(moto(environ, lambda *answer: None))
        else:
            return ClosingIterator(counted(request, moto(environ, start_response)))
        start_response("503 Slow Down", [("Content-Length", "0")])
        return [b""]

    listening = make_server("127.0.0.1", 0, counting, threaded=True)
    server.url = f"http://127.0.0.1:{listening.server_port}"
    thread = Thread(target=listening.serve_forever, name="s3-server", daemon=True)
    thread.start()
    yield server
    listening.shutdown()
    thread.join(30)
    listening.server_close()


@pytest.fixture(scope="session")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A merge-on-read table on the local disk: two partitions of one base file each; above that
    of the odd ids lies a log file."""
    path = tmp_path_factory.mktemp("remote") / "table"
    options = hudi_options("remote", "MERGE_ON_READ", partition_column="dt")
    write(numbered_rows(spark, 0, ROWS).coalesce(1), path, options, "bulk_insert")
    write(numbered_rows(spark, 51, 52, version=2), path, options)
    return path


@dataclass(frozen=True)
class Copies:
    """The same table in a bucket and on the local disk."""

    bucket: str
    uri: str
    local: Path


@pytest.fixture
def copies(written: Path, s3: S3Server, tmp_path: Path) -> Copies:
    bucket = s3.make_bucket()
    local = Path(shutil.copytree(written, tmp_path / "table"))
    storage = Storage(f"s3://{bucket}/tables/t", s3.options)
    for file in sorted(local.rglob("*")):
        if file.is_file():
            storage.upload(str(file.relative_to(local)), file)
    return Copies(bucket, storage.uri, local)


@pytest.fixture
def indexed(copies: Copies) -> Callable[..., None]:
    """Defines and builds the same index on any table of the copies."""

    def build(uri: str | Path, **options: Any) -> None:
        table = open_table(uri, **options)
        table.create_index("by_msg", ["msg", "amount"])
        table.build(strategy="all").raise_for_failures()

    return build
