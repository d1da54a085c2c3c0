"""A server that is unreachable, slow or silent: how often it gets requests, and the errors."""

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
from hudi_index_hbase.server import HBaseServer, KeptCells, server_of
from hudi_index_service.config import HBaseSettings
from hudi_index_service.errors import IndexServerUnavailable, NativeModuleMissing
from tests.ports import Listener, free_port


def tables(table: Any) -> list[bytes]:
    found: list[bytes] = table.connection.tables()
    return found


def deadline() -> float:
    return monotonic() + 30


def test_silent_server_gets_one_request_until_the_pause_ends() -> None:
    with Listener() as silent:
        server = HBaseServer(HBaseSettings(port=silent.port, pause_seconds=600))

        with pytest.raises(IndexServerUnavailable, match="does not answer in time"):
            server.read(tables, monotonic() + 0.2)
        for _ in range(100):
            with pytest.raises(IndexServerUnavailable) as refused:
                server.read(tables, deadline())

        assert (server.requests, len(silent.accepted)) == (1, 1)
        assert "does not answer in time (0 s ago; the next attempt is" in str(refused.value)
        assert refused.value.code == "INDEX_SERVER_UNAVAILABLE"


def test_server_that_sends_single_bytes_times_out() -> None:
    """Each byte arrives before any single wait times out, but the answer never completes."""
    stop = threading.Event()

    def send_single_bytes(connection: socket.socket) -> None:
        connection.settimeout(5)
        connection.recv(1)
        try:
            while not stop.wait(0.02):
                connection.send(b"\x80")
        except OSError:
            return

    with Listener(send_single_bytes) as dripping:
        server = HBaseServer(HBaseSettings(port=dripping.port, transport="framed"))
        try:
            with pytest.raises(IndexServerUnavailable):
                server.read(tables, monotonic() + 0.3)
        finally:
            stop.set()


def test_unreachable_server_raises() -> None:
    server = HBaseServer(HBaseSettings(port=free_port(), pause_seconds=600))

    with pytest.raises(
        IndexServerUnavailable, match="table default:hudi_index: it cannot be reach"
    ):
        server.read(tables, deadline())
    with pytest.raises(IndexServerUnavailable, match="the next attempt is possible"):
        server.read(tables, deadline())
    assert server.requests == 1


def test_request_is_sent_again_after_the_pause(hbase: HBase) -> None:
    gone = HBaseServer(HBaseSettings(port=free_port(), pause_seconds=1e-9))
    for attempt in (1, 2, 3):
        with pytest.raises(IndexServerUnavailable, match="cannot be reached"):
            gone.read(tables, deadline())
        assert gone.requests == attempt


def test_slow_requests_in_a_row_pause_the_server(hbase: HBase) -> None:
    settings = HBaseSettings(
        host=hbase.host, port=hbase.port, slow_seconds=1e-6, slow_requests=3, pause_seconds=600
    )
    server = HBaseServer(settings)
    for _ in range(3):
        server.read(tables, deadline())

    with pytest.raises(IndexServerUnavailable, match="is slow: 3 requests in a row took more than"):
        server.read(tables, deadline())
    assert server.requests == 3


def test_writes_are_retried(caplog: pytest.LogCaptureFixture) -> None:
    settings = HBaseSettings(
        port=free_port(), attempts=4, backoff_seconds=0.001, backoff_max_seconds=0.002
    )
    server = HBaseServer(settings)

    with pytest.raises(IndexServerUnavailable, match=r"cannot be reached \(4 attempts\)\."):
        server.write(tables)

    assert server.requests == 4
    assert [record.message.split(";")[1].split(" in ")[0] for record in caplog.records] == [
        " attempt 2 follows", " attempt 3 follows", " attempt 4 follows",
    ]  # fmt: skip


def test_closed_connection_is_reopened(breakable: HBase) -> None:
    server = HBaseServer(HBaseSettings(host=breakable.host, port=breakable.port))
    server.read(tables, deadline())
    breakable.kill_thrift()
    breakable.restart_thrift()

    assert isinstance(server.read(tables, deadline()), list)


def _read_in_child(server: HBaseServer, answers: "Any") -> None:
    answers.put(sorted(server.read(tables, deadline())))


def test_forked_process_has_its_own_connections(hbase: HBase) -> None:
    server = server_of(HBaseSettings(host=hbase.host, port=hbase.port))
    own = sorted(server.read(tables, deadline()))
    forking = multiprocessing.get_context("fork")
    answers = forking.Queue()

    child = forking.Process(target=_read_in_child, args=(server, answers))
    child.start()
    assert answers.get(timeout=60) == own
    child.join()

    assert child.exitcode == 0
    assert sorted(server.read(tables, deadline())) == own, "the parent's connection is still open"
    assert server.requests == 2


@contextmanager
def encrypted(hbase: HBase, certificate: Path, key: Path) -> Iterator[int]:
    """The port of a proxy that accepts TLS and forwards everything to the Thrift server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_OPTIONAL

    def forward(source: socket.socket, target: socket.socket) -> None:
        try:
            while content := source.recv(65_536):
                target.sendall(content)
        except OSError:
            return
        finally:
            for each in (source, target):
                each.close()

    def talk(connection: socket.socket) -> None:
        try:
            plain = context.wrap_socket(connection, server_side=True)
        except (ssl.SSLError, ConnectionError):
            return
        behind = socket.create_connection((hbase.host, hbase.port))
        for pair in ((plain, behind), (behind, plain)):
            threading.Thread(target=forward, args=pair, daemon=True).start()

    with Listener(talk) as proxy:
        yield proxy.port


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
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


def test_tls_connection_checks_the_certificate(
    hbase: HBase, certificates: tuple[Path, Path]
) -> None:
    certificate, key = certificates
    plain = HBaseServer(HBaseSettings(host=hbase.host, port=hbase.port))
    expected = sorted(plain.read(tables, deadline()))
    with encrypted(hbase, certificate, key) as port:
        trusted = HBaseSettings(
            port=port, tls=True, tls_ca=certificate, tls_cert=certificate, tls_key=key
        )
        unchecked = HBaseSettings(port=port, tls=True, tls_verify=False)
        for settings in (trusted, unchecked):
            server = HBaseServer(settings)
            assert sorted(server.read(tables, deadline())) == expected
            server.close()
        with pytest.raises(IndexServerUnavailable, match="certificate verify failed"):
            HBaseServer(HBaseSettings(port=port, tls=True)).read(tables, deadline())


def test_missing_tls_file_is_named(tmp_path: Path) -> None:
    settings = HBaseSettings(port=free_port(), tls=True, tls_ca=tmp_path / "absent.pem")
    with pytest.raises(IndexServerUnavailable, match=r"hbase.tls_ca names .*, which is not a file"):
        HBaseServer(settings).read(tables, deadline())


def test_kerberos_without_its_package_names_the_package(
    hbase: HBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kerberos", None)
    server = HBaseServer(HBaseSettings(host=hbase.host, port=hbase.port, kerberos_service="hbase"))
    with pytest.raises(NativeModuleMissing, match="module kerberos is missing") as missing:
        server.read(tables, deadline())
    assert missing.value.remedy == "Install it: pip install 'hudi-index-service[hbase-kerberos]'."


def test_missing_happybase_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = "hudi_index_hbase.connection"
    monkeypatch.delitem(sys.modules, connection, raising=False)
    monkeypatch.delattr("hudi_index_hbase.connection", raising=False)
    monkeypatch.setitem(sys.modules, "happybase", None)

    with pytest.raises(NativeModuleMissing, match="module happybase, which is missing") as missing:
        HBaseServer(HBaseSettings()).read(tables, deadline())
    assert "hudi-index-service[hbase]" in missing.value.remedy


def test_cell_cache_stays_within_its_size() -> None:
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
