"""The server: streams that hear of changes and end with it, limits, TLS."""

import http.client
import json
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from hudi_index_service.config import HookSettings, WebSettings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.fleet.web.application import WebServer
from hudi_index_service.hook.write_options import CALLBACK_PATH, SECRET_HEADER
from tests.fleet.memory_fleet import NOW, MemoryFleet, seen
from tests.fleet.served import CALLBACK_SECRET, SECRETS, served
from tests.hook.callbacks import callback_of


@pytest.fixture
def fleet():
    fleet = MemoryFleet()
    fleet.add(seen("sales.orders"), seen("hr.people"))
    return fleet


@pytest.fixture
def running(fleet, tmp_path):
    """Starts a server, which is closed after the test."""
    with ExitStack() as stack:

        def start(limits=None, **settings):
            server = WebServer(
                WebSettings(**{"port": 0, **settings}),
                HookSettings(**(limits or {})),
                lambda most: served(tmp_path, fleet, max_streams=most).application,
            )
            server.start()
            stack.callback(server.close)
            return server

        yield start


def connected(server, **options):
    url = urlsplit(server.url)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    return kind(url.hostname, url.port, timeout=30, **options)


def signed_in(server):
    """The headers of a browser that is signed in."""
    page = connected(server)
    page.request("GET", "/login")
    answer = page.getresponse()
    cookie = answer.headers["set-cookie"].split(";")[0]
    token = answer.read().decode().split('name="form_token" value="')[1].split('"')[0]
    page.request(
        "POST",
        "/login",
        f"form_token={token}&token={SECRETS[Role.OPERATE]}",
        {"Origin": server.url, "Cookie": cookie},
    )
    answer = page.getresponse()
    assert answer.status == 303
    page.close()
    return {"Cookie": answer.headers["set-cookie"].split(";")[0]}


@contextmanager
def stream(server, headers, path="/events"):
    """An open stream."""
    connection = connected(server)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    try:
        yield answer
    finally:
        connection.close()


def awaited(condition):
    """Waits until a condition holds."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_stream_tells_of_changes_of_what_its_page_shows(running, fleet):
    server = running()
    headers = signed_in(server)
    with (
        stream(server, headers) as every,
        stream(server, headers, "/events?table=hr.people") as one,
    ):
        assert every.headers["content-type"].startswith("text/event-stream")
        for each in (every, one):
            assert each.readline() == b"retry: 3000\n"
            assert each.readline() == b"\n"
        fleet.change("sales.orders", queued=NOW)
        assert every.readline() == b"event: changed\n"
        fleet.change("hr.people", queued=NOW)
        assert one.readline() == b"event: changed\n"


def test_an_answer_is_not_kept_for_a_writer_that_has_gone(running, fleet, caplog):
    server = running()
    writer = connected(server)
    headers = {SECRET_HEADER: CALLBACK_SECRET}
    writer.request("POST", f"{CALLBACK_PATH}?wait=60", callback_of("/data/hr.people"), headers)
    awaited(lambda: fleet.ends)  # it waits for its build
    writer.close()

    server.close()

    assert "Cancel" not in caplog.text  # what uvicorn says if an answer keeps it from ending


def test_a_stream_needs_a_session_and_a_table_that_is_there(running):
    server = running()
    with stream(server, {}) as answer:
        assert answer.status == 303
    with stream(server, signed_in(server), "/events?table=none") as answer:
        assert answer.readline() == b"retry: 3000\n"
        assert b"changed" in answer.read()  # and it ends, so that the page finds out


def test_streams_end_when_the_server_closes(running):
    server = running()
    with stream(server, signed_in(server)) as answer:
        assert answer.readline() == b"retry: 3000\n"
        server.close()
        assert answer.read() == b"\n"
    assert server.application.streams.open == 0


def test_streams_are_counted_and_leave_room_for_others(running):
    server = running(max_connections=4, max_streams=32)
    headers = signed_in(server)
    with ExitStack() as stack:
        for _ in range(2):
            assert stack.enter_context(stream(server, headers)).status == 200
        with stream(server, headers) as refused:
            assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        page = connected(server)
        page.request("GET", "/", headers=headers)
        assert page.getresponse().status == 200
        page.close()
    awaited(lambda: server.application.streams.open == 0)
    with stream(server, headers) as again:
        assert again.status == 200


def test_a_request_that_does_not_end_is_cut_off(running):
    server = running({"request_seconds": 0.2})
    url = urlsplit(server.url)
    with socket.create_connection((url.hostname, url.port), timeout=30) as slow:
        lines = ("POST /hudi/commit HTTP/1.1", "Host: a", "Content-Length: 9")
        secret = f"Authorization: Bearer {SECRETS[Role.NOTIFY]}"
        slow.sendall("\r\n".join((*lines, secret, "", "{")).encode())
        try:
            assert slow.recv(1024) == b""
        except ConnectionResetError:  # what it sent was not read
            return


def waiting(server, **options):
    """A request that waits for the end of a build."""
    connection = connected(server, **options)
    headers = {"Authorization": f"Bearer {SECRETS[Role.OPERATE]}"}
    connection.request("POST", "/api/v1/tables/hr.people/builds?wait=60", headers=headers)
    awaited(lambda: server.application.streams.open == 1)
    return connection


def test_a_request_that_waits_is_answered_when_the_service_ends(running):
    server = running()
    connection = waiting(server)
    server.close()
    answer = connection.getresponse()
    assert answer.status == 202
    assert json.loads(answer.read())["build"]["state"] == "waiting"
    connection.close()


def test_a_request_that_nobody_waits_for_any_more_takes_no_place(running):
    server = running()
    waiting(server).close()
    awaited(lambda: server.application.streams.open == 0)


def test_a_forwarded_address_is_not_believed(running, caplog):
    server = running()
    connection = connected(server)
    caplog.set_level("INFO")
    connection.request(
        "POST",
        "/api/v1/tables/hr.people/verify",
        headers={
            "Authorization": f"Bearer {SECRETS[Role.OPERATE]}",
            "X-Forwarded-For": "1.2.3.4",
        },
    )
    assert connection.getresponse().status == 202
    connection.close()
    assert "by operater from 127.0.0.1." in caplog.text
    assert "1.2.3.4" not in caplog.text


def self_signed(folder):
    """A certificate for 127.0.0.1 that it signs itself, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    subprocess.run(
        [
            *command.split(),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", key, "-out", cert),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("tls"))


def test_a_renewed_certificate_is_taken_and_a_wrong_one_is_not(running, tmp_path, caplog):
    cert, key = self_signed(tmp_path)
    server = running(tls_cert=cert, tls_key=key)
    url = urlsplit(server.url)

    def served_certificate():
        return ssl.get_server_certificate((url.hostname, url.port), timeout=30)

    first = cert.read_text()
    assert server.look() is None
    assert served_certificate() == first

    fitting = key.read_text()
    key.write_text("no key")
    refused = server.look()
    assert "cannot be used" in refused.message
    server.look()
    assert caplog.text.count("stays as it was") == 1
    assert served_certificate() == first
    key.write_text(fitting)
    assert server.look() is None

    self_signed(tmp_path)
    assert server.look() is None
    renewed = cert.read_text()
    assert renewed != first
    awaited(lambda: served_certificate() == renewed)


def test_it_serves_by_tls_and_hangs_up_on_who_says_nothing(running, certificate):
    cert, key = certificate
    server = running({"request_seconds": 0.3}, tls_cert=cert, tls_key=key)
    assert server.url.startswith("https://127.0.0.1:")
    connection = connected(server, context=ssl.create_default_context(cafile=cert))
    connection.request("GET", "/healthz")
    assert connection.getresponse().read() == b"ok\n"
    connection.close()

    url = urlsplit(server.url)
    with socket.create_connection((url.hostname, url.port), timeout=30) as silent:
        assert silent.recv(1) == b""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("encrypted", [False, True])
def test_its_end_waits_for_no_client_that_keeps_its_connection(
    running, certificate, encrypted, monkeypatch
):
    monkeypatch.setattr("hudi_index_service.fleet.web.application.SHUTDOWN_SECONDS", 3600)
    monkeypatch.setattr("asyncio.constants.SSL_SHUTDOWN_TIMEOUT", 3600.0)
    cert, key = certificate
    settings = {"tls_cert": cert, "tls_key": key} if encrypted else {}
    options = {"context": ssl.create_default_context(cafile=cert)} if encrypted else {}
    server = running({"request_seconds": 3600}, **settings)
    silent, idle = (connected(server, **options) for _ in range(2))
    silent.connect()
    idle.request("GET", "/healthz")
    assert idle.getresponse().read() == b"ok\n"
    busy = waiting(server, **options)

    server.close()

    assert busy.getresponse().status == 202
    for each in (silent, idle):
        assert each.sock.recv(1) == b""  # told that nothing more comes, not cut off
        each.close()
    busy.close()


def test_a_certificate_that_cannot_be_used_is_refused(running, tmp_path):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")

    with pytest.raises(ConfigInvalid, match=r"web\.tls_cert"):
        running(tls_cert=wrong, tls_key=wrong)
    with pytest.raises(ConfigInvalid, match="No such file"):
        running(tls_cert=tmp_path / "none", tls_key=wrong)


def test_an_address_in_use_is_refused(running):
    taken = urlsplit(running().url).port

    with pytest.raises(ConfigInvalid, match=r"web\.port"):
        running(port=taken)
