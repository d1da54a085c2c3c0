"""An S3 server on the loopback interface, which counts its requests and can answer late."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread
from time import sleep
from typing import Any
from urllib.parse import parse_qs
from urllib.request import Request, urlopen
from uuid import uuid4

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
from werkzeug.wsgi import ClosingIterator

from hudi_index_service.storage.store import Storage


@dataclass
class S3Server:
    """A moto server.

    Attributes:
        url: Its endpoint.
        requests: Method and path of every request since the last `forget`.
        sent: Bytes sent in responses, by method and path.
        listed: The key prefixes of the listings among the requests.
        rounds: The least number of requests that had to wait for each other: a request that comes
            after another one's response may depend on it.
        latency: Seconds before each response.
        failing: The number of coming requests to be answered with an error.
        losing: The number of coming writes to be carried out and answered with an error.
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
        """The storage options with which `open_table` and `Storage` reach it."""
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

    def put(self, folder: Path) -> str:
        """Copies a table to a new bucket; returns its location there."""
        storage = Storage(f"s3://{self.make_bucket()}/tables/t", self.options)
        for file in folder.rglob("*"):
            if file.is_file() and not file.name.endswith(".crc"):
                storage.upload(str(file.relative_to(folder)), file)
        return storage.uri

    def forbid(self, bucket: str, *actions: str) -> None:
        """Denies the actions, such as ``s3:PutObject``, on everything in the bucket."""
        statement = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": list(actions),
            "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
        }
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        self._put(f"{bucket}?policy", json.dumps(policy).encode())

    def forget(self) -> None:
        """Resets the counters."""
        self.requests.clear()
        self.sent.clear()
        self.listed.clear()
        self.rounds = 0

    def _put(self, path: str, body: bytes) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        with urlopen(Request(f"{self.url}/{path}", body, headers, method="PUT"), timeout=30):
            pass


@contextmanager
def serving() -> Iterator[S3Server]:
    """The server, on a free port, for the length of the block."""
    server = S3Server()
    moto = DomainDispatcherApplication(create_backend_app)
    # moto looks for the object and writes it in two steps: of two creators at once both may win.
    conditional_write = Lock()

    def count_bytes(request: str, answer: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in answer:
            server.sent[request] += len(chunk)
            yield chunk

    def respond(environ: dict[str, Any], start_response: Any) -> Any:
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
            if_absent = "HTTP_IF_NONE_MATCH" in environ
            with conditional_write if if_absent else nullcontext():
                answer = moto(environ, start_response)
            return ClosingIterator(count_bytes(request, answer))
        start_response("503 Slow Down", [("Content-Length", "0")])
        return [b""]

    listening = make_server("127.0.0.1", 0, respond, threaded=True)
    server.url = f"http://127.0.0.1:{listening.server_port}"
    thread = Thread(target=listening.serve_forever, name="s3-server", daemon=True)
    thread.start()
    yield server
    listening.shutdown()
    thread.join(30)
    listening.server_close()
