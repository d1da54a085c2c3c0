"""The operators, by a running service and in the worker: results, one request for all tries,
deferring, cancelling, and which failures are final."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread, Timer
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from hudi_index_service import open_table
from hudi_index_service.fleet.web.access import Role
from tests.fleet.served import SECRETS
from tests.indexed import covered
from tests.programs import awaited

Serve = Callable[..., Any]
Put = Callable[..., Path]
Cluster = Callable[[Path], None]


@pytest.fixture
def service(serve: Serve, connected: Callable[..., None]) -> Callable[..., Any]:
    """Starts a service, to which the default connection leads."""

    def start(*tables: Path) -> Any:
        running = serve(*tables)
        connected(host=running.url, password=SECRETS[Role.OPERATE])
        return running

    return start


@pytest.fixture
def operator(provider: SimpleNamespace) -> Callable[..., Any]:
    """Makes an operator: ``Build``, ``Clean`` or ``Verify``."""

    def make(kind: str, table: Path | str, **options: Any) -> Any:
        options = {"task_id": "task", "deferrable": False, "poll_interval": 0.1, **options}
        name = f"HudiIndex{kind}Operator"
        return getattr(provider.operators, name)(table=str(table), **options)

    return make


def test_service_builds_verifies_and_cleans(
    service: Serve,
    operator: Any,
    provider: SimpleNamespace,
    context: Any,
    put_table: Put,
    cluster_table: Cluster,
) -> None:
    table = put_table()
    running = service(table)
    cluster_table(table)
    outlet = provider.assets.index_asset(str(table))

    built = operator("Build", table, outlets=[outlet]).execute(context)

    assert covered(table) == built["built"] == 1
    assert running.requests("orders") == [built["build_id"]]
    instant = open_table(table).status().instant
    assert (built["table"], built["instant"]) == (str(table), instant)
    assert context["outlet_events"][outlet].extra == built
    assert outlet.uri == f"file://{table}/.hoodie/.index"
    assert context["ti"].xcom == {"hudi_index_page": f"{running.url}/tables/orders"}

    context["ti"].task_id, context["task_state_store"] = "verify", {}
    verified = operator("Verify", "orders", durable=False).execute(context)
    assert verified["summary"] == "1 entry read, 0 damaged."
    cleaned = operator("Clean", "orders", durable=False, only_count=True).execute(context)
    assert cleaned["summary"] == "0 files would be deleted."


def test_all_tries_share_one_request_until_the_task_is_cleared(
    service: Serve, operator: Any, context: Any, put_table: Put, cluster_table: Cluster
) -> None:
    table = put_table()
    running = service(table)
    cluster_table(table)
    first = operator("Build", "orders").submit_job(context)  # and then the worker is killed

    again = operator("Build", "orders").execute(context)
    assert again["build_id"] == first
    context["task_state_store"].clear()  # as before Airflow 3.3
    assert operator("Build", "orders").execute(context)["build_id"] == first
    assert running.requests("orders") == [first]

    context["ti"].max_tries += 1
    anew = operator("Build", "orders").execute(context)
    assert anew["built"] == 0
    assert running.requests("orders") == [anew["build_id"], first]
    for other in ({"map_index": 1}, {"run_id": "run 2"}, {"task_id": "t"}, {"dag_id": "d"}):
        before = vars(context["ti"]).copy()
        vars(context["ti"]).update(other)
        assert operator("Build", "orders", durable=False).submit_job(context) != anew["build_id"]
        vars(context["ti"]).update(before)


def test_request_that_failed_is_asked_for_anew_and_that_once(
    service: Serve, operator: Any, provider: SimpleNamespace, context: Any, put_table: Put
) -> None:
    running = service(put_table("breaks"))
    for _ in range(2):
        with pytest.raises(provider.errors.HudiIndexError, match="ZeroDivisionError"):
            operator("Build", "breaks").execute(context)
    assert len(running.requests("breaks")) == 2
    context["task_state_store"].clear()
    third = operator("Build", "breaks").submit_job(context)
    assert third not in running.requests("breaks")[1:]
    awaited(lambda: len(running.requests("breaks")) == 3)


def test_request_that_the_service_has_forgotten_is_asked_for_anew(
    service: Serve, operator: Any, context: Any, put_table: Put
) -> None:
    service(put_table())
    key = f"hudi_index_id_{context['ti'].max_tries}"
    context["task_state_store"][key] = "an id of before"
    assert operator("Build", "orders").execute(context)["build_id"] != "an id of before"


def test_table_without_a_definition_fails_at_once(
    service: Serve, operator: Any, provider: SimpleNamespace, context: Any, put_table: Put
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    table = put_table(index=False)
    final = provider.errors.HudiIndexFailed
    assert issubclass(final, AirflowFailException)
    with pytest.raises(final, match=f"INDEX_NOT_FOUND: The table {table} has no index. Define"):
        operator("Build", table).execute(context)  # in the worker
    service(table)
    with pytest.raises(final, match="INDEX_NOT_FOUND: The table orders has"):
        operator("Build", table).execute(context)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "unknown"}, "TABLE_NOT_IN_FLEET: The fleet has no table"),
        ({"table": "/data/unknown"}, "TABLE_NOT_IN_FLEET: No table of the fleet at http://127"),
        ({"hoodie_conf": "hoodie.index.columns=a"}, "CONFIG_INVALID: The service builds as its"),
        ({"partitions": ["a"]}, "partitions is not for it. Set it there"),
        ({"budget": {"files": 1}}, "budget is not for it"),
        ({"strategy": "some"}, "REQUEST_INVALID: "),
    ],
)
def test_what_a_service_does_not_do_fails_at_once(
    service: Serve,
    operator: Any,
    provider: SimpleNamespace,
    context: Any,
    put_table: Put,
    options: dict[str, Any],
    words: str,
) -> None:
    service(put_table())
    given = {"table": "orders", **options}
    with pytest.raises(provider.errors.HudiIndexFailed, match=words):
        operator("Build", given.pop("table"), **given).execute(context)


def test_service_that_restarts_meanwhile_is_waited_for(
    service: Serve, operator: Any, context: Any, put_table: Put, cluster_table: Cluster
) -> None:
    table = put_table()
    running = service(table)
    cluster_table(table)
    running.shut()
    opening = Timer(3, running.open)
    opening.start()
    assert operator("Build", table).execute(context)["built"] == 1
    opening.join()


def test_service_that_stays_silent_leaves_it_to_airflows_retries(
    operator: Any, connected: Any, provider: SimpleNamespace, context: Any
) -> None:
    connected(host="http://127.0.0.1:1")
    with pytest.raises(provider.errors.HudiIndexError, match="SERVICE_UNAVAILABLE") as raised:
        operator("Build", "orders", patience=0).execute(context)
    assert not isinstance(raised.value, provider.errors.HudiIndexFailed)


def test_deferred_task_goes_on_with_the_request_that_the_triggerer_saw_end(
    service: Serve, operator: Any, context: Any, put_table: Put, cluster_table: Cluster
) -> None:
    table = put_table()
    running = service(table)
    cluster_table(table)
    deferred = deferral(operator("Build", table, deferrable=True), context)
    request = deferred.trigger.request
    assert deferral(operator("Build", table, deferrable=True), context).trigger.request == request

    event = asyncio.run(first_event(deferred.trigger))
    built = getattr(operator("Build", table), deferred.method_name)(context, event)

    assert (built["build_id"], built["built"], covered(table)) == (request, 1, 1)
    assert running.requests("orders") == [request]


def test_deferred_task_fails_as_its_request_did(
    service: Serve, operator: Any, provider: SimpleNamespace, context: Any, put_table: Put
) -> None:
    running = service(put_table("breaks"))
    deferred = deferral(operator("Build", "breaks", deferrable=True), context)
    event = asyncio.run(first_event(deferred.trigger))
    with pytest.raises(provider.errors.HudiIndexError, match="ZeroDivisionError"):
        operator("Build", "breaks").execute_complete(context, event)

    deferred.trigger.request = "unknown"
    event = asyncio.run(first_event(deferred.trigger))
    with pytest.raises(provider.errors.RequestForgotten, match="REQUEST_UNKNOWN"):
        operator("Build", "breaks").execute_complete(context, event)
    running.close()


def test_who_ends_a_deferred_task_cancels_its_request(
    service: Serve, operator: Any, provider: SimpleNamespace, context: Any, put_table: Put
) -> None:
    running = service(put_table("sleeps"))
    deferred = deferral(operator("Build", "sleeps", deferrable=True), context)
    request = deferred.trigger.request
    awaited(lambda: running.requests("sleeps"))

    asyncio.run(deferred.trigger.on_kill())

    event = asyncio.run(first_event(deferred.trigger))
    with pytest.raises(provider.errors.HudiIndexFailed, match=f"{request} was cancelled"):
        operator("Build", "sleeps").execute_complete(context, event)


def test_who_ends_a_task_cancels_its_request(
    service: Serve, operator: Any, provider: SimpleNamespace, context: Any, put_table: Put
) -> None:
    running = service(put_table("sleeps"))
    task = operator("Build", "sleeps")
    killer = Thread(target=lambda: awaited(lambda: running.requests("sleeps")) and task.on_kill())
    killer.start()
    with pytest.raises(provider.errors.HudiIndexFailed, match="CANCELLED"):
        task.execute(context)
    killer.join()


def test_trace_of_the_task_goes_on_to_the_build(
    service: Serve, operator: Any, context: Any, put_table: Put
) -> None:
    service(put_table("traced"))
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("task") as span:
        found = operator("Verify", "traced").execute(context)
    assert found["summary"].split("-")[1] == trace.format_trace_id(span.context.trace_id)


def test_worker_builds_verifies_and_cleans(
    operator: Any, context: Any, put_table: Put, cluster_table: Cluster
) -> None:
    table = put_table(step="clustered")
    built = operator("Build", table).execute(context)
    assert covered(table) == built["built"] == 1
    assert built["build_id"] == open_table(table).builds()[0].id
    again = operator("Build", table, strategy="all", hoodie_conf="hoodie.index.columns=ts")
    assert again.execute(context)["built"] == 1
    assert operator("Verify", table).execute(context)["entries"] == 2
    cleaned = operator("Clean", table, only_count=True).execute(context)
    assert cleaned == {"table": str(table), "removed": 0, "bytes": 0}
    assert context["ti"].xcom == {}


@pytest.fixture
def sigterm_kills(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], None]]:
    """Sends this process SIGTERM, which ends a task as in Airflow's worker."""
    before = signal.getsignal(signal.SIGTERM)

    def kill(task: Any, seconds: float) -> None:
        signal.signal(signal.SIGTERM, lambda number, frame: task.on_kill())
        timer = Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        request.addfinalizer(timer.join)

    yield kill
    signal.signal(signal.SIGTERM, before)


def test_who_ends_a_task_ends_its_build_in_the_worker(
    operator: Any,
    provider: SimpleNamespace,
    context: Any,
    put_table: Put,
    sigterm_kills: Callable[..., None],
) -> None:
    table = put_table(step="clustered")
    slowly = operator("Build", table, budget={"requests_per_second": 0.2})
    sigterm_kills(slowly, 1.5)
    with pytest.raises(provider.errors.HudiIndexFailed, match="CANCELLED"):
        slowly.execute(context)
    (ended,) = open_table(table).builds()
    assert ended.state == "cancelled"
    operator("Build", table).execute(context)  # a try after it goes on at once
    assert covered(table) == 1


def test_build_that_another_one_keeps_from_working_may_be_retried(
    operator: Any, provider: SimpleNamespace, context: Any, put_table: Put, tmp_path: Path
) -> None:
    with pytest.raises(provider.errors.TableMissing, match="TABLE_NOT_FOUND"):
        operator("Build", tmp_path / "none").execute(context)
    busy = provider.errors.error_of("BUILD_IN_PROGRESS", "Another one builds.")
    assert not isinstance(busy, provider.errors.HudiIndexFailed)


def deferral(task: Any, context: Any) -> Any:
    """How the task defers itself."""
    from airflow.sdk.exceptions import TaskDeferred

    with pytest.raises(TaskDeferred) as deferred:
        task.execute(context)
    path, options = deferred.value.trigger.serialize()
    assert path == "hudi_index_airflow.trigger.HudiIndexRequestTrigger"
    deferred.value.trigger = type(deferred.value.trigger)(**options)
    return deferred.value


async def first_event(trigger: Any) -> Any:
    """The payload of a trigger's first event."""
    async for event in trigger.run():
        return event.payload
    return None
