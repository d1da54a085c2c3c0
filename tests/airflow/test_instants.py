"""The sensor and the trigger of a table's instants, on real tables: the watermark, which events
there are, and what becomes of a table that is not there; and the sensor of what is due."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_index_service import open_table
from hudi_index_service.fleet.web.access import Role
from tests.airflow.conftest import StateStore
from tests.fleet.served import SECRETS

Put = Callable[..., Path]
Cluster = Callable[[Path], None]


def instants_of(table: Path) -> list[str]:
    """The completed instants of a table, in order."""
    return [each.requested for each in open_table(table).hudi_table.completed_instants()]


@asynccontextmanager
async def watching(trigger: Any) -> AsyncIterator[Callable[..., Any]]:
    """Runs a trigger for the block. Gives what waits for its next event."""
    events = trigger.run()

    async def following(seconds: float = 20) -> dict[str, Any]:
        event = await asyncio.wait_for(anext(events), seconds)
        payload: dict[str, Any] = event.payload
        return payload

    yield following
    await events.aclose()


@pytest.fixture
def trigger(provider: SimpleNamespace) -> Callable[..., Any]:
    """Makes a trigger as the triggerer does, which looks often."""

    def make(table: Path, *, store: Any = None, **options: Any) -> Any:
        made = provider.trigger.HudiInstantTrigger(table=str(table), poll_interval=0.05, **options)
        path, arguments = made.serialize()
        assert path == "hudi_index_airflow.trigger.HudiInstantTrigger"
        made = type(made)(**arguments)
        if store is not None:
            made.asset_state_store = store
        return made

    return make


def test_each_new_instant_is_an_event_and_a_missing_table_is_waited_for(
    trigger: Any, put_table: Put, cluster_table: Cluster, tmp_path: Path
) -> None:
    table = tmp_path / "lake" / "orders"

    async def seen() -> list[dict[str, Any]]:
        async with watching(trigger(table)) as following:
            with pytest.raises(asyncio.TimeoutError):
                await following(0.5)
        async with watching(trigger(table)) as following:
            waiting = asyncio.create_task(following())
            await asyncio.to_thread(put_table)
            first = await waiting
            await asyncio.to_thread(cluster_table, table)
            return [first, await following()]

    first, second = asyncio.run(seen())
    written, clustered = instants_of(table)
    common = {"table": str(table)}
    assert first == {**common, "instant": written, "previous_instant": None, "action": "commit"}
    assert second == {
        **common,
        "instant": clustered,
        "previous_instant": written,
        "action": "clustering",
    }


def test_watermark_outlasts_the_triggerer(
    trigger: Any, put_table: Put, cluster_table: Cluster
) -> None:
    table, store = put_table(), StateStore()

    async def seen() -> dict[str, Any]:
        async with watching(trigger(table, store=store)) as following:
            await following()
        async with watching(trigger(table, store=store)) as following:  # of a new triggerer
            with pytest.raises(asyncio.TimeoutError):
                await following(0.5)
        cluster_table(table)
        async with watching(trigger(table, store=store)) as following:
            event: dict[str, Any] = await following()
            return event

    event = asyncio.run(seen())
    assert [event["previous_instant"], event["instant"]] == instants_of(table)


def test_without_a_watermark_a_restart_repeats_the_newest_instant(
    trigger: Any, put_table: Put
) -> None:
    table = put_table(step="clustered")

    async def seen() -> list[dict[str, Any]]:
        found = []
        for _ in range(2):
            async with watching(trigger(table)) as following:
                found.append(await following())
        return found

    first, again = asyncio.run(seen())
    assert first == again
    assert (first["instant"], first["previous_instant"]) == (instants_of(table)[-1], None)


def test_last_seen_and_actions_choose_the_events(
    trigger: Any, put_table: Put, cluster_table: Cluster
) -> None:
    table = put_table()
    (written,) = instants_of(table)

    async def seen() -> list[dict[str, Any]]:
        found = []
        for options in ({"last_seen": written}, {"actions": ["clustering", "compaction"]}):
            async with watching(trigger(table, **options)) as following:
                with pytest.raises(asyncio.TimeoutError):
                    await following(0.5)
        cluster_table(table)
        for options in ({"last_seen": written}, {"actions": ["clustering", "compaction"]}):
            async with watching(trigger(table, **options)) as following:
                found.append(await following())
        return found

    after, chosen = asyncio.run(seen())
    assert after["previous_instant"] == written
    assert chosen["previous_instant"] is None
    assert after["action"] == chosen["action"] == "clustering"


class Timeline:
    """A table whose instants are as a test says, which no writer makes so on demand."""

    def __init__(self, provider: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
        self.instant = provider.service.Instant
        self.times: list[str] = []
        self.threads: set[int] = set()
        self.error: Exception | None = None
        hook = provider.hook.HudiIndexHook
        monkeypatch.setattr(hook, "instants", lambda hook, table: self.look())

    def look(self) -> list[Any]:
        if self.error is not None:
            raise self.error
        self.threads.add(threading.get_ident())
        return [self.instant(each, "commit") for each in sorted(self.times, reverse=True)]


@pytest.fixture
def timeline(provider: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Timeline:
    return Timeline(provider, monkeypatch)


def test_instant_that_completes_after_later_ones_is_an_event_and_old_ones_are_none(
    trigger: Any, timeline: Timeline
) -> None:
    timeline.times = ["10", "40"]

    async def seen() -> list[str]:
        store, found = StateStore(), []
        async with watching(trigger(Path("/t"), store=store)) as following:
            found.append((await following())["instant"])
            timeline.times.append("20")  # a long clustering
            found.append((await following())["instant"])
            timeline.times = ["05", "10", "20", "40"]  # as after a rollback of what was newer
            with pytest.raises(asyncio.TimeoutError):
                await following(0.5)
        timeline.times += ["30", "50"]
        async with watching(trigger(Path("/t"), store=store)) as following:
            event = await following()
            found += [event["previous_instant"], event["instant"]]
        return found

    assert asyncio.run(seen()) == ["40", "20", "20", "50"]


def test_service_that_is_silent_for_a_while_does_not_end_the_trigger(
    trigger: Any, timeline: Timeline, provider: SimpleNamespace
) -> None:
    async def seen() -> Any:
        async with watching(trigger(Path("/t"))) as following:
            timeline.error = provider.service.ServiceSilent("It is restarted.")
            waiting = asyncio.create_task(following())
            await asyncio.sleep(0.2)
            timeline.error, timeline.times = None, ["10"]
            instant = (await waiting)["instant"]
            timeline.error = provider.errors.error_of("ACCESS_REFUSED", "The token is wrong.")
            with pytest.raises(provider.errors.HudiIndexFailed, match="ACCESS_REFUSED"):
                await following()
            return instant

    assert asyncio.run(seen()) == "10"


def test_event_loop_is_not_held_up(trigger: Any, timeline: Timeline) -> None:
    timeline.times = ["10"]

    async def seen() -> None:
        async with watching(trigger(Path("/t"))) as following:
            await following()

    asyncio.run(seen())
    assert timeline.threads
    assert threading.get_ident() not in timeline.threads


def test_two_assets_that_share_a_trigger_have_no_watermark_and_events_all_the_same(
    trigger: Any, timeline: Timeline, provider: SimpleNamespace
) -> None:
    from airflow.sdk import Asset
    from airflow.sdk.execution_time.context import AssetStateStoreAccessors

    timeline.times = ["10"]
    shared = AssetStateStoreAccessors(inlets=[Asset("a"), Asset("b")])

    async def seen(store: Any) -> Any:
        async with watching(trigger(Path("/t"), store=store)) as following:
            return (await following())["instant"]

    assert asyncio.run(seen(shared)) == "10"

    class Broken(StateStore):
        def get(self, key: str, default: Any = None) -> Any:
            raise ValueError("another fault")

    with pytest.raises(ValueError, match="another fault"):
        asyncio.run(seen(Broken()))


def test_sensor_waits_for_an_instant_after_another(
    provider: SimpleNamespace, put_table: Put, cluster_table: Cluster, tmp_path: Path
) -> None:
    def poke(**options: Any) -> Any:
        table = str(tmp_path / "lake" / "orders")
        sensor = provider.sensor.HudiInstantSensor(task_id="wait", table=table, **options)
        found = sensor.poke({})
        return found.xcom_value if found.is_done else None

    assert poke() is None
    table = put_table()
    (written,) = instants_of(table)
    assert poke() == written
    assert poke(after=written) is None
    assert poke(actions=["clustering"]) is None
    cluster_table(table)
    assert poke(after=written) == poke(actions=["clustering"]) == instants_of(table)[-1]


def test_deferred_sensor_returns_the_instant_that_the_trigger_saw(
    provider: SimpleNamespace, put_table: Put, cluster_table: Cluster, context: Any
) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    table = put_table()
    options = {"task_id": "w", "table": str(table), "after": instants_of(table)[-1]}
    sensor = provider.sensor.HudiInstantSensor(deferrable=True, poke_interval=0.05, **options)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute(context)
    cluster_table(table)

    async def seen() -> dict[str, Any]:
        async with watching(deferred.value.trigger) as following:
            event: dict[str, Any] = await following()
            return event

    event = asyncio.run(seen())
    assert sensor.execute_complete(context, event) == instants_of(table)[-1]


@pytest.mark.parametrize("by_service", [False, True])
def test_sensor_sees_what_is_due_and_says_if_nothing_will_be(
    provider: SimpleNamespace,
    put_table: Put,
    cluster_table: Cluster,
    serve: Any,
    connected: Any,
    by_service: bool,
) -> None:
    undefined, table = put_table("undefined", index=False), put_table()
    service = serve(undefined, table) if by_service else None
    if service is not None:
        connected(host=service.url, password=SECRETS[Role.OPERATE])

    def poke(which: Path, **options: Any) -> Any:
        sensor = provider.sensor.HudiIndexDueSensor(task_id="w", table=str(which), **options)
        return sensor.poke({})

    with pytest.raises(provider.errors.HudiIndexFailed, match="has no index"):
        poke(undefined, when_idle="fail")
    assert not poke(undefined).is_done
    assert not poke(table).is_done
    with pytest.raises(provider.errors.HudiIndexFailed, match="when_idle='never'"):
        poke(table, when_idle="never")
    if service is None:
        assert poke(table, strategy="all").is_done
    cluster_table(table)
    if service is not None:
        service.close()
        service = serve(table)  # it looks again
        connected(host=service.url, password=SECRETS[Role.OPERATE])
    found = poke(table)
    assert found.is_done
    assert found.xcom_value == instants_of(table)[-1]
