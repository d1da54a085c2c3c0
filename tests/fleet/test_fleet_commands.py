"""`hudi-index fleet status`, `build`, `clean` and `verify`: against a served fleet, and with a
fleet file alone."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from socket import gethostname
from typing import Any

import pytest

from hudi_index_service import open_table
from hudi_index_service.cli.fleet import TOKEN_VARIABLE
from hudi_index_service.config import HookSettings, WebSettings, settings
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.fleet.web.address import url_of
from hudi_index_service.fleet.web.application import WebServer
from tests.fleet.memory_fleet import FakeReason, MemoryFleet, seen, status_of
from tests.fleet.served import CANARY, SALES_SECRET, SECRETS, Served, served
from tests.golden.table import Golden
from tests.programs import Command


class AdvancingFleet(MemoryFleet):
    """Each look at a request brings it on: it waits, runs, and ends."""

    outcome = "finished"
    error: Refusal | None = None

    def build_of(self, request: str):
        found = super().build_of(request)
        if found is None:
            self.begin(request)
        elif any(each.running is found for each in self.observations.values()):
            table = next(name for name, each in self.observations.items() if each.running is found)
            self.end(table, self.outcome, self.error)
        return found


@pytest.fixture
def fleet() -> MemoryFleet:
    fleet = AdvancingFleet()
    late = status_of("/data/sales.orders", covered=5, lag_seconds=7200)
    fleet.add(
        seen("hr.people", owner="Bo"),
        seen("sales.orders", owner="Ann", group="sales", status=late),
        seen("sales.paused", enabled=False),
    )
    reason = FakeReason("lag", 3, "A base file waits.", "hudi-index build /data/sales.orders")
    fleet.reasons["sales.orders"] = [reason]
    return fleet


@pytest.fixture
def served_fleet(fleet: MemoryFleet, tmp_path: Path) -> Served:
    return served(tmp_path, fleet)


@pytest.fixture
def url(served_fleet: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server's address; the variable has a token of an operator."""
    monkeypatch.setenv(TOKEN_VARIABLE, SECRETS[Role.OPERATE])
    server = WebServer(WebSettings(port=0), HookSettings(), lambda most: served_fleet.application)
    server.start()
    yield server.url
    server.close()


def test_status_lists_tables_by_need(url: str, command: Command) -> None:
    printed = command("fleet", "status", "--url", url)
    lines = printed.splitlines()

    assert [line.split("│")[2].strip() for line in lines if line.startswith("│")] == [
        *("sales.orders", "hr.people", "sales.paused")
    ]
    assert "sales.orders: A base file waits. `hudi-index build /data/sales.orders`" in lines
    assert lines[-1] == "3 tables, 1 to attend to."
    report = json.loads(command("fleet", "status", "--url", url, "--json", "--match", "hr.*"))
    assert [each["name"] for each in report["tables"]] == ["hr.people"]
    csv = command("fleet", "status", "--url", url, "-o", "csv").splitlines()
    assert csv[0] == "severity,name,state,coverage,due,lag_seconds,reasons"
    assert csv[1] == "3,sales.orders,idle,0.5,5,7200.0,lag"


@pytest.mark.parametrize(("severity", "status"), [(2, 0), (3, 3), (4, 3)])
def test_status_fails_on_reasons_so_bad(
    url: str, command: Command, severity: int, status: int
) -> None:
    command("fleet", "status", "--url", url, "--fail-on", severity, status=status)
    command("fleet", "status", "--url", url, "--fail-on", 4, "--match", "hr.*")


def test_status_tells_of_problems_of_the_service(
    url: str, served_fleet: Served, command: Command
) -> None:
    status = ("fleet", "status", "--url", url, "--match", "hr.*")
    command(*status, "--fail-on", 4)
    served_fleet.problems.append(Refusal("STORAGE_FAILED", "The disk is full.", "Free space."))

    printed = command(*status, "--fail-on", 1, status=3)
    assert "STORAGE_FAILED: The disk is full. Free space." in printed.splitlines()
    report = json.loads(command(*status, "--json"))
    assert [each["code"] for each in report["problems"]] == ["STORAGE_FAILED"]
    assert report["knows_mutes"] is True


def test_the_address_is_by_default_that_of_the_settings(
    url: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("HUDI_INDEX_WEB__PORT", url.rpartition(":")[2])
        settings.cache_clear()
        printed = command("fleet", "status")
    settings.cache_clear()

    assert printed.endswith("3 tables, 1 to attend to.\n")


@pytest.mark.parametrize(
    ("web", "url"),
    [
        ({}, "http://127.0.0.1:7052"),
        ({"host": "::1", "port": 80}, "http://[::1]:80"),
        ({"host": "0.0.0.0", "tls_cert": "c", "tls_key": "k"}, f"https://{gethostname()}:7052"),
    ],
)
def test_the_url_of_an_address(web: dict[str, Any], url: str) -> None:
    assert url_of(WebSettings(**web)) == url


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        (["build", "--strategy", "all"], ("build", "sales.orders", "operater", "all")),
        (["build"], ("build", "sales.orders", "operater", None)),
        (["clean", "--dry-run"], ("clean", "sales.orders", "operater", True)),
        (["verify", "--repair"], ("verify", "sales.orders", "operater", "repair")),
    ],
)
def test_requests_are_sent_for_the_tables_that_match(
    url: str, fleet: MemoryFleet, command: Command, arguments: list[str], call: tuple[object, ...]
) -> None:
    options = ("--url", url, "--match", "sales.*", "--key", "run-1")
    printed = command("fleet", *arguments, *options)

    assert fleet.calls == [call]
    assert printed.splitlines() == ["sales.orders: requested r1.", "sales.paused: paused."]
    again = json.loads(command("fleet", *arguments, *options, "-o", "json"))
    assert again["key"] == "run-1"
    assert again["requests"][0] == again["requests"][0] | {"id": "r1", "repeated": True}
    assert len(fleet.calls) == 1


def test_requests_are_followed_to_their_end(url: str, command: Command) -> None:
    build = ("fleet", "build", "--url", url, "--match", "hr.*", "--match", "sales.o*", "--wait")
    lines = command(*build).splitlines()

    assert lines[:2] == ["sales.orders: requested r1.", "hr.people: requested r2."]
    assert lines[-1] == "hr.people: finished r2, 7 built."
    assert "sales.orders: finished r1, 7 built." in lines


def test_a_build_that_fails_is_told_with_its_remedy(
    url: str, fleet: AdvancingFleet, command: Command
) -> None:
    fleet.outcome, fleet.error = "died", Refusal("BUILD_DIED", "Its process died.", "Look.")
    build = ("fleet", "build", "--url", url, "--match", "hr.people", "--wait")

    assert "hr.people: died r1, 7 built: BUILD_DIED Its process died. Look." in command(
        *build, status=1
    )


def test_a_busy_service_is_asked_again(
    url: str, fleet: MemoryFleet, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        fleet.busy = False

    monkeypatch.setattr("hudi_index_service.fleet.client.sleep", sleep)
    fleet.busy = True

    assert "hr.people: requested r1." in command(
        *("fleet", "build", "--url", url, "--match", "hr.people")
    )
    assert pauses == [5.0]


def test_tables_that_no_pattern_matches_are_a_mistake(url: str, command: Command) -> None:
    build = ("fleet", "build", "--url", url, "--match", "none*")

    assert "TABLE_NOT_IN_FLEET: No table matches none*." in command(*build, status=1)


def test_a_refusal_is_told_and_the_other_tables_are_asked(
    url: str, fleet: MemoryFleet, command: Command, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(f"{SECRETS[Role.READ]}\n")
    build = ("fleet", "build", "--url", url, "--match", "*", "--token-file", token)
    printed = command(*build, status=1)
    assert printed.count("ACCESS_DENIED") == 2
    assert fleet.calls == []
    token.write_text(SALES_SECRET)
    assert command(*build).startswith("sales.orders: requested r1.")
    token.write_text(f"{CANARY}-wrong")
    printed = command("fleet", "status", "--url", url, "--token-file", token, status=1)
    assert "ACCESS_REFUSED: The token is wrong." in printed
    assert CANARY not in printed


@pytest.mark.parametrize(
    ("token", "words"), [("", "There is no token."), ("a\nb", "The token is no line of ASCII.")]
)
def test_a_token_is_needed(
    monkeypatch: pytest.MonkeyPatch, command: Command, token: str, words: str
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, token)

    assert f"CONFIG_INVALID: {words}" in command("fleet", "status", status=1)


def test_a_service_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, f"{CANARY}-token")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    printed = command("fleet", "status", "--url", f"http://127.0.0.1:{port}", status=1)

    assert f"No service of a fleet answers at http://127.0.0.1:{port}: " in printed
    assert "ftp://a" in command("fleet", "status", "--url", "ftp://a", status=1)
    assert CANARY not in printed


FILE = """\
version: 1
groups:
- name: shop
  include: ["{folder}/*", "{folder}/gone"]
  min_coverage: 1
  strategy: all
"""


@pytest.fixture
def file(golden: Golden, tmp_path: Path) -> Path:
    """A fleet file with a table whose index is not built, one without an index, one that is
    gone."""
    folder = tmp_path / "lake"
    for name in ("indexed", "plain"):
        golden("two_partitions").put(folder / name, "written")
    with open_table(folder / "indexed") as table:
        table.create_index("by_amount", ["amount"], using="btree")
    file = tmp_path / "fleet.yaml"
    file.write_text(FILE.format(folder=folder))
    return file


def test_without_a_service_the_tables_are_looked_at_from_here(file: Path, command: Command) -> None:
    status = ("fleet", "status", "--config", file)
    report = json.loads(command(*status, "--json", "--fail-on", 1, status=3))

    names = [(each["name"], each["severity"]) for each in report["tables"]]
    assert names == [("lake.gone", 1), ("lake.indexed", 3), ("lake.plain", 0)]
    reasons = [each["code"] for table in report["tables"] for each in table["reasons"]]
    assert reasons == ["unreachable", "low_coverage"]
    assert "polls failed: " in report["tables"][0]["reasons"][0]["words"]
    assert report["knows_mutes"] is False
    command(*status, "--fail-on", 3, "--match", "*.plain")
    printed = command(*status, "--match", "*.indexed", "--fail-on", 3, status=3)
    assert printed.endswith(
        "What an operator has muted is listed, too: only the service knows it.\n"
        "1 table, 1 to attend to.\n"
    )


def test_a_source_that_cannot_be_looked_up_is_the_worst(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FILE.format(folder=tmp_path / "none"))
    status = ("fleet", "status", "--config", file, "--match", "nothing")

    printed = command(*status, "--fail-on", 1, status=3)
    (line,) = [each for each in printed.splitlines() if "There is no folder" in each]
    assert "/none/* of group shop: " in line
    (problem,) = json.loads(command(*status, "--json"))["problems"]
    assert line == f"{problem['code']}: {problem['message']} {problem['remedy']}"
    mistake = command(*status, "--url", "http://localhost", status=1)
    assert "--config asks no service." in mistake
