"""Makes tables ready for queries: when the service has first seen them, and again after each
snapshot and build. One at a time, at low priority, so that neither queries nor the service's start
wait for it."""

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from threading import Condition, Thread, get_native_id

from hudi_index_service.cancellation import Cancellation
from hudi_index_service.errors import IndexServiceError, QueryCancelled
from hudi_index_service.fleet.observation import Observation, Refusal, Warmed
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.reads.tables import ReadTables

log = logging.getLogger(__name__)

_NICENESS = 10


class Warming:
    """Does it in a thread of its own.

    Args:
        tables: Those that queries read.
        told: Called with a table's base path and what was made ready, or why not.
    """

    def __init__(self, tables: ReadTables, told: Callable[[str, Warmed], None]) -> None:
        self._tables, self._told = tables, told
        self._changed = Condition()
        self._due: OrderedDict[str, TablePolicy] = OrderedDict()
        self._last: dict[str, Hashable] = {}
        self._cancellation = Cancellation()
        self._has_ended = False
        self._thread = Thread(target=self._run, name="prewarm", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def observed(self, seen: Observation) -> None:
        """A table was looked at. It is made ready if that shows another snapshot, other entries, or
        other wishes than the last time."""
        policy, status = seen.policy, seen.status
        if policy.prewarm is None or not policy.reads:
            self.forget(policy.uri)
            return
        if status is None:
            return
        entries = ((each.definition.name, each.covered, each.index_bytes) for each in status)
        now = policy.prewarm, status.instant, tuple(entries)
        with self._changed:
            if self._last.get(policy.uri) != now:
                self._last[policy.uri] = now
                self._due[policy.uri] = policy
                self._changed.notify()

    def forget(self, uri: str) -> None:
        """A table has left the fleet, or is not to be made ready any more."""
        with self._changed:
            self._last.pop(uri, None)
            self._due.pop(uri, None)

    def close(self) -> None:
        """Ends what is being done."""
        with self._changed:
            self._has_ended = True
            self._changed.notify()
        self._cancellation.cancel()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICENESS)  # Linux: of this thread alone
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due or self._has_ended)
                if self._has_ended:
                    return
                uri, policy = self._due.popitem(last=False)
            warmed = self._warmed(policy)
            if warmed is not None:
                self._told(uri, warmed)

    def _warmed(self, policy: TablePolicy) -> Warmed | None:
        """What is ready now; None if the service ends."""
        wanted, name = policy.prewarm, policy.name
        assert wanted is not None
        try:
            with self._cancellation:
                table = self._tables.table(policy)
                ready = table.prewarm(wanted.columns, partitions=wanted.partitions)
        except QueryCancelled:
            return None
        except IndexServiceError as error:
            log.warning("%s is not made ready for queries: %s", name, error)
            return Warmed(datetime.now(UTC), error=Refusal.of(error))
        except Exception as error:
            log.exception("%s is not made ready for queries.", name)
            return Warmed(datetime.now(UTC), error=Refusal.of(error))
        log.info("%s is ready for queries: %s.", name, ready)
        return Warmed(datetime.now(UTC), ready)
