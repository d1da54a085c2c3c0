"""Agents at the fleet's service: they speak the protocol by the SDK's own client over real HTTP,
and see what their token may see."""

import json
import logging
import shutil
import socket
from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service import Column, open_table
from hudi_index_service.config import WebSettings
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.fleet.web.address import names_of
from hudi_index_service.fleet.web.agents import MAX_BODY_BYTES
from tests.fleet.agents.asking import (
    CHANGING,
    HOSTILE,
    OPERATE,
    ORIGIN,
    READ,
    READING,
    WHERE,
    call,
    listed,
    mcp_client,
    post,
    refusal,
)
from tests.fleet.memory_fleet import seen
from tests.fleet.served import CANARY, SALES_SECRET, SECRETS
from tests.programs import lines_of


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_reads_by_either_form_of_the_protocol(server, path, mode):
    async def read() -> Any:
        async with mcp_client(server, READ, mode=mode) as client:
            names = await client.call_tool("list_tables", {})
            rows = await client.call_tool(
                "query_rows",
                {"table": "sales.messages", "where": WHERE, "columns": ["id", "ts"]},
            )
            counted = await client.call_tool(
                "count_rows", {"table": "sales.messages", "where": WHERE}
            )
            described = await client.call_tool("describe_table", {"table": "sales.messages"})
            return [each.structured_content for each in (names, rows, counted, described)]

    names, rows, counted, described = anyio.run(read)
    assert [each["name"] for each in names["tables"]] == [HOSTILE, "hr.people", "sales.messages"]
    table = open_table(path)
    wanted = table.scan(WHERE, columns=["id", "ts"]).to_arrow().to_pylist()
    assert sorted(rows["rows"]) == sorted([*each.values()] for each in wanted) != []
    assert counted == {"count": len(wanted)}
    assert described["name"] == "sales.messages"
    assert [each["name"] for each in described["columns"]] == table.schema().names


@pytest.mark.parametrize(
    ("secret", "tools"), [(READ, READING), (OPERATE, READING | CHANGING), (SALES_SECRET, READING)]
)
def test_tools_are_those_that_the_token_may_use(server, fleet, secret, tools):
    if secret == SALES_SECRET:  # for which other tables do not count
        fleet.add(seen("hr.more", uri="/nowhere", agents="change"))
        fleet.add(seen("sales.messages", uri="/nowhere"))
    found = listed(server, secret)
    assert {each.name for each in found.tools} == tools
    assert "Ignore" not in found.model_dump_json()
    assert "sales" not in found.model_dump_json()


def test_a_hidden_table_is_none(ask):
    def asked(secret: str, table: str) -> list[str]:
        answers = [
            ask(secret, tool, table=table)
            for tool in ("describe_table", "query_rows", "count_rows", "advise_indexes")
        ]
        assert {refusal(each) for each in answers} == {"TABLE_NOT_FOUND"}
        return [json.dumps(each.structured_content).replace(table, "") for each in answers]

    unknown = asked(SALES_SECRET, "sales.unknown")
    for hidden in ("hr.people", "hr.unknown", "sales.unread", "sales.closed"):
        assert asked(SALES_SECRET, hidden) == unknown
    names = ask(SALES_SECRET, "list_tables").structured_content["tables"]
    assert [each["name"] for each in names] == ["sales.messages"]


def test_of_many_tables_those_are_named_that_an_answer_holds(ask, fleet):
    fleet.add(*(seen(f"many.{number:04}", uri="/nowhere") for number in range(2000)))
    named = ask(READ, "list_tables", containing="many.").structured_content
    assert 100 < len(named["tables"]) < 2000
    assert named["more"] is True
    assert len(json.dumps(named)) < 40 * 1024
    (one,) = ask(READ, "list_tables", containing="many.1999").structured_content["tables"]
    assert one["name"] == "many.1999"


def test_a_name_that_is_no_text_spoils_no_list(ask, fleet):
    fleet.add(seen("sales.odd\udcff", uri="/sales/odd\udcff"))
    named = ask(SALES_SECRET, "list_tables", containing="odd").structured_content
    assert named["tables"] == [{"name": "sales.odd\\udcff", "uri": "/sales/odd\\udcff"}]


def test_the_sdk_is_imported_by_who_needs_it():
    program = "import sys, hudi_index_service.fleet.service; print('mcp' in sys.modules)"
    assert lines_of(program) == ["False"]


@pytest.mark.parametrize(
    ("secret", "status", "code"),
    [
        ("", 401, "ACCESS_REFUSED"),
        ("wrong", 401, "ACCESS_REFUSED"),
        (SECRETS[Role.NOTIFY], 403, "ACCESS_DENIED"),
        (SECRETS[Role.METRICS], 403, "ACCESS_DENIED"),
    ],
)
def test_other_tokens_are_refused(server, secret, status, code):
    answer = post(server, secret, call("list_tables"))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers.get("www-authenticate", "").startswith("Bearer") == (status == 401)
    with pytest.raises(Exception, match=r"."):
        listed(server, secret or "none")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7052", "127.0.0.1.evil.example"])
def test_a_name_that_somebody_has_led_here_is_refused(server, host):
    assert post(server, READ, call("list_tables"), host=host).status_code == 421


@pytest.mark.parametrize(
    ("origin", "status"), [("https://evil.example", 403), ("null", 403), (ORIGIN, 200)]
)
def test_a_page_of_another_site_is_refused(server, origin, status):
    answer = post(server, READ, call("list_tables"), origin=origin)
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("host", ["indexes.example.com", "localhost:1", "[::1]:7052"])
def test_the_names_of_the_service_are_known(server, host):
    assert post(server, READ, call("list_tables"), host=host).status_code == 200


def test_the_machines_name_is_known_if_it_listens_on_every_address():
    assert names_of(WebSettings(host="0.0.0.0"))[0] == socket.gethostname()
    assert names_of(WebSettings(host="10.1.2.3"))[0] == "10.1.2.3"
    assert names_of(WebSettings(host="::2"))[0] == "[::2]"


def test_there_are_no_sessions(server):
    headers = {"authorization": f"Bearer {READ}", "accept": "text/event-stream"}
    for method in ("GET", "DELETE"):
        answer = httpx.request(method, f"{server.url}/mcp", headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    answer = post(server, READ, call("list_tables"))
    assert "mcp-session-id" not in answer.headers


def test_a_long_body_is_refused(server):
    def without_length() -> Iterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 2**16 + 1):
            yield b" " * 2**16

    headers = {"authorization": f"Bearer {READ}", "content-type": "application/json"}
    for body in (b" " * (MAX_BODY_BYTES + 1), without_length()):
        answer = httpx.post(f"{server.url}/mcp", content=body, headers=headers, timeout=60)
        assert (answer.status_code, answer.json()["code"]) == (413, "REQUEST_INVALID")
    deep = httpx.post(f"{server.url}/mcp", content=b"[" * 10**5, headers=headers, timeout=60)
    assert deep.status_code == 400


def test_values_and_names_are_in_the_structured_content_alone(server, fleet, path, tmp_path):
    copy = shutil.copytree(path, tmp_path / "hostile")
    shutil.rmtree(copy / ".hoodie" / ".index")
    for each in copy.rglob("*.parquet"):
        rows = pq.read_table(each)
        hostile = pa.array([HOSTILE] * rows.num_rows)
        at = rows.column_names.index("sender")
        pq.write_table(rows.set_column(at, rows.schema.field("sender"), hostile), each)
    fleet.add(seen(HOSTILE, uri=str(copy)))

    async def asked() -> Any:
        async with mcp_client(server, READ) as client:
            arguments = {"table": HOSTILE}
            return [
                await client.call_tool("list_tables", {}),
                await client.call_tool("query_rows", {**arguments, "columns": ["sender"]}),
                await client.call_tool("describe_table", arguments),
                await client.call_tool("count_rows", {**arguments, "where": f"{HOSTILE} = 1"}),
                await client.call_tool("count_rows", {"table": f"{HOSTILE}!"}),
            ]

    names, rows, described, wrong, unknown = anyio.run(asked)
    assert HOSTILE in [each["name"] for each in names.structured_content["tables"]]
    assert rows.structured_content["rows"][0] == [HOSTILE]
    assert described.structured_content["name"] == HOSTILE
    for answer in (names, rows, described):
        assert [each.text for each in answer.content] == ["Done."]
    assert refusal(wrong) == "COLUMN_NOT_FOUND"
    assert refusal(unknown) == "TABLE_NOT_FOUND"


def test_a_text_is_searched(server, fleet, golden_index):
    words = Column(name="sender", options={"analyzer": "standard", "ranked": "true"})
    ranked = golden_index("messages_of_users", (words,))
    fleet.add(seen("sales.ranked", uri=str(ranked)))

    async def asked() -> Any:
        async with mcp_client(server, READ) as client:
            found = {"table": "sales.ranked", "column": "sender", "text": "user1", "limit": 2}
            return await client.call_tool("search_text", found)

    found = anyio.run(asked).structured_content
    wanted = open_table(ranked).search("sender", "user1", k=2).to_pylist()
    assert found["columns"][-1] == "_score"
    scores = [each["_score"] for each in wanted]
    assert [row[-1] for row in found["rows"]] == pytest.approx(scores, rel=1e-6)


def test_each_call_is_logged_with_its_caller(server, ask, caplog):
    caplog.set_level(logging.INFO)
    table = "sales.messages"
    ask(READ, "count_rows", table=table, where="sender = 'secret-1'")
    ask(READ, "count_rows", table=table, where="sender = 'secret-2' +")
    ask(READ, "count_rows", table="hr.people\nx", where="sender = 'secret-3'")
    ask(READ, "apply_change", table=table, plan="p")
    plan = ask(OPERATE, "plan_change", table=table, change="build").structured_content["plan"]
    ask(OPERATE, "apply_change", table=table, plan=plan)
    ask(OPERATE, "apply_change", table=table, plan=plan)
    post(server, f"{CANARY}-wrong", call("list_tables"))
    lines = [each.getMessage() for each in caplog.records if each.name.startswith("hudi_index")]
    reader, operator = "by readr from 127.0.0.1", "by operater from 127.0.0.1"
    assert [each for each in lines if each.startswith("Agent's call")] == [
        f"Agent's call: count_rows, table '{table}', {reader}: done.",
        f"Agent's call: count_rows, table '{table}', {reader}: PREDICATE_INVALID.",
        f"Agent's call: count_rows, table 'hr.people\\nx', {reader}: TABLE_NOT_FOUND.",
        f"Agent's call: apply_change, table '{table}', plan 'p', {reader}: REQUEST_INVALID.",
        f"Agent's call: plan_change, table '{table}', plan '{plan}', {operator}: done.",
        f"Agent's call: apply_change, table '{table}', plan '{plan}', request 'r1', {operator}: "
        "done.",
        f"Agent's call: apply_change, table '{table}', plan '{plan}', {operator}: PLAN_UNKNOWN.",
    ]
    assert f"Operator action: build incremental, table '{table}', id 'r1', {operator}." in lines
    assert "Request refused (401): The token is wrong." in lines
    assert "secret-" not in caplog.text
    assert CANARY not in caplog.text
