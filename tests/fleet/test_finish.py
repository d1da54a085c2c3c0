"""A service that ends finishes what writers wait for, and does not wait for what fails."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import httpx
import pytest

from hudi_index_service.config import Settings
from hudi_index_service.errors import BuildInProgress, CallbackRefused, PermissionDenied
from hudi_index_service.fleet.builds.child import Progress
from hudi_index_service.fleet.builds.messages import Ended, Order
from hudi_index_service.fleet.builds.pool import Take, Threads
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.service import Service
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.work import Listener
from tests.hook.callbacks import BlockedBuild, nothing_built

Build = Callable[[Order, Progress], Ended]

TABLES = ("/a", "/b", "/c")
RESTS = {"backoff_seconds": 3600, "backoff_max_seconds": 3600}


@pytest.fixture
def building(tmp_path: Path) -> Iterator[Callable[[Build], Supervisor]]:
    """Starts a supervisor that builds three tables in one thread, and rests long after failures."""
    with ExitStack() as stack:

        def start(build: Build) -> Supervisor:
            supervisor = Supervisor(
                [TablePolicy(each, each, woken_by="callback") for each in TABLES],
                settings=Settings(hook=RESTS, state_folder=tmp_path),
                slots=lambda take: Threads(take, 1, build),
                looks=0,
                remembers=False,
            )
            stack.callback(supervisor.close)
            supervisor.start()
            return supervisor

        yield start


def failing(code: str, outcome: str = "failed", *, times: int) -> tuple[Build, list[str]]:
    """A build that fails some times, and the tables for which it was called."""
    tables: list[str] = []

    def build(order: Order, progress: Progress) -> Ended:
        tables.append(order.table)
        if len(tables) > times:
            return nothing_built(order, progress)
        return Ended(order.request, outcome, Refusal(code, "no", ""), broke_off=True)

    return build, tables


def test_builds_that_wait_are_finished_and_no_more_is_taken(building) -> None:
    with BlockedBuild() as build:
        supervisor = building(build)
        requests = [supervisor.callback(table).id for table in TABLES]
        assert build.begun.wait(30)
        finishing = Thread(target=supervisor.finish)
        finishing.start()
        build.released.set()
        finishing.join(30)

    assert build.tables == list(TABLES)
    assert all(supervisor.end_of(each).done() for each in requests)
    with pytest.raises(CallbackRefused, match="ending"):
        supervisor.callback("/a")


def test_it_is_ready_from_its_start_until_it_begins_to_end(tmp_path: Path) -> None:
    settings = Settings(web={"port": 0}, state_folder=tmp_path)

    def supervise(listener: Listener) -> Supervisor:
        def slots(take: Take) -> Threads:
            return Threads(take, 1, nothing_built)

        return Supervisor(settings=settings, listener=listener, slots=slots, looks=0)

    with Service(supervise, settings) as service:
        service.answer()
        ready = f"{service.server.url}/readyz"
        assert httpx.get(ready).status_code == 503
        service.supervisor.start()
        assert httpx.get(ready).status_code == 200
        service.supervisor.finish()
        assert httpx.get(ready).status_code == 503


def test_what_waits_for_a_rest_is_tried_once_more(building) -> None:
    build, tables = failing(PermissionDenied.code, times=1)
    supervisor = building(build)
    first = supervisor.end_of(supervisor.callback("/a").id).result(30)
    assert first.error is not None
    again = supervisor.callback("/a").id
    end = supervisor.end_of(again)
    assert not end.done(), "it rests"

    supervisor.finish()

    assert end.done()
    assert tables == ["/a", "/a"]


def test_a_mere_retry_is_left_to_the_next_start(building) -> None:
    build, tables = failing(PermissionDenied.code, times=1)
    supervisor = building(build)
    supervisor.end_of(supervisor.callback("/a").id).result(30)

    supervisor.finish()

    assert tables == ["/a"]


def test_the_build_of_another_process_is_not_waited_for(building) -> None:
    build, tables = failing(BuildInProgress.code, "busy", times=9)
    supervisor = building(build)
    request = supervisor.callback("/a").id

    supervisor.finish()

    assert not supervisor.end_of(request).done()
    assert tables == ["/a"]


def test_a_request_whose_table_leaves_has_no_end(building) -> None:
    with BlockedBuild() as build:
        supervisor = building(build)
        runs, waits = (supervisor.end_of(supervisor.callback(each).id) for each in ("/a", "/b"))
        assert build.begun.wait(30)

        supervisor.apply([])

        assert waits.cancelled()
        build.released.set()
        assert runs.result(30).outcome == "finished"


def test_an_error_of_the_program_ends_its_build_alone(building, caplog) -> None:
    def build(order: Order, progress: Progress) -> Ended:
        if order.table == "/a":
            raise ZeroDivisionError("a bug")
        return nothing_built(order, progress)

    supervisor = building(build)
    ends = [supervisor.end_of(supervisor.callback(each).id) for each in ("/a", "/b")]
    bug, good = (each.result(30) for each in ends)

    assert bug.error is not None
    assert bug.error.message == "ZeroDivisionError: a bug"
    assert good.outcome == "finished"
    assert "Traceback" in caplog.text
