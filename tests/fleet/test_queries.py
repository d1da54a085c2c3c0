"""The box for a query on a table's page, and the child that answers it."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service import open_table
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import RequestInvalid
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.fleet.web.exchange import Refused
from hudi_index_service.fleet.web.queries import MOST_CHARACTERS, Answer, Queries
from tests.fleet.faulty_runner import RUNNER
from tests.fleet.memory_fleet import MemoryFleet, seen
from tests.fleet.served import SALES_SECRET, Asked, Browser, Served, served
from tests.golden.table import Golden

HOSTILE = "</textarea><script>hostile</script>"


@pytest.fixture
def ask() -> Asked:
    return Asked()


@pytest.fixture
def service(tmp_path: Path, ask: Asked) -> Served:
    fleet = MemoryFleet()
    fleet.add(seen("hr.people"), seen("sales.orders"), seen("hr.secret", reads=False))
    return served(tmp_path, fleet, ask=ask)


@pytest.fixture
def browser(service: Served) -> Browser:
    return service.browser(Role.READ)


def query(browser: Browser, where: str, kind: str = "count", table: str = "hr.people") -> Any:
    return browser.post(f"/tables/{table}/query", where=where, kind=kind)


def test_who_may_read_counts_and_explains(browser: Browser, ask: Asked) -> None:
    assert 'action="/tables/hr.people/query"' in browser.get("/tables/hr.people").text
    page = query(browser, "id = 1").text
    assert "1,234" in page
    assert "After 0.2 s." in page
    assert "id = 1</textarea>" in page
    ask.answer = Answer("explain", "2 of 3 base files <by index>", None, 0.25)
    assert "2 of 3 base files &lt;by index&gt;</pre>" in query(browser, "id = 1", "explain").text
    assert ask.questions == [("hr.people", "count", "id = 1"), ("hr.people", "explain", "id = 1")]


def test_an_error_keeps_what_was_written(browser: Browser, ask: Asked) -> None:
    ask.answer = Answer("count", "", Refusal("COLUMN_NOT_FOUND", HOSTILE, "Look."), 0.1)
    page = query(browser, f"x = '{HOSTILE}'").text

    assert "Look. <code>COLUMN_NOT_FOUND</code>" in page
    assert page.count("&lt;/textarea&gt;&lt;script&gt;hostile") == 2
    assert HOSTILE not in page
    ask.answer = RequestInvalid("Too long.")
    assert (query(browser, "y").status_code, "Too long." in query(browser, "y").text) == (400, True)


def test_a_table_of_others_and_one_without_queries_are_not_asked(
    service: Served, ask: Asked
) -> None:
    client = service.client()
    browser = Browser(client)
    browser.sign_in(SALES_SECRET)

    assert query(browser, "1 = 1").status_code == 404
    assert query(service.browser(Role.READ), "1 = 1", table="none").status_code == 404
    assert "/query" not in service.browser(Role.READ).get("/tables/hr.secret").text
    forged = browser.client.post("/tables/sales.orders/query", data={"where": "x"})
    assert forged.status_code == 403
    assert ask.questions == []


def test_without_queries_there_is_no_box(tmp_path: Path) -> None:
    fleet = MemoryFleet()
    fleet.add(seen("hr.people"))
    browser = served(tmp_path, fleet).browser(Role.READ)

    assert "/query" not in browser.get("/tables/hr.people").text
    assert query(browser, "x").status_code == 400


@pytest.fixture
def queries(tmp_path: Path) -> Iterator[Queries]:
    queries = Queries(Settings(state_folder=tmp_path / "state"))
    queries.start()
    yield queries
    queries.close()


def test_what_is_refused_takes_no_process(queries: Queries) -> None:
    with pytest.raises(RequestInvalid, match="longer than 10,000"):
        queries.ask(TablePolicy("a", "/a"), "count", "x" * (MOST_CHARACTERS + 1))
    with pytest.raises(Refused, match="no queries on a"):
        queries.ask(TablePolicy("a", "/a", reads=False), "count", "x")


@pytest.fixture
def table(golden: Golden, tmp_path: Path) -> TablePolicy:
    path = golden("two_partitions").put(tmp_path / "table")
    with open_table(path) as table:
        table.create_index("by_amount", ["amount"], using="btree")
        table.build(strategy=Strategy.ALL)
    return TablePolicy("lake.table", str(path))


@pytest.mark.slow
def test_a_child_answers_and_is_told_apart_from_mistakes(
    queries: Queries, table: TablePolicy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with open_table(table.uri) as opened:
        rows = opened.scan().count()
    assert queries.ask(table, "count", "").text == f"{rows:,}"
    explained = queries.ask(table, "explain", "amount = 3").text
    assert "amount = 3" in explained
    assert "btree" in explained
    wrong = queries.ask(table, "count", "colour = 'canary-in-where'")
    assert (wrong.text, wrong.error and wrong.error.code) == ("", "COLUMN_NOT_FOUND")
    gone = queries.ask(TablePolicy("gone", f"{table.uri}/gone"), "count", "")
    assert gone.error is not None
    assert gone.error.code == "TABLE_NOT_FOUND"
    assert "canary-in-where" not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "start_seconds", "words"),
    [
        ("deaf", 3.0, "The query took longer than 0.1 s."),
        ("segfaults", 60.0, "The query's process died."),
    ],
)
def test_a_query_that_cannot_be_ended_is_ended_with_its_process(
    tmp_path: Path, fault: str, start_seconds: float, words: str
) -> None:
    limits = {"seconds": 0.1, "start_seconds": start_seconds}
    settings = Settings(state_folder=tmp_path / "state")
    queries = Queries(settings, runner=RUNNER, **limits)
    queries.start()
    answer = queries.ask(TablePolicy("a", str(tmp_path / fault)), "count", "")

    assert answer.error is not None
    assert (answer.error.code, answer.error.message) == ("QUERY_CANCELLED", words)
    queries.close()
    assert queries.pids() == []


@pytest.mark.slow
def test_a_query_ends_at_its_deadline(table: TablePolicy, tmp_path: Path) -> None:
    queries = Queries(Settings(state_folder=tmp_path / "state"), seconds=0.000001)
    queries.start()
    answer = queries.ask(table, "count", "amount = 3")
    queries.close()

    assert answer.error is not None
    assert answer.error.code == "QUERY_CANCELLED"
    assert "longer than 1e-06 s" in answer.error.message
