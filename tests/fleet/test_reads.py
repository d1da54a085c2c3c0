"""Rows of a fleet's tables by HTTP: in each format as the table itself gives them, for those who
may see the table, with an error for everything else."""

import gzip
import io
import json
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pyarrow.csv
import pytest
from starlette.testclient import TestClient

from hudi_index_service import open_table
from hudi_index_service.cancellation import check
from hudi_index_service.config import HookSettings, Settings, WebSettings
from hudi_index_service.errors import SnapshotChanged
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.reads.tables import ReadTables
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.fleet.web.application import Application, WebServer
from hudi_index_service.fleet.web.reads import MAX_BODY_BYTES, Reads
from hudi_index_service.read.scan import Scan
from tests.at_once import at_once
from tests.fleet.memory_fleet import MemoryFleet, seen
from tests.fleet.served import SALES_SECRET, SECRETS, served
from tests.golden.table import GoldenTable
from tests.indexed import GoldenIndex

ARROW = "application/vnd.apache.arrow.stream"
WHERE = "sender = 'User1'"
TABLES = {
    "sales.messages": ("messages_of_users", ("sender",)),
    "hr.nested": ("nested_types", ()),
    "sales/files": ("hundred_base_files", ()),
}


@pytest.fixture
def paths(golden_index: GoldenIndex, golden: Callable[[str], GoldenTable]) -> dict[str, Path]:
    return {
        name: golden_index(table, columns, using="btree") if columns else golden_index(table)
        for name, (table, columns) in TABLES.items()
    }


@pytest.fixture
def application(paths: dict[str, Path], tmp_path: Path) -> Iterator[Callable[[int], Application]]:
    fleet = MemoryFleet()
    for name, path in paths.items():
        fleet.add(seen(name, uri=str(path)))
    fleet.add(seen("sales.unread", uri=str(paths["sales.messages"]), reads=False))
    fleet.add(seen("sales.gone", uri=str(tmp_path / "gone")))
    reads = Reads(ReadTables(Settings()))
    yield lambda most: served(tmp_path, fleet, more_routes=reads.routes).application
    reads.close()


@pytest.fixture
def client(application: Callable[[int], Application]) -> TestClient:
    client = TestClient(application(8).app)
    client.headers["authorization"] = f"Bearer {SECRETS[Role.READ]}"
    return client


def url(table: str, question: str) -> str:
    return f"/api/v1/tables/{table}/{question}"


def arrow(answer) -> pa.Table:
    assert answer.headers["content-type"] == ARROW
    return pa.ipc.open_stream(answer.content).read_all()


def in_order(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_threads_that_open_a_table_at_once_share_it(paths):
    tables = ReadTables(Settings())
    policy = TablePolicy("sales.messages", str(paths["sales.messages"]))
    with closing(tables):
        first, second = at_once(*[lambda: tables.table(policy)] * 2)
        assert first is second is tables.table(policy)


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_those_of_the_table(client, paths, name):
    wanted = open_table(paths[name]).scan().to_arrow()
    found = arrow(client.post(url(name, "rows")))
    assert found.schema == wanted.schema
    assert in_order(found) == in_order(wanted) != []


def test_a_condition_columns_and_a_limit(client, paths):
    wanted = open_table(paths["sales.messages"]).scan(WHERE, columns=["ts", "id"]).to_arrow()
    question = {"where": WHERE, "columns": ["ts", "id"]}
    posted = arrow(client.post(url("sales.messages", "rows"), json=question))
    assert in_order(posted) == in_order(wanted) != []
    assert posted.column_names == ["ts", "id"]
    got = arrow(client.get(url("sales.messages", "rows"), params=question))
    assert in_order(got) == in_order(wanted)
    few = client.get(url("sales.messages", "rows"), params={**question, "limit": "1"})
    assert arrow(few).num_rows == 1
    none = client.post(url("sales.messages", "rows"), json={"where": "sender = 'nobody'"})
    assert arrow(none).num_rows == 0


def test_json_lines_and_csv(client, paths):
    rows = open_table(paths["sales.messages"]).scan(WHERE, columns=["id", "ts"]).to_arrow()
    question = {"where": WHERE, "columns": ["id", "ts"]}
    ask = url("sales.messages", "rows")
    lines = client.post(ask, json=question, headers={"accept": "application/x-ndjson"})
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert in_order(pa.Table.from_pylist([*map(json.loads, lines.text.splitlines())])) == in_order(
        pa.Table.from_pylist(rows.to_pylist())
    )
    csv = client.post(ask, json=question, headers={"accept": "text/csv"})
    assert csv.headers["content-type"] == "text/csv; charset=utf-8"
    assert len(csv.text.splitlines()) == rows.num_rows + 1
    assert pa.csv.read_csv(io.BytesIO(csv.content)).column_names == ["id", "ts"]


@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/csv"])
def test_nested_values_are_text(client, accept):
    answer = client.post(url("hr.nested", "rows"), headers={"accept": accept})
    assert answer.status_code == 200
    assert len(answer.text.splitlines()) > 1


def test_answers_are_compressed_for_those_who_ask(client, paths):
    wanted = in_order(open_table(paths["sales.messages"]).scan().to_arrow())
    ask = url("sales.messages", "rows")
    with client.stream("POST", ask, headers={"accept-encoding": "gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        raw = gzip.decompress(b"".join(answer.iter_raw()))
    assert in_order(pa.ipc.open_stream(raw).read_all()) == wanted
    with client.stream("POST", ask, headers={"accept-encoding": "zstd, gzip"}) as answer:
        assert answer.headers["content-encoding"] == "zstd"
        packed = pa.BufferReader(b"".join(answer.iter_raw()))
    raw = pa.CompressedInputStream(packed, "zstd")
    assert in_order(pa.ipc.open_stream(raw).read_all()) == wanted
    plain = client.post(ask, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers


def test_count_exists_and_explain(client, paths):
    table = open_table(paths["sales.messages"])
    counted = client.get(url("sales.messages", "count"), params={"where": WHERE})
    assert counted.json() == {"count": table.scan(WHERE).count()}
    assert client.post(url("sales.messages", "count")).json() == {"count": table.scan().count()}
    exists = client.post(url("sales.messages", "exists"), json={"where": "sender = 'nobody'"})
    assert exists.json() == {"exists": False}
    explained = client.get(url("sales.messages", "explain"), params={"where": WHERE}).json()
    assert "by index: btree" in explained["text"]
    assert explained["explanation"] == json.loads(
        json.dumps(table.scan(WHERE).explain().to_dict(), default=str)
    )


def test_keys_are_located(client, paths):
    table = open_table(paths["sales/files"])
    keys = table.scan(columns=["_hoodie_record_key"]).to_arrow()[0].to_pylist()[:3]
    found = arrow(client.post(url("sales/files", "locate"), json={"keys": [*keys, "absent"]}))
    assert found == table.tag_location([*keys, "absent"])
    assert client.post(url("sales/files", "locate"), json={"keys": []}).status_code == 200


def test_an_unchanged_table_is_not_sent_again(client, golden, tmp_path):
    first = client.get(url("sales.messages", "rows"), params={"where": WHERE})
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, no-cache"
    again = client.get(
        url("sales.messages", "rows"), params={"where": WHERE}, headers={"if-none-match": tag}
    )
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    other = client.get(url("sales.messages", "rows"), headers={"if-none-match": 'W/"other"'})
    assert other.status_code == 200


@pytest.mark.parametrize(
    ("question", "body", "status", "code"),
    [
        ("rows", {"where": "sender ="}, 400, "PREDICATE_INVALID"),
        ("rows", {"where": "sender || 'a' = 'b'"}, 400, "PREDICATE_UNSUPPORTED"),
        ("rows", {"where": "nothing = 1"}, 400, "COLUMN_NOT_FOUND"),
        ("rows", {"columns": ["nothing"]}, 400, "COLUMN_NOT_FOUND"),
        ("rows", {"columns": []}, 400, "REQUEST_INVALID"),
        ("rows", {"limit": -1}, 400, "REQUEST_INVALID"),
        ("rows", {"limits": 1}, 400, "REQUEST_INVALID"),
        ("count", {"where": 1}, 400, "REQUEST_INVALID"),
        ("count", {"as_of": "yesterday"}, 400, "CONFIG_INVALID"),
        ("search", {"column": "msg", "text": "a", "k": 10**6}, 400, "REQUEST_INVALID"),
        ("search", {"column": "msg", "text": "a"}, 400, "COLUMN_NOT_FOUND"),
        ("search", {"column": "sender", "text": "a"}, 400, "PREDICATE_UNSUPPORTED"),
        ("locate", {"keys": [1]}, 400, "REQUEST_INVALID"),
        ("locate", {}, 400, "REQUEST_INVALID"),
    ],
)
def test_a_wrong_question_is_refused(client, question, body, status, code):
    answer = client.post(url("sales.messages", question), json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["remedy"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b'{"where": "a"' + b"]" * 300_000])
def test_a_body_that_is_no_question_is_refused(client, body):
    answer = client.post(url("sales.messages", "rows"), content=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "REQUEST_INVALID")


def test_a_body_without_end_is_not_read(client):
    def gigabyte() -> Iterator[bytes]:
        for _ in range(1024):
            sent.append(2**20)
            yield b" " * 2**20

    sent: list[int] = []
    answer = client.post(url("sales.messages", "rows"), content=gigabyte())
    assert answer.status_code == 413
    long = client.post(
        url("sales.messages", "count"),
        json={"where": f"sender IN ({', '.join(repr(f'User{each}') for each in range(100_000))})"},
    )
    assert len(long.request.content) < MAX_BODY_BYTES
    assert long.status_code == 200


@pytest.mark.parametrize("accept", ["text/html", "image/*", "application/json;q=0"])
def test_a_format_that_is_not_spoken_is_refused(client, accept):
    answer = client.post(url("sales.messages", "rows"), headers={"accept": accept})
    assert (answer.status_code, answer.json()["code"]) == (406, "REQUEST_INVALID")
    assert "text/csv" in answer.json()["remedy"]


@pytest.mark.parametrize(
    ("secret", "table", "status"),
    [
        ("", "sales.messages", 401),
        ("wrong", "sales.messages", 401),
        (SECRETS[Role.NOTIFY], "sales.messages", 403),
        (SECRETS[Role.METRICS], "sales.messages", 403),
        (SECRETS[Role.OPERATE], "hr.nested", 200),
        (SALES_SECRET, "hr.nested", 404),
        (SALES_SECRET, "sales.messages", 200),
        (SALES_SECRET, "unknown", 404),
        (SALES_SECRET, "sales.unread", 409),
        (SALES_SECRET, "sales.gone", 502),
    ],
)
@pytest.mark.parametrize("question", ["rows", "count", "exists", "explain"])
def test_only_those_who_may_see_a_table_read_it(client, secret, table, status, question):
    client.headers["authorization"] = f"Bearer {secret}"
    assert client.get(url(table, question)).status_code == status


def test_no_condition_is_logged(client, caplog):
    caplog.set_level(logging.DEBUG)
    for where in ("sender = 'canary-1'", "sender = 'canary-2' +", "absent = 'canary-3'"):
        client.post(url("sales.messages", "rows"), json={"where": where})
        client.get(url("sales.messages", "count"), params={"where": where})
    ours = [each for each in caplog.records if each.name.startswith(("hudi_index", "uvicorn"))]
    assert not [each for each in ours if "canary" in each.getMessage()]


def test_a_client_that_leaves_ends_its_query(application, monkeypatch):
    """It reads the first piece of endless rows, and goes."""
    ended = Event()

    batch = pa.record_batch({"a": pa.array(range(100_000))})

    def endless(scan: Scan) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        def batches() -> Iterator[pa.RecordBatch]:
            try:
                while True:
                    check()
                    yield batch
            finally:
                ended.set()

        return batch.schema, batches()

    monkeypatch.setattr(Scan, "stream", endless)
    server = WebServer(WebSettings(port=0), HookSettings(), application)
    server.start()
    with closing(server):
        at = urlsplit(server.url)
        with socket.create_connection((at.hostname, at.port), timeout=30) as leaving:
            head = f"GET {url('sales.messages', 'rows')} HTTP/1.1\r\nHost: x\r\n"
            leaving.sendall(f"{head}Authorization: Bearer {SECRETS[Role.READ]}\r\n\r\n".encode())
            assert leaving.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
            assert not ended.is_set()
        assert ended.wait(30)


def test_an_answer_that_fails_in_the_middle_has_no_end(application, monkeypatch, caplog):
    batch = pa.record_batch({"a": pa.array(range(100_000))})

    def failing(scan: Scan) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        def batches() -> Iterator[pa.RecordBatch]:
            yield batch
            raise SnapshotChanged("A file with canary-5 was deleted.")

        return batch.schema, batches()

    monkeypatch.setattr(Scan, "stream", failing)
    server = WebServer(WebSettings(port=0), HookSettings(), application)
    server.start()
    headers = {"authorization": f"Bearer {SECRETS[Role.READ]}", "accept-encoding": "identity"}
    with (
        closing(server),
        httpx.Client(base_url=server.url, headers=headers, timeout=60) as client,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        client.get(url("sales.messages", "rows"))
    assert "An answer was cut off: SNAPSHOT_CHANGED." in caplog.messages
    assert "canary" not in caplog.text


def test_the_description_names_every_question(client):
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    for question in ("rows", "count", "exists", "explain", "search"):
        operations = paths[f"/api/v1/tables/{{name}}/{question}"]
        assert operations.keys() == {"get", "post"}
        assert {"where", "columns"} & {each["name"] for each in operations["get"]["parameters"]}
    assert paths["/api/v1/tables/{name}/locate"].keys() == {"post"}
    described = paths["/api/v1/tables/{name}/rows"]["post"]["responses"]["200"]["content"]
    assert described.keys() == {ARROW, "application/x-ndjson", "text/csv"}
