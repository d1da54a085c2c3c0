"""Clients that connect and send little or nothing: with or without a secret, they do not block
callbacks, and their connections are released."""

import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing.connection import wait
from threading import Thread
from urllib.parse import urlsplit

import pytest

from hudi_index_service.fleet.web.application import WebServer
from hudi_index_service.hook.connections import connections_allowed
from hudi_index_service.hook.write_options import SECRET_HEADER
from tests.hook.callbacks import SECRET, BlockedBuild, callback_of, nothing_built, post
from tests.programs import Running

Connect = Callable[..., socket.socket]

HALF_A_HEADER = b"POST /hudi/commit HTTP/1.1\r\nHost: x\r\nX-Half: "
HALF_A_BODY = (
    b"POST /hudi/commit HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
    + f"{SECRET_HEADER}: {SECRET}\r\n\r\n".encode()
    + b"{"
)
HALF_A_BODY_WITHOUT_SECRET = (
    b"POST /hudi/commit HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
)
HALF_A_CHUNK = (
    b"POST /hudi/commit HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    + f"{SECRET_HEADER}: {SECRET}\r\n\r\n".encode()
    + b"3e8\r\n{"
)
NOT_HTTP = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"

SLOW = {
    "nothing": b"",
    "half a header": HALF_A_HEADER,
    "half a body": HALF_A_BODY,
    "half a body, no secret": HALF_A_BODY_WITHOUT_SECRET,
    "half a chunk": HALF_A_CHUNK,
}


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens connections to a listener, closed after the test."""
    with ExitStack() as stack:

        def open_one(listener: WebServer, sent: bytes = b"") -> socket.socket:
            url = urlsplit(listener.url)
            client = stack.enter_context(
                socket.create_connection((url.hostname or "", url.port or 0), timeout=60)
            )
            client.sendall(sent)
            return client

        yield open_one


def received_until_closed(client: socket.socket) -> bytes:
    """All bytes until the other side closes; fails if it does not do so within a minute."""
    received = b""
    try:
        while chunk := client.recv(65536):
            received += chunk
    except ConnectionResetError:
        pass
    return received


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
def test_a_request_that_does_not_arrive_is_cut_off(listening, connect, tmp_path, sent):
    listener = listening(nothing_built, tmp_path, limits={"request_seconds": 0.2})

    answered = received_until_closed(connect(listener, sent))

    assert answered == b"" or answered.startswith(b"HTTP/1.1 401 ")
    assert post(listener.url, callback_of(tmp_path))[0] in (200, 202)


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
def test_a_request_that_trickles_in_is_cut_off(listening, connect, tmp_path, sent):
    """Byte by byte: some bytes always arrive, the end never does."""
    listener = listening(nothing_built, tmp_path, limits={"request_seconds": 0.2})
    client = connect(listener, sent or HALF_A_HEADER[:1])
    rest = iter(HALF_A_HEADER[1:] + b"x" * 10_000 if sent in (b"", HALF_A_HEADER) else b"1" * 90)

    cut_off = False
    while not cut_off:
        readable = wait([client], 0.05)
        try:
            cut_off = bool(readable) and not client.recv(65536)
            client.send(bytes([next(rest)]))
        except (ConnectionResetError, BrokenPipeError):
            cut_off = True

    assert next(rest, None) is not None, "it was cut off before it had sent everything"


def test_an_idle_connection_is_closed(listening, connect, tmp_path):
    listener = listening(nothing_built, tmp_path, limits={"request_seconds": 0.2})

    whole = HALF_A_BODY_WITHOUT_SECRET.replace(b"100", b"1")
    answers = received_until_closed(connect(listener, whole))

    assert answers.count(b"HTTP/1.1 401 ") == 1


@pytest.mark.parametrize(
    "more",
    [b"", b"Connection: close\r\n", b"Connection: Upgrade\r\nUpgrade: h2c\r\n"],
    ids=["plain", "close", "upgrade"],
)
def test_a_callback_that_waits_for_its_build_is_not_cut_off(listening, connect, tmp_path, more):
    body = callback_of(tmp_path)
    header = f"POST /hudi/commit HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    secret = f"{SECRET_HEADER}: {SECRET}\r\n\r\n"
    with BlockedBuild() as build:
        listener = listening(build, tmp_path, wait=60, limits={"request_seconds": 0.2})
        writer = connect(listener, header.encode() + more + secret.encode() + body)
        assert build.begun.wait(30)
        for _ in range(3):  # long enough for a waiting callback to be cut off too
            received_until_closed(connect(listener, HALF_A_HEADER))
        assert wait([writer], 0) == []

    answer = received_until_closed(writer)  # it may send another request then, but does not
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b'{"status": "built", "built": 0, "failed": 0}')


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(sent, id=name, marks=() if name == "half a header" else pytest.mark.slow)
        for name, sent in SLOW.items()
    ],
)
def test_hundreds_of_slow_clients_do_not_block_callbacks(
    listening, connect, tmp_path, sent, caplog
):
    limits = {"max_connections": 50, "request_seconds": 3600}
    listener = listening(nothing_built, tmp_path, wait=30, limits=limits)
    clients = [connect(listener, sent) for _ in range(450)]

    assert post(listener.url, callback_of(tmp_path))[0] == 200

    # The clients that had waited longest were closed.
    waiting = set(clients)
    while len(waiting) > 50:
        closed = wait(waiting, 60)
        assert closed, f"{len(waiting)} connections are open"
        for client in closed:
            try:
                ended = not client.recv(65536)
            except ConnectionResetError:
                ended = True
            if ended:
                waiting.discard(client)
    refused = [line for line in caplog.messages if "connections are open" in line]
    assert len(refused) == 1, "logged once, not for each connection"
    assert len(caplog.messages) < 10


def test_connections_that_wait_for_an_answer_are_not_closed(listening, connect, tmp_path, caplog):
    """Writers waiting for builds use all connections: new clients are refused instead of them."""
    answers = []
    tables = [tmp_path / str(number) for number in range(3)]
    with BlockedBuild() as build:
        listener = listening(build, *tables, wait=60, limits={"max_connections": 3})
        writers = [
            Thread(
                target=lambda table=table: answers.append(post(listener.url, callback_of(table)))
            )
            for table in tables
        ]
        for writer in writers:
            writer.start()
        accepted = 0
        while accepted < 3:
            accepted = sum(each.is_being_answered for each in listener.connections)
            build.begun.wait(0.01)
        assert received_until_closed(connect(listener, HALF_A_HEADER)) == b""
        assert answers == []
    for writer in writers:
        writer.join()

    assert [status for status, _ in answers] == [200, 200, 200]
    assert "all wait for their builds" in caplog.text


def test_requests_without_the_secret_are_logged_once(listening, connect, tmp_path, caplog):
    listener = listening(nothing_built, tmp_path)
    statuses = set()
    for _ in range(20):
        statuses.add(post(listener.url, b"{}", secret="wrong")[0])
        status, answer = post(listener.url, b"", method="GET")
        assert (status, answer["code"]) == (405, "CALLBACK_REFUSED")
        assert received_until_closed(connect(listener, NOT_HTTP)).startswith(b"HTTP/1.1 400 ")
    assert statuses == {401, 429}
    assert len(warnings_of(caplog)) == 3

    listener.close()
    first, last = warnings_of(caplog)[:3], warnings_of(caplog)[3:]
    assert not [line for line in first if "more" in line]
    assert [line for line in last if "19 more" in line]
    assert len([line for line in last if "9 more" in line]) == len(last) == 3


def warnings_of(caplog):
    """The listener's own messages; the HTTP server logs its start and end."""
    return [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]


def test_most_file_descriptors_are_reserved_for_builds(monkeypatch, caplog):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert connections_allowed(128) == 128
    assert caplog.messages == []
    assert connections_allowed(1000) == 128
    assert caplog.messages == [
        "hook.max_connections=1000 is lowered to 128: this process may open 1024 files "
        "(ulimit -n), and builds need most of them."
    ]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert connections_allowed(1000) == 1000
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8, 8))
    assert connections_allowed(1000) == 1


# Twice as many clients as the process may open files: half of the files are for other uses.
LISTEN_WITH_FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (240, 240))
from hudi_index_service import IndexHook
hook = IndexHook(["/t"])
hook.start()
print(hook.url, flush=True)
for _ in sys.stdin:
    files = [open(sys.executable) for _ in range(120)]
    print(len(files), flush=True)
    del files
"""


@pytest.mark.slow
def test_a_flood_of_connections_leaves_file_descriptors_free(running: Running) -> None:
    process = running(LISTEN_WITH_FEW_FILES)
    url = urlsplit(process.stdout.readline())
    with ExitStack() as stack:
        for number in range(480):
            client = socket.create_connection((url.hostname or "", url.port or 0), timeout=60)
            stack.enter_context(client).sendall(HALF_A_HEADER)
            if number % 120 == 119:
                process.stdin.write("\n")
                process.stdin.flush()
                assert process.stdout.readline() == "120\n"
