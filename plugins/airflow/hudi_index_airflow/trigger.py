"""Triggers: a table has a new instant; a request to the service has ended."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from time import monotonic
from typing import Any

from airflow.providers.common.compat.triggers import BaseEventTrigger
from airflow.triggers.base import BaseTrigger, TriggerEvent

from hudi_index_airflow.errors import HudiIndexError, HudiIndexFailed, TableMissing
from hudi_index_airflow.hook import HudiIndexHook
from hudi_index_airflow.service import Instant, ServiceSilent, is_active

WATERMARK_KEY = "instants"
# Raised by Airflow's AssetStateStoreAccessors when several assets share the trigger.
_MULTI_ASSET_ERROR = "concrete inlets and outlets"


class HudiInstantTrigger(BaseEventTrigger):
    """Fires whenever a Hudi table has a new completed instant::

        orders = Asset(
            "orders",
            watchers=[AssetWatcher(name="orders", trigger=HudiInstantTrigger(table="lake.orders"))],
        )

    The event has ``table``, ``instant``, ``previous_instant`` and ``action``. ``previous_instant``
    is None on the first event, which is also what a restart looks like where no watermark is kept:
    a task that must not run twice for one instant keys on ``instant``. Where several instants are
    new at once, the event is for the newest of them.

    Instants may complete in another order than they were requested, as a long clustering does. So
    the watermark is not one time, but the last instants that were seen.

    Args:
        table: As for `HudiIndexOperator`.
        hudi_index_conn_id: See `HudiIndexHook`.
        actions: Only instants of these, as the service names them: ``commit``, ``delta commit``,
            ``replace commit``, ``clustering``, ``compaction``, ``clean``, …; None for all.
        poll_interval: The seconds between two looks.
        last_seen: An instant that was seen already, with all before it; None to take the newest for
            the first event.
    """

    def __init__(
        self,
        *,
        table: str,
        hudi_index_conn_id: str = HudiIndexHook.default_conn_name,
        actions: Sequence[str] | None = None,
        poll_interval: float = 60,
        last_seen: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)  # type: ignore[no-untyped-call]
        self.table = table
        self.hudi_index_conn_id = hudi_index_conn_id
        self.actions = None if actions is None else list(actions)
        self.poll_interval = poll_interval
        self.last_seen = last_seen

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How Airflow makes it anew."""
        return (
            "hudi_index_airflow.trigger.HudiInstantTrigger",
            {
                "table": self.table,
                "hudi_index_conn_id": self.hudi_index_conn_id,
                "actions": self.actions,
                "poll_interval": self.poll_interval,
                "last_seen": self.last_seen,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Looks at the table again and again."""
        # What `serialize` told is kept when the trigger is created, so an attribute that changes is
        # lost with the triggerer. From Airflow 3.3 on, the asset's state store outlasts it.
        store = await self._store()
        seen: list[str] = []
        previous = self.last_seen
        if store is not None:
            seen = await asyncio.to_thread(store.get, WATERMARK_KEY) or []
            previous = await asyncio.to_thread(store.get, f"{WATERMARK_KEY}_event", previous)
        hook = HudiIndexHook(self.hudi_index_conn_id, patience=0)
        while True:
            # Both clients are synchronous: they must not hold up other triggers.
            found = await asyncio.to_thread(self._instants, hook)
            new = self._new(found, seen)
            times = sorted(each.requested for each in found)
            if found and times != seen:
                seen = times
                if store is not None:
                    await asyncio.to_thread(store.set, WATERMARK_KEY, seen)
            if new is not None:
                event = {
                    "table": self.table,
                    "instant": new.requested,
                    "previous_instant": previous,
                    "action": new.action,
                }
                previous = new.requested
                if store is not None:
                    await asyncio.to_thread(store.set, f"{WATERMARK_KEY}_event", previous)
                yield _event(event)
            await asyncio.sleep(self.poll_interval)

    def _new(self, found: list[Instant], seen: list[str]) -> Instant | None:
        """The newest instant that was not seen; of none older than all that were, which have only
        come into view."""
        known = set(seen)
        floor = seen[0] if seen else self.last_seen or ""
        if not seen and self.last_seen is not None:
            known = {each.requested for each in found if each.requested <= floor}
        wanted = (each for each in found if self.actions is None or each.action in self.actions)
        new = [each for each in wanted if each.requested not in known and each.requested > floor]
        return max(new, key=lambda each: each.requested, default=None)

    def _instants(self, hook: HudiIndexHook) -> list[Instant]:
        try:
            return hook.instants(self.table)
        except TableMissing as error:
            # A watcher outlives the table that it watches. An error here would end the trigger, and
            # the triggerer would start it again each second until the table is there.
            self.log.debug("%s is not there yet: %s", self.table, error)
        except HudiIndexFailed:
            raise
        except HudiIndexError as error:
            self.log.warning("%s cannot be looked at now: %s", self.table, error)
        return []

    async def _store(self) -> Any:
        """Where the watermark is kept; None if there is no such place."""
        store = getattr(self, "asset_state_store", None)
        if store is None:
            return None
        try:
            await asyncio.to_thread(store.get, WATERMARK_KEY)
        except ValueError as error:
            # Two assets that watch a table with the same arguments share one trigger, and the store
            # is of one asset at a time. A store's own ValueError is another thing.
            if _MULTI_ASSET_ERROR not in str(error):
                raise
            self.log.warning(
                "%s is watched by more than one asset: no watermark is kept, and a restart of the "
                "triggerer may repeat its last instant.",
                self.table,
            )
            return None
        return store


class HudiIndexRequestTrigger(BaseTrigger):
    """Waits for the end of a request to the service, for a task that is deferred. A user who ends
    the task cancels the request.

    Args:
        request: Its id.
        hudi_index_conn_id: See `HudiIndexHook`.
        patience: For how many seconds a service that does not answer is asked again.
        poll_interval: The seconds between two looks. Each takes one of the triggerer's few threads
            for a moment: the service answers at once.
    """

    def __init__(
        self,
        *,
        request: str,
        hudi_index_conn_id: str,
        patience: float = 120.0,
        poll_interval: float = 10.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.request = request
        self.hudi_index_conn_id = hudi_index_conn_id
        self.patience = patience
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How Airflow makes it anew."""
        return (
            "hudi_index_airflow.trigger.HudiIndexRequestTrigger",
            {
                "request": self.request,
                "hudi_index_conn_id": self.hudi_index_conn_id,
                "patience": self.patience,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Fires once, with the request as it ended, or the error that keeps from asking."""
        hook = HudiIndexHook(self.hudi_index_conn_id, patience=0)
        answered = monotonic()
        while True:
            try:
                build = await asyncio.to_thread(lambda: hook.service.request(self.request))
            except HudiIndexError as error:
                is_silent = isinstance(error, ServiceSilent)
                if not is_silent or monotonic() > answered + self.patience:
                    yield _event({"error": {"code": error.code, "message": error.message}})
                    return
            else:
                answered = monotonic()
                if not is_active(build["state"]):
                    yield _event({"build": build})
                    return
            await asyncio.sleep(self.poll_interval)

    async def on_kill(self) -> None:
        """Cancels the request."""
        hook = HudiIndexHook(self.hudi_index_conn_id, patience=10)
        await asyncio.to_thread(lambda: hook.service.cancel(self.request))


def _event(payload: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]
