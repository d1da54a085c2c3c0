"""The listener as a separate process: prints the write options, builds, and stops on a signal,
which may arrive at any moment."""

import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hudi_index_service import open_table
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.fleet.forms.serve import serve
from hudi_index_service.fleet.web.address import bound_socket
from hudi_index_service.hook.daemon import stopped_by_signals, warn_of_idle_tables
from hudi_index_service.hudi.properties import parse_properties
from tests.hudi_tables import hudi_options, run_clustering, write
from tests.programs import Running, ended

CALLBACK = "hoodie.write.commit.callback"
SERVE = """
import sys
from hudi_index_service.fleet.forms.serve import serve
serve(sys.argv[1:], wait=60)
"""


@pytest.fixture
def daemon(running: Running) -> Running:
    """Starts a daemon for some tables, which is killed when the test ends."""
    return partial(running, SERVE)


def printed_options(process: subprocess.Popen[str]) -> dict[str, str]:
    """The write options that the daemon prints, which have the form of a properties file."""
    assert process.stdout.readline().startswith("Listening for commits of ")
    return parse_properties("".join(process.stdout.readline() for _ in range(4)).encode())


def named_file(process: subprocess.Popen[str]) -> Path:
    """The file with all write options, which the daemon names after printing them."""
    named = re.fullmatch(
        r"All of them, with the secret of this run, are in (.+); only this user can read it\.\n",
        process.stdout.readline(),
    )
    return Path(named[1])


def test_daemon_builds_on_callbacks_and_stops_on_sigterm(spark, tmp_path, daemon):
    path = tmp_path / "messages"
    rows = spark.range(300).selectExpr(
        "cast(id AS string) AS id", "id AS ts", "concat('User', id % 10) AS sender"
    )
    write(rows, path, hudi_options("messages"))
    open_table(path).create_index("by_sender", ["sender"])
    run_clustering(spark, path)  # a procedure sends no callback, the next commit does
    process = daemon(path)
    printed = printed_options(process)
    assert printed[f"{CALLBACK}.http.timeout.seconds"] == "65"
    options = parse_properties(named_file(process).read_bytes())

    write(rows.limit(0), path, hudi_options("messages") | options)

    assert open_table(path).status()[0].covered == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert process.stdout.read() == "Stopping after the requested builds.\n"


def test_random_secret_is_only_in_a_private_file(tmp_path, daemon):
    state = tmp_path / "new" / "state"
    process = daemon(tmp_path, HUDI_INDEX_STATE_FOLDER=str(state))
    printed = printed_options(process)
    file = named_file(process)
    options = parse_properties(file.read_bytes())

    url = urlsplit(options[f"{CALLBACK}.http.url"])
    assert file == state / "serve" / f"{url.port}.properties"
    assert {**options, **{f"{CALLBACK}.http.api.key": f"<in {file}>"}} == printed
    secret = options[f"{CALLBACK}.http.api.key"]
    assert len(secret) > 40
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.stat().st_mode & 0o777 for each in (file.parent, state)] == [0o700, 0o700]
    request = urllib.request.Request(
        url.geturl(), data=b'{"basePath": "/other"}', headers={"HUDI-CALLBACK-KEY": secret}
    )
    with pytest.raises(urllib.error.HTTPError, match="403"):  # 401 with a wrong secret
        urllib.request.urlopen(request, timeout=60)

    process.send_signal(signal.SIGTERM)
    printed_last, logged = process.communicate(timeout=60)
    assert secret not in printed_last + logged
    assert list(file.parent.iterdir()) == [], "the secret is no longer valid"


def test_path_without_a_table_is_told_and_served_with_the_configured_secret(tmp_path, daemon):
    path = tmp_path / "typo"
    process = daemon(path, HUDI_INDEX_HOOK__SECRET="do-not-show-me")
    options = printed_options(process)
    assert process.stderr.readline().startswith(f"{path}: TABLE_NOT_FOUND: ")
    url = options[f"{CALLBACK}.http.url"]
    request = urllib.request.Request(
        url,
        data=f'{{"basePath": "{path}"}}'.encode(),
        headers={"HUDI-CALLBACK-KEY": "do-not-show-me"},
    )

    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200
        assert json.load(answer)["code"] == "TABLE_NOT_FOUND"
    assert options[f"{CALLBACK}.http.api.key"] == "<the setting hook.secret>"
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0, "the table may be written later"


def test_unwritable_state_folder_is_reported(tmp_path):
    (tmp_path / "file").touch()
    message = f"Cannot write the secret of this run to {tmp_path}"
    with pytest.raises(ConfigInvalid, match=message) as refused:
        serve([tmp_path], settings=Settings(state_folder=tmp_path / "file"))
    assert refused.value.remedy == (
        "Set HUDI_INDEX_HOOK__SECRET, or set state_folder to a folder of yours."
    )


def test_address_of_another_machine_is_refused(tmp_path):
    with pytest.raises(ConfigInvalid, match=r"cannot listen on 203\.0\.113\.1:0"):
        serve([tmp_path], host="203.0.113.1", settings=Settings())


SIGNAL_AT_EVERY_LINE = """
import signal, sys
from hudi_index_service.hook.daemon import stopped_by_signals, warn_of_idle_tables

def signalled_at(line):
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        if event == "line" and count == line:
            signal.raise_signal(signal.SIGTERM)
        return trace

    with stopped_by_signals() as stop:
        sys.settrace(trace)
        stop.wait(0.001)
        stop.set()
        stop.wait(0)
        sys.settrace(None)
        assert stop.wait(0)
    return line <= count

line = 1
while signalled_at(line):
    line += 1
print(line)
with stopped_by_signals() as stop:
    signal.raise_signal(signal.SIGTERM)
    print(stop.wait(60), flush=True)
    signal.raise_signal(signal.SIGTERM)
    print("still here", flush=True)
"""


def test_a_signal_at_any_line_causes_no_hang_and_a_second_one_has_its_original_effect() -> None:
    done = ended(SIGNAL_AT_EVERY_LINE)
    line, waited = done.stdout.splitlines()
    assert int(line) > 10, "there were lines to interrupt"
    assert (waited, done.returncode) == ("True", -15)


def test_the_wait_can_end_without_a_signal() -> None:
    with stopped_by_signals() as stop:
        assert not stop.wait(0.01)
        stop.interrupt()
        assert not stop.wait(60), "an interruption is the end of one wait"
        for _ in range(100_000):
            stop.set()
        assert stop.wait()


def test_it_is_said_what_would_never_be_built(indexed_table, golden, tmp_path, caplog):
    table = indexed_table
    undefined = golden("two_hundred_rows").put(tmp_path / "undefined")

    def warned(path: Path, options: dict[str, str] | None = None) -> list[str]:
        caplog.clear()
        warn_of_idle_tables(
            [str(path)], strategy=Strategy.INCREMENTAL, options=options, settings=Settings()
        )
        return caplog.messages

    (not_due,) = warned(table)
    assert not_due.startswith(f"{table}: Not indexed and not due: 1 of 1 base files for by_sender")
    assert f"`hudi-index build {table} --strategy all` indexes them." in not_due
    (no_index,) = warned(undefined)
    assert no_index.startswith(f"{undefined}: The table has no index: `hudi-index create ")
    (typo,) = warned(tmp_path / "typo")
    assert typo.startswith(f"{tmp_path / 'typo'}: TABLE_NOT_FOUND: ")
    (switched_off,) = warned(table, options={"hoodie.index.enabled": "false"})
    assert switched_off.endswith("the key hoodie.index.enabled is false.")
    assert warned(table, options={"hoodie.index.strategy": "all"}) == []
    open_table(table).build(strategy="all")
    assert warned(table) == []


def test_answers_do_not_wait_for_a_clients_ack() -> None:
    with (
        bound_socket("127.0.0.1", 0, "hook") as listening,
        socket.create_connection(listening.getsockname()),
    ):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
