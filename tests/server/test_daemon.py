"""The listener as a process of its own: says how to write, builds, and stops when told to."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.server.daemon import serve
from hudi_index_service.table.properties import parse_properties
from tests.hudi_tables import hudi_options, run_clustering, write

ROOT = Path(__file__).resolve().parents[2]
CALLBACK = "hoodie.write.commit.callback"
SERVE = (
    "import sys; from hudi_index_service.server.daemon import serve; serve(sys.argv[1:], wait=60)"
)


@pytest.fixture
def daemon() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a daemon for some tables; whatever happens, it does not outlive the test."""
    with ExitStack() as stack:

        def start(*tables: Path, **environment: str) -> subprocess.Popen[str]:
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-u", "-c", SERVE, *map(str, tables)],
                    env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            stack.callback(process.kill)
            return process

        yield start


def printed_options(process: subprocess.Popen[str]) -> dict[str, str]:
    """The write options that the daemon says, in the form of a properties file."""
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Listening for commits of ")
    return parse_properties("".join(process.stdout.readline() for _ in range(4)).encode())


def test_daemon_builds_on_callbacks_and_stops_on_sigterm(spark, tmp_path, daemon):
    path = tmp_path / "messages"
    rows = spark.range(300).selectExpr(
        "cast(id AS string) AS id", "id AS ts", "concat('User', id % 10) AS sender"
    )
    write(rows, path, hudi_options("messages"))
    open_table(path).create_index("by_sender", ["sender"])
    run_clustering(spark, path)  # a procedure does not call back, the next commit does
    process = daemon(path)
    options = printed_options(process)
    assert options[f"{CALLBACK}.http.timeout.seconds"] == "65"

    write(rows.limit(0), path, hudi_options("messages") | options)

    assert open_table(path).status()[0].indexed == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert process.stdout.read() == "Stopping: the builds asked for are finished first.\n"


def test_configured_secret_is_used_and_not_shown(tmp_path, daemon):
    process = daemon(tmp_path, HUDI_INDEX_HOOK__SECRET="do-not-show-me")
    options = printed_options(process)
    url = options[f"{CALLBACK}.http.url"]
    request = urllib.request.Request(
        url,
        data=f'{{"basePath": "{tmp_path}"}}'.encode(),
        headers={"HUDI-CALLBACK-KEY": "do-not-show-me"},
    )

    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200
        assert b'"code":"NOT_A_HUDI_TABLE"' in answer.read()
    assert options[f"{CALLBACK}.http.api.key"] == "<the setting hook.secret>"
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


def test_address_that_is_not_of_this_machine(tmp_path):
    with pytest.raises(ConfigInvalid, match=r"cannot listen on 203\.0\.113\.1:0"):
        serve([tmp_path], host="203.0.113.1", settings=Settings())
