"""A server that is away, slow or mute: how often it is asked, and what is said of it."""

import multiprocessing
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from dev.hbase import HBase
from hudi_index_service.config import HBaseSettings
from hudi_index_service.errors import IndexServerUnavailable, NativeModuleMissing
from hudi_index_service.index.hbase.server import HBaseServer, KeptCells, server_of


def tables(table: Any) -> list[bytes]:
    found: list[bytes] = table.connection.tables()
    return found


def soon() -> float:
    return monotonic() + 30


class Listener:
    """A port that takes connections and does with them what it is told.

    Attributes:
        accepted: How many there were.
    """

    def __init__(self, talk: "Any" = None) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.accepted = 0
        self._talk = talk
        self._taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                taken, _ = self._socket.accept()
            except OSError:
                return
            self.accepted += 1
            self._taken.append(taken)
            if self._talk is not None:
                self._talk(taken)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for each in self._taken:
            each.close()
        self._thread.join()


@contextmanager
def listening(talk: "Any" = None) -> Iterator[Listener]:
    listener = Listener(talk)
    try:
        yield listener
    finally:
        listener.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def test_who_is_mute_is_asked_once_and_then_left_alone() -> None:
    with listening() as mute:
        server = HBaseServer(HBaseSettings(port=mute.port, pause_seconds=600))

        with pytest.raises(IndexServerUnavailable, match="does not answer in time"):
            server.read(tables, monotonic() + 0.2)
        for _ in range(100):
            with pytest.raises(IndexServerUnavailable) as refused:
                server.read(tables, soon())

        assert (server.requests, mute.accepted) == (1, 1)
        assert "does not answer in time (0 s ago; it is not asked again for" in str(refused.value)
        assert refused.value.code == "INDEX_SERVER_UNAVAILABLE"


def test_who_answers_by_drops_is_mute() -> None:
    """Each byte comes before any wait for one is over; the answer never does."""
    stop = threading.Event()

    def drop_by_drop(taken: socket.socket) -> None:
        taken.settimeout(5)
        taken.recv(1)
        try:
            while not stop.wait(0.02):
                taken.send(b"\x80")
        except OSError:
            return

    with listening(drop_by_drop) as dripping:
        server = HBaseServer(HBaseSettings(port=dripping.port, transport="framed"))
        try:
            with pytest.raises(IndexServerUnavailable):
                server.read(tables, monotonic() + 0.3)
        finally:
            stop.set()


def test_who_is_not_there_is_said_to_be() -> None:
    server = HBaseServer(HBaseSettings(port=free_port(), pause_seconds=600))

    with pytest.raises(
        IndexServerUnavailable, match="table default:hudi_index: it cannot be reach"
    ):
        server.read(tables, soon())
    with pytest.raises(IndexServerUnavailable, match="is not asked again"):
        server.read(tables, soon())
    assert server.requests == 1


def test_after_the_pause_it_is_asked_again(hbase: HBase) -> None:
    gone = HBaseServer(HBaseSettings(port=free_port(), pause_seconds=1e-9))
    for asked in (1, 2, 3):
        with pytest.raises(IndexServerUnavailable, match="cannot be reached"):
            gone.read(tables, soon())
        assert gone.requests == asked


def test_several_slow_requests_in_a_row_are_too_many(hbase: HBase) -> None:
    known = HBaseSettings(
        host=hbase.host, port=hbase.port, slow_seconds=1e-6, slow_requests=3, pause_seconds=600
    )
    server = HBaseServer(known)
    for _ in range(3):
        server.read(tables, soon())

    with pytest.raises(IndexServerUnavailable, match="is slow: 3 requests in a row took more than"):
        server.read(tables, soon())
    assert server.requests == 3


def test_who_writes_tries_again(caplog: pytest.LogCaptureFixture) -> None:
    known = HBaseSettings(
        port=free_port(), attempts=4, backoff_seconds=0.001, backoff_max_seconds=0.002
    )
    server = HBaseServer(known)

    with pytest.raises(IndexServerUnavailable, match=r"cannot be reached \(4 attempts\)\."):
        server.write(tables)

    assert server.requests == 4
    assert [record.message.split(";")[1].split(" in ")[0] for record in caplog.records] == [
        " attempt 2 follows", " attempt 3 follows", " attempt 4 follows",
    ]  # fmt: skip


def test_a_connection_that_the_server_closed_is_made_anew(breakable: HBase) -> None:
    server = HBaseServer(HBaseSettings(host=breakable.host, port=breakable.port))
    server.read(tables, soon())
    breakable.kill_thrift()
    breakable.restart_thrift()

    assert isinstance(server.read(tables, soon()), list)


def _asked_in_child(server: HBaseServer, answers: "Any") -> None:
    answers.put(sorted(server.read(tables, soon())))


def test_a_forked_process_has_connections_of_its_own(hbase: HBase) -> None:
    server = server_of(HBaseSettings(host=hbase.host, port=hbase.port))
    own = sorted(server.read(tables, soon()))
    forking = multiprocessing.get_context("fork")
    answers = forking.Queue()

    child = forking.Process(target=_asked_in_child, args=(server, answers))
    child.start()
    assert answers.get(timeout=60) == own
    child.join()

    assert child.exitcode == 0
    assert sorted(server.read(tables, soon())) == own, "the child did not close the parent's"
    assert server.requests == 2


@contextmanager
def encrypted(hbase: HBase, certificate: Path, key: Path) -> Iterator[int]:
    """The port of a proxy that speaks TLS and passes everything on to the Thrift server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_OPTIONAL
    threads: list[threading.Thread] = []

    def passed_on(source: socket.socket, target: socket.socket) -> None:
        try:
            while content := source.recv(65_536):
                target.sendall(content)
        except OSError:
            return
        finally:
            for each in (source, target):
                each.close()

    def talk(taken: socket.socket) -> None:
        try:
            plain = context.wrap_socket(taken, server_side=True)
        except (ssl.SSLError, ConnectionError):
            return
        behind = socket.create_connection((hbase.host, hbase.port))
        for pair in ((plain, behind), (behind, plain)):
            threads.append(threading.Thread(target=passed_on, args=pair, daemon=True))
            threads[-1].start()

    with listening(talk) as proxy:
        yield proxy.port


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-keyout", key, "-out", certificate, "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return certificate, key


def test_tls_is_spoken_and_the_certificate_checked(
    hbase: HBase, certificates: tuple[Path, Path]
) -> None:
    certificate, key = certificates
    plain = HBaseServer(HBaseSettings(host=hbase.host, port=hbase.port))
    expected = sorted(plain.read(tables, soon()))
    with encrypted(hbase, certificate, key) as port:
        trusted = HBaseSettings(
            port=port, tls=True, tls_ca=certificate, tls_cert=certificate, tls_key=key
        )
        unchecked = HBaseSettings(port=port, tls=True, tls_verify=False)
        for known in (trusted, unchecked):
            server = HBaseServer(known)
            assert sorted(server.read(tables, soon())) == expected
            server.close()
        with pytest.raises(IndexServerUnavailable, match="certificate verify failed"):
            HBaseServer(HBaseSettings(port=port, tls=True)).read(tables, soon())


def test_a_file_of_tls_that_is_not_there_is_named(tmp_path: Path) -> None:
    known = HBaseSettings(port=free_port(), tls=True, tls_ca=tmp_path / "absent.pem")
    with pytest.raises(IndexServerUnavailable, match=r"hbase.tls_ca names .*, which is no file"):
        HBaseServer(known).read(tables, soon())


def test_kerberos_asks_for_the_packages_that_it_needs(
    hbase: HBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kerberos", None)
    server = HBaseServer(HBaseSettings(host=hbase.host, port=hbase.port, kerberos_service="hbase"))
    with pytest.raises(NativeModuleMissing, match="module kerberos is missing") as missing:
        server.read(tables, soon())
    assert missing.value.remedy == "pip install 'hudi-index-service[hbase-kerberos]'"


def test_without_happybase_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = "hudi_index_service.index.hbase.connection"
    monkeypatch.delitem(sys.modules, connection, raising=False)
    monkeypatch.delattr("hudi_index_service.index.hbase.connection", raising=False)
    monkeypatch.setitem(sys.modules, "happybase", None)

    with pytest.raises(NativeModuleMissing, match="module happybase, which is missing") as missing:
        HBaseServer(HBaseSettings()).read(tables, soon())
    assert "hudi-index-service[hbase]" in missing.value.remedy


def test_cells_are_kept_within_their_bounds() -> None:
    kept = KeptCells(10)
    kept.add(b"a", b"1234")
    kept.add(b"b", b"1234")
    assert kept.get(b"a") == b"1234"
    kept.add(b"c", b"1234")
    assert (kept.get(b"a"), kept.get(b"b"), kept.get(b"c")) == (b"1234", None, b"1234")
    kept.add(b"d", b"12345678901")
    assert kept.get(b"d") is None
    kept.add(b"a", b"12")
    assert (kept.get(b"a"), kept.get(b"c")) == (b"12", b"1234")
    assert KeptCells(0).get(b"a") is None
