"""Daemons in the tests' own process, and sessions that ask them as those without Python do."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.fleet.forms.answer import AllowedFolders
from hudi_index_service.fleet.forms.answer import answering as answering_for
from hudi_index_service.fleet.web.application import WebServer
from hudi_index_service.sql.rule.enable import enabled
from hudi_index_service.sql.rule.request import VERSION
from tests.ports import Listener

TOKEN = "the token"


@contextmanager
def daemon(*folders: Path, port: int = 0, may_change: bool = False) -> Iterator[WebServer]:
    """A daemon that may read the tables in some folders, closed at the end of the context."""
    settings = Settings(hook={"request_seconds": 60}, answer={"port": port})
    with answering_for(AllowedFolders(folders), TOKEN, settings, may_change=may_change) as server:
        server.start()
        yield server


def asks(session: SparkSession, address: str, token: str = TOKEN) -> SparkSession:
    """A session, which now asks a daemon. Call `enable` for another one before the test ends: it
    answers for sessions of no source of their own."""
    extensions: Any = enabled(session, None, None)._extensions
    jvm: Any = session._jvm
    loader = session._jsparkSession.sharedState().jarClassLoader()
    [constructor] = loader.loadClass("hudiindex.spark.source.HttpSource").getConstructors()
    arguments = jvm.java.util.ArrayList()
    for each in (address, token, 2):
        arguments.add(each)
    extensions.enable(session._jsparkSession, constructor.newInstance(arguments.toArray()))
    return session


def post(
    url: str, question: str, body: str, token: str = TOKEN, version: int = VERSION
) -> tuple[int, bytes]:
    """The status and the body of an answer."""
    request = urllib.request.Request(
        f"{url}/v{version}/{question}",
        data=body.encode(),
        headers={"Authorization": f"Bearer {token}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def request(path: Path, key: int) -> str:
    """A request of a session for an order, by its key."""
    with open_table(path) as table:
        instants = [table.scan().planned().plan.snapshot.instant]
    condition = {"op": "=", "column": ["o_orderkey"], "type": "long", "values": [key]}
    return json.dumps(
        {
            "version": VERSION,
            "table": f"file:{path}",
            "instants": instants,
            "options": {"path": str(path)},
            "columns": [{"name": "o_orderkey", "type": "long"}],
            "where": [condition],
        }
    )


def code(answer: tuple[int, bytes]) -> tuple[int, str]:
    """The status and the error's code of an answer."""
    return answer[0], json.loads(answer[1])["code"]


@contextmanager
def answering(response: bytes | None) -> Iterator[str]:
    """The address of something that accepts connections and sends some bytes instead of an answer;
    None: it keeps the connections open, and sends nothing."""

    def answer(connection: socket.socket) -> None:
        if response is not None:
            connection.recv(65536)
            connection.sendall(response)
            connection.close()

    with Listener(answer) as listener:
        yield f"http://127.0.0.1:{listener.port}"
