"""Questions by HTTP about what indexes cover: fast ones say what they leave out in their body, and
those that wait hear of builds from the fleet."""

import json
from collections.abc import Iterator
from threading import Thread
from time import monotonic

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from hudi_index_service.fleet.reads.tables import ReadTables
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.fleet.web.reads import Reads
from tests.fleet.memory_fleet import NOW, MemoryFleet, seen
from tests.fleet.served import SECRETS, Served, served
from tests.programs import awaited

WHERE = "amount >= 0"
FAST = {"where": WHERE, "fast": True}
AT = "/api/v1/tables/sales.messages"


@pytest.fixture
def table(golden, tmp_path) -> Iterator[IndexedTable]:
    """Four base files, of which those of one partition are indexed."""
    with open_table(golden("four_base_files").put(tmp_path / "table")) as table:
        table.create_index("i", ["amount"], using="btree")
        table.build(strategy="all", partitions=table.partitions()[:1]).raise_for_failures()
        yield table


@pytest.fixture
def left_out(table) -> int:
    return sum(each.base_files - each.covered for each in table.status())


@pytest.fixture
def fleet(table) -> MemoryFleet:
    fleet = MemoryFleet()
    fleet.add(seen("sales.messages", uri=table.uri.removeprefix("file://")))
    return fleet


@pytest.fixture
def service(fleet, tmp_path) -> Iterator[Served]:
    reads = Reads(ReadTables(Settings()))
    yield served(tmp_path, fleet, more_routes=reads.routes)
    reads.close()


@pytest.fixture
def client(service) -> TestClient:
    return service.api(SECRETS[Role.READ])


def test_arrow_says_it_in_its_schema(client, table, left_out):
    answer = client.post(f"{AT}/rows", json=FAST)
    rows = pa.ipc.open_stream(answer.content).read_all()
    assert json.loads(rows.schema.metadata[b"hudi_index.fast"]) == {"files_left_out": left_out}
    assert 0 < rows.num_rows < table.scan(WHERE).count()
    everything = pa.ipc.open_stream(client.post(f"{AT}/rows", json={"where": WHERE}).content)
    assert (
        everything.schema.metadata is None or b"hudi_index.fast" not in everything.schema.metadata
    )


@pytest.mark.parametrize("limit", [0, 1, None])
def test_json_lines_end_with_it(client, table, left_out, limit):
    accept = {"accept": "application/x-ndjson"}
    answer = client.post(f"{AT}/rows", json={**FAST, "limit": limit}, headers=accept)
    *rows, last = map(json.loads, answer.text.splitlines())
    assert last == {"hudi_index.fast": {"files_left_out": left_out}}
    number = table.scan(WHERE, fast=True).count()
    assert len(rows) == (number if limit is None else limit)
    whole = client.post(f"{AT}/rows", json={"where": WHERE}, headers=accept)
    assert "hudi_index.fast" not in whole.text


@pytest.mark.parametrize("question", ["rows", "search"])
def test_csv_has_no_place_for_it(client, question):
    body = {**FAST, "column": "msg", "text": "car"} if question == "search" else FAST
    answer = client.post(f"{AT}/{question}", json=body, headers={"accept": "text/csv"})
    assert (answer.status_code, answer.json()["code"]) == (406, "REQUEST_INVALID")
    assert "application/x-ndjson" in answer.json()["remedy"]
    assert "text/csv" not in answer.json()["remedy"]


def test_counts_and_explanations_have_a_field_for_it(client, table, left_out):
    said = {"files_left_out": left_out}
    number = table.scan(WHERE, fast=True).count()
    assert client.post(f"{AT}/count", json=FAST).json() == {"count": number, "fast": said}
    assert client.post(f"{AT}/exists", json=FAST).json() == {"exists": True, "fast": said}
    explained = client.post(f"{AT}/explain", json=FAST).json()
    assert explained["fast"] == said
    assert explained["explanation"]["files"]["left_out"] == left_out
    got = client.get(f"{AT}/count", params={"where": WHERE, "fast": "true"})
    assert got.json() == {"count": number, "fast": said}
    plain = client.post(f"{AT}/count", json={"where": WHERE}).json()
    assert plain == {"count": table.scan(WHERE).count()}


def test_no_header_makes_an_answer_fast(client, table):
    headers = {"fast": "true", "x-fast": "1", "prefer": "fast", "x-hudi-index-fast": "true"}
    answer = client.post(f"{AT}/count", json={"where": WHERE}, headers=headers)
    assert answer.json() == {"count": table.scan(WHERE).count()}


def test_a_fast_answer_is_never_taken_for_an_unchanged_one(client, table, left_out):
    """Builds change it, though they do not change the timeline."""
    tag = client.get(f"{AT}/count", params={"where": WHERE}).headers["etag"]
    again = {"if-none-match": tag}
    fast = client.get(f"{AT}/count", params={"where": WHERE, "fast": "true"}, headers=again)
    assert (fast.status_code, "etag" in fast.headers) == (200, False)
    table.build(strategy="all").raise_for_failures()
    fast = client.get(f"{AT}/count", params={"where": WHERE, "fast": "true"}, headers=again)
    assert fast.json() == {"count": table.scan(WHERE).count(), "fast": {"files_left_out": 0}}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"fast": "perhaps"}, 400, "REQUEST_INVALID"),
        ({"fast": True, "use_index": "never"}, 400, "CONFIG_INVALID"),
        ({"fast": True, "where": None}, 409, "INDEX_REQUIRED"),
        ({"fast": True, "where": "id = '1'"}, 409, "INDEX_REQUIRED"),
        ({"wait": 1}, 400, "REQUEST_INVALID"),
        ({"only_if_covered_to": "2026-01-01", "wait": -1}, 400, "REQUEST_INVALID"),
        ({"only_if_covered_to": "2026-01-01", "wait": 61}, 400, "REQUEST_INVALID"),
        ({"only_if_covered_to": "2026-01-01", "wait": "long"}, 400, "REQUEST_INVALID"),
        ({"only_if_covered_to": "soon"}, 400, "CONFIG_INVALID"),
        ({"only_if_covered_to": "2099-01-01"}, 409, "NOT_COVERED"),
        ({"only_if_covered_to": "2098-12-31 23:59:59"}, 409, "NOT_COVERED"),
    ],
)
@pytest.mark.parametrize("question", ["rows", "count", "exists", "explain"])
def test_a_wrong_question_is_refused(client, question, body, status, code):
    answer = client.post(f"{AT}/{question}", json={"where": WHERE, **body})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["remedy"]


def test_an_uncovered_table_is_refused_until_it_is_built(client, table):
    latest = table.hudi_table.latest_instant()
    body = {"where": WHERE, "only_if_covered_to": latest}
    refused = client.post(f"{AT}/count", json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "NOT_COVERED")
    assert latest in refused.json()["message"]
    table.build(strategy="all").raise_for_failures()
    assert client.post(f"{AT}/count", json=body).json() == {"count": table.scan(WHERE).count()}


def test_a_question_waits_for_what_the_fleet_sees(client, fleet, service, table):
    """It is tried again when the fleet has seen the build's end, and not before."""
    body = {"where": WHERE, "only_if_covered_to": table.hudi_table.latest_instant(), "wait": 60}
    answers = []
    asking = Thread(target=lambda: answers.append(client.post(f"{AT}/count", json=body)))
    with client:
        asking.start()
        streams = service.application.streams
        awaited(lambda: streams.open == 1)
        table.build(strategy="all").raise_for_failures()
        assert streams.open == 1
        assert not answers
        fleet.change("sales.messages", at=NOW.replace(hour=13))
        asking.join(30)
    assert [each.json() for each in answers] == [{"count": table.scan(WHERE).count()}]
    assert streams.open == 0


def test_who_waits_in_vain_is_told(client, service, fleet, table):
    body = {"where": WHERE, "only_if_covered_to": "2099-01-01", "wait": 0.2}
    assert client.post(f"{AT}/count", json=body).json()["code"] == "NOT_COVERED"
    service.application.streams.open = 10**6  # too many wait already
    started = monotonic()
    answer = client.post(f"{AT}/count", json={**body, "wait": 60})
    assert answer.json()["code"] == "NOT_COVERED"
    assert monotonic() - started < 30
    service.application.streams.open = 0


def test_the_description_has_the_fields(client):
    described = client.get("/api/v1/openapi.json").json()
    operation = described["paths"]["/api/v1/tables/{name}/rows"]["get"]
    names = {each["name"] for each in operation["parameters"]}
    assert {"fast", "only_if_covered_to", "wait"} <= names
    assert "fast" in described["components"]["schemas"]["Count"]["properties"]
