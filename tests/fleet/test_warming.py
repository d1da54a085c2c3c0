"""Tables that a fleet file wants ready for queries are made ready in the service's own process, at
low priority, when they are first seen and after each snapshot; and it is shown."""

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event

import httpx
import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.cancellation import check
from hudi_index_service.config import Settings
from hudi_index_service.fleet.observation import Observation, Refusal, Warmed
from hudi_index_service.fleet.policies.policy import Prewarm, TablePolicy
from hudi_index_service.fleet.reads.tables import ReadTables
from hudi_index_service.fleet.reads.warming import Warming
from hudi_index_service.fleet.service import Service
from hudi_index_service.fleet.signals.metrics import Metrics
from hudi_index_service.fleet.signals.seen import Seen
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.maintain.prewarm import Prewarmed
from hudi_index_service.read.base_file.kept_pages import forget_pages
from tests.fleet.memory_fleet import NOW, MemoryFleet, seen
from tests.fleet.served import SECRETS, served, token_file
from tests.indexed import GoldenIndex
from tests.programs import awaited

WANTED = Prewarm(("id", "msg"))


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    forget_pages()
    yield
    forget_pages()


@pytest.fixture
def path(golden_index: GoldenIndex) -> Path:
    return golden_index("four_base_files", ("amount",), using="btree")


@pytest.fixture
def told() -> list[tuple[str, Warmed]]:
    return []


@pytest.fixture
def warming(told: list[tuple[str, Warmed]]) -> Iterator[Warming]:
    tables = ReadTables(Settings())
    made = Warming(tables, lambda *each: told.append(each))
    made.start()
    yield made
    made.close()
    tables.close()


def observation(path: Path, wanted: Prewarm | None = WANTED, **policy: object) -> Observation:
    """A table as the service sees it."""
    with open_table(path) as table:
        known = TablePolicy("t", str(path), prewarm=wanted, **policy)  # type: ignore[arg-type]
        return Observation(known, at=NOW, status=table.status())


def test_a_table_is_made_ready_once_for_each_change(path, warming, told):
    first = observation(path)
    warming.observed(replace(first, status=None))
    warming.observed(first)
    awaited(lambda: told)
    ((uri, warmed),) = told
    assert uri == str(path)
    assert (warmed.ready.entries, warmed.ready.files, warmed.ready.left_out) == (4, 4, 0)
    warming.observed(replace(first, at=NOW + timedelta(minutes=1)))
    warming.observed(replace(first, warmed=warmed))
    later = replace(first, status=replace(first.status, instant="20991231000000000"))
    warming.observed(later)
    awaited(lambda: len(told) == 2)
    wanted = replace(later, policy=replace(later.policy, prewarm=Prewarm(("amount",))))
    warming.observed(wanted)
    awaited(lambda: len(told) == 3)
    assert [each.ready.opened for _, each in told] == [4, 0, 0]


def left_the_fleet(warming: Warming, first: Observation) -> None:
    warming.forget(first.policy.uri)


def lost_its_key(warming: Warming, first: Observation) -> None:
    warming.observed(replace(first, policy=replace(first.policy, prewarm=None)))


@pytest.mark.parametrize("leave", [left_the_fleet, lost_its_key])
def test_what_comes_back_is_made_ready_again(path, warming, told, leave):
    first = observation(path)
    warming.observed(first)
    awaited(lambda: told)
    leave(warming, first)
    warming.observed(first)
    awaited(lambda: len(told) == 2)
    assert told[1][1].ready.files == 4


@pytest.mark.parametrize(("wanted", "reads"), [(None, True), (WANTED, False)])
def test_what_nobody_wants_or_reads_is_left_alone(path, warming, told, wanted, reads):
    warming.observed(observation(path, wanted, reads=reads))
    warming.observed(replace(observation(path), policy=TablePolicy("x", "/x", prewarm=WANTED)))
    awaited(lambda: told)
    assert [uri for uri, _ in told] == ["/x"]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (Prewarm(("absent",)), "COLUMN_NOT_FOUND"),
        (Prewarm((), ("dt=1999-*",)), "CONFIG_INVALID"),
    ],
)
def test_a_wish_that_the_table_cannot_fulfil_is_told(path, warming, told, caplog, wanted, code):
    warming.observed(observation(path, wanted))
    awaited(lambda: told)
    assert told[0][1].ready is None
    assert told[0][1].error.code == code
    assert "is not made ready for queries" in caplog.text
    warming.observed(observation(path))  # the next one is not held up
    awaited(lambda: len(told) == 2)
    assert told[1][1].ready.files == 4


def test_it_has_low_priority_and_ends_with_the_service(path, warming, told, monkeypatch):
    begun, niceness = Event(), list[int]()

    def endless(self, columns, *, partitions=None):
        niceness.append(os.getpriority(os.PRIO_PROCESS, 0))
        begun.set()
        while True:
            check()

    monkeypatch.setattr(IndexedTable, "prewarm", endless)
    warming.observed(observation(path))
    assert begun.wait(30)
    assert niceness == [os.getpriority(os.PRIO_PROCESS, os.getpid()) + 10]
    warming.close()
    assert told == []


def test_a_fault_is_told_and_the_next_table_is_made_ready(path, warming, told, monkeypatch, caplog):
    prewarm, faults = IndexedTable.prewarm, [RuntimeError("odd")]

    def faulty(self, columns, *, partitions=None):
        if faults:
            raise faults.pop()
        return prewarm(self, columns, partitions=partitions)

    monkeypatch.setattr(IndexedTable, "prewarm", faulty)
    warming.observed(observation(path))
    awaited(lambda: told)
    assert told[0][1].error.message == "RuntimeError: odd"
    warming.observed(observation(path, Prewarm(("id",))))
    awaited(lambda: len(told) == 2)
    assert told[1][1].ready.files == 4


READY = Warmed(NOW, Prewarmed("1", 9, 9, 7, 7, 5, 8, 90, 3 * 2**20, 1, 2, 1))
FAILED = Warmed(NOW, error=Refusal("COLUMN_NOT_FOUND", "No <b>.", "Name another."))


def test_page_and_api_show_it(tmp_path):
    fleet = MemoryFleet()
    fleet.add(replace(seen("a"), warmed=READY), replace(seen("b"), warmed=FAILED), seen("c"))
    service = served(tmp_path, fleet)
    api = service.api(SECRETS[Role.READ])
    found = {name: api.get(f"/api/v1/tables/{name}").json()["prewarmed"] for name in "abc"}
    assert (
        found["a"].items()
        >= {**{"entries": 7, "files": 5, "left_out": 4, "bytes": 3 * 2**20, "error": None}}.items()
    )
    assert found["b"]["error"]["code"] == "COLUMN_NOT_FOUND"
    assert found["c"] is None
    browser = service.browser(Role.READ)
    pages = {name: browser.get(f"/tables/{name}").text for name in "abc"}
    assert "7 entries open, pages of 5 base files kept, 1 entry left out" in pages["a"]
    assert "no: No &lt;b&gt;." in pages["b"]
    assert "Ready for queries" not in pages["c"]


def test_metrics_count_it():
    seen_ = Seen()
    tables = [replace(seen("a"), warmed=READY), replace(seen("b"), warmed=FAILED)]
    for each in tables:
        seen_.observe(each, NOW)
    metrics = Metrics(lambda: tables, lambda each: seen_.shown(each, NOW))
    try:
        lines = [each for each in metrics.text().decode().splitlines() if "prewarmed{" in each]
    finally:
        metrics.close()
    values = {line.partition('kind="')[2].partition('"')[0]: line.split()[-1] for line in lines}
    assert values == {"entries": "7.0", "files": "5.0", "left_out": "4.0"}


@pytest.fixture
def service(golden, tmp_path) -> Iterator[tuple[Service, Callable[[str], None]]]:
    """A service of one table with an index, and what writes its next step."""
    texts = golden("searched_texts")
    path = texts.put(tmp_path / "table", "one base file")
    with open_table(path) as table:
        table.create_index("i", ["amount"], using="btree")
    web = {"tokens": token_file(tmp_path), "port": 0}
    settings = Settings(web=web, state_folder=tmp_path / "state")
    policy = TablePolicy(
        *("texts", str(path)), prewarm=WANTED, poll=timedelta(seconds=0.2), strategy=Strategy.ALL
    )

    def supervise(listener):
        return Supervisor([policy], settings=settings, listener=listener)

    with Service(supervise, settings) as made:
        yield made, lambda step: texts.put(path, step)


@pytest.mark.slow
def test_a_service_is_ready_again_after_each_build(service, caplog):
    caplog.set_level(logging.INFO, "hudi_index_service.fleet.reads.warming")
    running, write = service
    running.supervisor.start()
    running.answer()
    headers = {"authorization": f"Bearer {SECRETS[Role.READ]}"}

    def ready() -> int:
        url = f"{running.server.url}/api/v1/tables/texts"
        found = httpx.get(url, headers=headers).json()["prewarmed"]
        return 0 if found is None else found["entries"]

    awaited(lambda: ready() == 1, 60)
    write("two base files")
    awaited(lambda: ready() == 2, 60)
    assert "texts is ready for queries: 2 entries open, pages of 2 base files kept." in caplog.text
