"""One service for a fleet: the fleet file gives the tables, the supervisor keeps them, and pages,
API and metrics show them. Needs the extra ``hook``."""

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType

from hudi_index_service import config
from hudi_index_service.config import Settings
from hudi_index_service.fleet.api import Machinery
from hudi_index_service.fleet.attention import Code
from hudi_index_service.fleet.discovery import Discovery
from hudi_index_service.fleet.logs import log_change
from hudi_index_service.fleet.metrics import Metrics
from hudi_index_service.fleet.observation import EndedBuild, Observation
from hudi_index_service.fleet.policy import TablePolicy
from hudi_index_service.fleet.policy_means import PolicyMeans
from hudi_index_service.fleet.queries import Queries
from hudi_index_service.fleet.reload import FleetFileWatcher
from hudi_index_service.fleet.seen import Seen
from hudi_index_service.fleet.shard import Shard
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.web import Application, WebServer
from hudi_index_service.fleet.work import Listener
from hudi_index_service.process import on_signals
from hudi_index_service.wording import counted

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
"""Between two looks at the fleet file and its sources: lists of stores and catalogs."""

DRAIN_SECONDS = 600.0
"""For the builds that run when the service is ended; then they are cancelled."""


def _now() -> datetime:
    return datetime.now(UTC)


class _Signals(Listener):
    """Hands what happens to attention, log and metrics."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self.metrics: Metrics | None = None

    def observed(self, observation: Observation) -> None:
        log_change(observation, self._seen.observe(observation, _now()))

    def build_ended(self, policy: TablePolicy, ended: EndedBuild, seconds: float) -> None:
        if self.metrics is not None:
            self.metrics.build_ended(ended, seconds)

    def muted(self, table: str, code: str, until: datetime) -> None:
        known = next((each for each in Code if each.value == code), None)
        if known is None:  # of another release
            log.warning("%s: the unknown reason %s is not muted.", table, code)
            return
        self._seen.mute(table, known, until)


class _Orders:
    """What signals ask for. A handler may put into this queue, but not set an event; see
    `hook.daemon.Stop`."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[bool] = SimpleQueue()

    def put(self, number: int, frame: FrameType | None) -> None:
        """Takes a signal: SIGHUP has the file read at once, any other ends the service."""
        self._queue.put(number == signal.SIGHUP)

    def goes_on(self, seconds: float) -> bool:
        """Waits for a signal, at most so long. Returns whether the service goes on."""
        try:
            return self._queue.get(timeout=seconds)
        except Empty:
            return True


@contextmanager
def _taken(orders: _Orders) -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, orders.put)
    try:
        with on_signals(orders.put):
            yield
    finally:
        signal.signal(signal.SIGHUP, before)


def serve_fleet(
    path: Path,
    *,
    shard: Shard | None = None,
    settings: Settings | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Keeps the tables of a fleet file until SIGTERM or SIGINT, then finishes the running builds.
    What waits is left to the next start: the timelines know it. The file is read again when it
    changes, and on SIGHUP. Must be called from the main thread.

    Args:
        path: The fleet file.
        shard: Which of its tables are this service's.
        say: Receives the lines for the terminal.

    Raises:
        FleetFileInvalid: the file has mistakes.
        ConfigInvalid: the address cannot be bound, or the file of tokens is refused.
    """
    effective = config.effective(settings)
    watcher, discovery = FleetFileWatcher(path), Discovery()
    seen = Seen()
    signals, orders = _Signals(seen), _Orders()
    found = discovery.discover(watcher.file).tables
    supervisor = Supervisor(found.values(), settings=effective, shard=shard, listener=signals)
    metrics = signals.metrics = Metrics(lambda: seen.ranked(supervisor.tables(), _now()))
    with ExitStack() as stack:
        stack.callback(metrics.close)
        stack.callback(supervisor.close, seconds=DRAIN_SECONDS)
        queries = Queries(effective, PolicyMeans())
        stack.callback(queries.close)
        server = _server(supervisor, seen, metrics, queries, effective)
        stack.callback(server.close)
        with _taken(orders):  # a second signal ends the process at once
            supervisor.start()
            queries.start()
            server.start()
            say(f"Keeping {counted(len(supervisor.tables()), 'table')} of {path}.")
            say(f"Page, API and metrics: {server.url}")
            while orders.goes_on(LOOK_SECONDS):
                watcher.look()
                before, found = found, discovery.discover(watcher.file).tables
                if found != before:
                    supervisor.apply(found.values())
                    for name in before.keys() - found.keys():
                        seen.forget(name)
        say("Stopping after the running builds.")


def _server(
    supervisor: Supervisor, seen: Seen, metrics: Metrics, queries: Queries, settings: Settings
) -> WebServer:
    machinery = Machinery(wake=supervisor.callback, metrics=metrics.text, callback=metrics.callback)
    secret = settings.hook.secret.get_secret_value() if settings.hook.secret else ""

    def application(most_streams: int) -> Application:
        return Application(
            supervisor,
            lambda each: seen.shown(each, _now()).reasons,
            machinery,
            settings.web,
            callback_secret=secret,
            most_streams=most_streams,
            ask=queries.ask,
        )

    return WebServer(settings.web, settings.hook, application)
