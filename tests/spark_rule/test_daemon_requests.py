"""What the daemon for sessions without Python answers, without a session."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Semaphore
from typing import Any

import pyarrow as pa
import pytest

from hudi_index_service.cancellation import check
from hudi_index_service.errors import ConfigInvalid, RequestRefused
from hudi_index_service.fleet.forms.answer import AllowedFolders
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.fleet.web.application import WebServer
from hudi_index_service.hudi.timeline import list_timeline
from hudi_index_service.sql.rule.answers import Answers
from hudi_index_service.sql.rule.reader import RelationReader
from hudi_index_service.sql.rule.request import VERSION
from tests.fleet.served import SECRETS, token_file
from tests.indexed import GoldenIndex
from tests.spark_rule.daemons import TOKEN, code, daemon, post, request


@pytest.fixture
def orders(golden_index: GoldenIndex) -> Path:
    """Orders of seven years, with an index."""
    return golden_index("tpch_orders", ["o_orderkey"])


def question(name: str, body: str) -> bytes:
    """A question as it is sent."""
    head = f"POST /v{VERSION}/{name} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def connected(listener: WebServer, sent: bytes) -> socket.socket:
    """A connection over which something was sent."""
    connection = socket.create_connection(("127.0.0.1", int(listener.url.rpartition(":")[2])))
    connection.sendall(sent)
    return connection


def test_decision_and_rows(orders: Path) -> None:
    text = request(orders, 7)
    with daemon(orders.parent) as listener:
        status, decision = post(listener.url, "decide?cores=2", text)
        assert (status, json.loads(decision)["reader"]) == (200, "driver"), decision
        assert json.loads(decision)["rows"] == 1
        status, rows = post(listener.url, "rows?cores=2", text)
    assert status == 200
    assert pa.ipc.open_stream(rows).read_all().to_pylist() == [{"o_orderkey": 7}]


def test_many_rows_come_in_parts_to_sessions_that_ask_for_parts(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DRIVER_VALUES", "DRIVER_BYTES"):
        monkeypatch.setattr(f"hudi_index_service.sql.rule.by_index.{name}", 0)
    text = request(orders, 7)
    with daemon(orders.parent) as listener:
        _, parts = post(listener.url, "rows?cores=2&parts=true", text)
        _, reason = post(listener.url, "rows?cores=2", text)
    length = int.from_bytes(parts[:8])
    assert pa.ipc.open_stream(parts[8 : 8 + length]).read_all().to_pylist() == [{"o_orderkey": 7}]
    assert json.loads(parts[parts.rindex(bytes(8)) + 8 :])["rows"] == 1
    assert json.loads(reason) == {"reason": "they are too many for the session's jar"}


def test_a_timeline_that_spark_has_just_listed_is_not_listed_again(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = []

    def counted(*arguments: Any) -> Any:
        listed.append(arguments)
        return list_timeline(*arguments)

    monkeypatch.setattr("hudi_index_service.hudi.table.list_timeline", counted)
    with daemon(orders.parent) as listener:

        def rows_of(text: str) -> tuple[int, int]:
            listed.clear()
            _, decision = post(listener.url, "decide", text)
            return json.loads(decision).get("rows", 0), len(listed)

        assert rows_of(request(orders, 7))[0] == 1
        assert rows_of(request(orders, 32)) == (1, 0)
        older = json.loads(request(orders, 33))
        older["instants"] = ["20200101000000000"]
        rows, number = rows_of(json.dumps(older))
        assert (rows, number > 0) == (0, True), "Spark has seen another timeline"


def test_strangers_are_refused(orders: Path) -> None:
    with daemon(orders) as listener:
        for token in ("", "the tokem", "the token and more"):
            answer = post(listener.url, "decide", "{}", token=token)
            assert code(answer) == (401, "REQUEST_REFUSED")


def test_tokens_of_a_fleet_are_not_for_folders(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUDI_INDEX_WEB__TOKENS", str(token_file(tmp_path)))
    with daemon(orders) as listener:
        answer = post(listener.url, "decide", "{}", token=SECRETS[Role.OPERATE])
        assert code(answer) == (401, "REQUEST_REFUSED")


def test_another_release_is_named(orders: Path) -> None:
    with daemon(orders) as listener:
        status, answer = post(listener.url, "decide", request(orders, 7), version=99)
    assert status == 400
    error = json.loads(answer)
    assert "version 99" in error["message"]
    assert "one release" in error["remedy"]


@pytest.mark.parametrize(
    ("question", "body"),
    [
        ("decide", "no JSON"),
        ("decide", "[]"),
        ("decide?cores=0", "{}"),
        ("decide?cores=many", "{}"),
        ("decide?cores=99999999999", "{}"),
        ("decide?cores=" + "9" * 4301, "{}"),
        ("drop_everything", "{}"),
    ],
)
def test_malformed_requests(orders: Path, question: str, body: str) -> None:
    with daemon(orders) as listener:
        assert code(post(listener.url, question, body)) == (400, "REQUEST_REFUSED")


def test_the_release_before_is_answered(orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = request(orders, 7)
    monkeypatch.setattr("hudi_index_service.sql.rule.request.VERSION", VERSION + 1)
    with daemon(orders.parent) as listener:
        status, decision = post(listener.url, "decide", text)
        assert (status, json.loads(decision)["reader"]) == (200, "driver"), decision
        monkeypatch.setattr("hudi_index_service.sql.rule.request.VERSION", VERSION + 2)
        status, answer = post(listener.url, "decide", text)
    assert status == 400
    assert f"version {VERSION + 1} and {VERSION + 2}" in json.loads(answer)["message"]


@pytest.mark.parametrize("version", ["9" * 4301, "1x", "-1"])
def test_no_version_is_an_error_of_the_daemon(orders: Path, version: str) -> None:
    with daemon(orders) as listener:
        for token, status in (("", 401), (TOKEN, 400)):
            answer = post(listener.url, "decide", "{}", token=token, version=version)  # type: ignore[arg-type]
            assert code(answer) == (status, "REQUEST_REFUSED")


def test_values_of_other_types_are_refused(orders: Path) -> None:
    """Each field, also of a condition, is replaced by values of every type of JSON."""
    whole = json.loads(request(orders, 7))

    def of_other_types() -> Iterator[dict[str, Any]]:
        for place in (*whole, "condition", *whole["where"][0]):
            for value in (None, True, 1.5, "x", [], {}, [[]]):
                changed = json.loads(request_text)
                if place == "condition":
                    changed["where"] = [value]
                elif place in whole:
                    changed[place] = value
                else:
                    changed["where"][0][place] = value
                yield changed

    request_text = json.dumps(whole)
    with daemon(orders.parent) as listener:
        for changed in of_other_types():
            status, answer = post(listener.url, "decide", json.dumps(changed))
            assert status in (200, 400), (changed, answer)
            assert b"in Python" not in answer, (changed, answer)
        shown = {"text": "SHOW INDEXES FROM t", "catalog": "c"}
        bodies = [{}, {"uses": []}, {"uses": [{}]}, {"function": 1}]
        bodies += [{"function": "match", "text": []}, {**shown, "text": 1}]
        bodies += [{**shown, "more": 1}, {**shown, "entry": {}}]
        for question in ("bind", "explain", "statement", "run"):
            for body in bodies:
                status, answer = post(listener.url, question, json.dumps(body))
                assert (status, json.loads(answer)["error"]) == (200, "REQUEST_REFUSED"), body
            assert code(post(listener.url, question, "[]")) == (400, "REQUEST_REFUSED")


@pytest.mark.parametrize("number", ["1e500000000", "1e-500000000", "x", "NaN", "1e39"])
def test_no_decimal_becomes_a_long_text(orders: Path, number: str) -> None:
    changed = json.loads(request(orders, 7))
    changed["where"][0] |= {"type": "decimal(38,0)", "values": [number]}
    with daemon(orders.parent) as listener:
        status, answer = post(listener.url, "decide", json.dumps(changed))
    assert (status, json.loads(answer)["reader"]) == (200, "spark")
    assert len(answer) < 1000


def test_tables_elsewhere_are_not_opened(orders: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    call = {"function": "match", "text": "a", "edits": None}
    call["columns"] = [{"table": str(orders), "names": ["o_comment"]}]  # type: ignore[assignment]
    with daemon(elsewhere) as listener:
        status, decision = post(listener.url, "decide", request(orders, 7))
        answer = json.loads(decision)
        assert (status, answer["reader"]) == (200, "spark")
        assert "in none of the folders" in answer["reason"]
        status, rows = post(listener.url, "rows", request(orders, 7))
        assert "in none of the folders" in json.loads(rows)["reason"]
        status, bound = post(listener.url, "bind", json.dumps(call))
        assert json.loads(bound)["error"] == "REQUEST_REFUSED"


def test_folders_in_any_spelling(tmp_path: Path) -> None:
    (tmp_path / "data" / "orders").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    (tmp_path / "data" / "out").symlink_to("/")
    allowed = AllowedFolders([tmp_path / "link", "s3://bucket/tables"])
    assert allowed.missing() == []
    assert AllowedFolders([tmp_path / "typo"]).missing() == [str(tmp_path / "typo")]
    orders = str(tmp_path / "data" / "orders")
    for path in (orders, f"file:{orders}", f"file://{orders}", str(tmp_path / "link" / "orders")):
        assert allowed.checked(path) == orders
    assert allowed.checked("s3://bucket/tables/a") == "s3://bucket/tables/a"
    for path in (
        str(tmp_path),
        f"{tmp_path / 'data'}base",
        f"{orders}/../../..",
        str(tmp_path / "data" / "out" / "etc"),
        "s3://bucket/tables/../secrets",
        "s3://bucket/tablespace",
        "ftp://host/orders",
        "",
    ):
        with pytest.raises(RequestRefused):
            allowed.checked(path)
    with pytest.raises(ConfigInvalid):
        AllowedFolders([])


def test_questions_of_sessions_that_have_left_are_not_answered(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = Semaphore(0), Event()
    answered = Answers.rows

    def slowly(*arguments: Any, **named: Any) -> Any:
        begun.release()
        assert go_on.wait(60)
        return answered(*arguments, **named)

    monkeypatch.setattr(Answers, "rows", slowly)
    body = request(orders, 7)
    with daemon(orders.parent) as listener:
        sessions = [connected(listener, question("rows", body)) for _ in range(12)]
        for _ in range(4):
            assert begun.acquire(timeout=60)
        for each in sessions:
            each.close()
        assert post(listener.url, "decide", body)[0] == 200  # these need not wait
        with ThreadPoolExecutor() as threads:
            waits = threads.submit(post, listener.url, "rows", body)
            go_on.set()
            status, rows = waits.result(60)
        assert (status, pa.ipc.open_stream(rows).read_all().num_rows) == (200, 1)
        assert begun.acquire(timeout=60)
        assert not begun.acquire(timeout=0), "none but those that had begun, and the one that waits"


def test_work_for_a_session_that_leaves_ends(orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = Event(), Event()

    def until_cancelled(*arguments: Any, **named: Any) -> Any:
        begun.set()
        try:
            while True:
                check()
        finally:
            ended.set()

    monkeypatch.setattr(RelationReader, "rows", until_cancelled)
    with daemon(orders.parent) as listener:
        with connected(listener, question("rows", request(orders, 7))):
            assert begun.wait(60)
        assert ended.wait(60)
