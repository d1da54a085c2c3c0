"""One service for a fleet: the fleet file gives the tables, the supervisor keeps them, and pages,
API and metrics show them. Needs the extra ``hook``."""

import gc
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from hudi_index_service import config
from hudi_index_service.config import Settings, WebSettings
from hudi_index_service.errors import RequestRefused
from hudi_index_service.fleet.builds.messages import Counted
from hudi_index_service.fleet.observation import EndedBuild, Observation, Refusal
from hudi_index_service.fleet.policies.discovery import Discovery
from hudi_index_service.fleet.policies.file import FleetFileWatcher
from hudi_index_service.fleet.policies.found_before import FoundBefore
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.policies.references import resolved
from hudi_index_service.fleet.reads.tables import ReadTables
from hudi_index_service.fleet.reads.warming import Warming
from hudi_index_service.fleet.shard import Shard
from hudi_index_service.fleet.signals.attention import Code, Reason
from hudi_index_service.fleet.signals.logs import count_repeats, log_change
from hudi_index_service.fleet.signals.metrics import Metrics
from hudi_index_service.fleet.signals.seen import Seen
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.web.agents import Agents
from hudi_index_service.fleet.web.api import Machinery
from hudi_index_service.fleet.web.application import Application, WebServer
from hudi_index_service.fleet.web.queries import Queries
from hudi_index_service.fleet.web.reads import Reads
from hudi_index_service.fleet.web.requests import Caller, Requests
from hudi_index_service.fleet.web.spark_sessions import SparkSessions
from hudi_index_service.fleet.work import Listener
from hudi_index_service.hook.daemon import stopped_by_signals, with_address
from hudi_index_service.wording import counted

log = logging.getLogger(__name__)

_ALLOCATIONS_BETWEEN_COLLECTIONS = 20_000
"""Of objects that may form cycles. By Python's default, 700, a third of the processor time of many
callbacks at once is for looking for such cycles."""

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
        self.warming: Warming | None = None

    def observed(self, observation: Observation) -> None:
        log_change(observation, self._seen.observe(observation, _now()))
        if self.warming is not None:
            self.warming.observed(observation)

    def build_ended(self, policy: TablePolicy, ended: EndedBuild, seconds: float) -> None:
        if self.metrics is not None:
            self.metrics.build_ended(ended, seconds)

    def counted(self, counted: Counted) -> None:
        if self.metrics is not None:
            self.metrics.counted(counted)

    def muted(self, table: str, code: str, until: datetime) -> None:
        known = next((each for each in Code if each.value == code), None)
        if known is None:  # of another release
            log.warning("%s: the unknown reason %s is not muted.", table, code)
            return
        self._seen.mute(table, known, until)


class Service:
    """A supervisor, and a server of pages, API and metrics for its tables. The caller starts both;
    the server listens from construction on.

    Args:
        supervise: Makes the supervisor, with a listener.
        settings: The process's.
        section: The section of the settings with the address. Others than ``web`` have the limits
            of connections of `hook`.
        callback_secret, session_token: See `Application`.
        problems: What is wrong beside the supervisor's own problems.
        usual_wait: See `Machinery`.

    Raises:
        ConfigInvalid: the address cannot be bound, or the file of tokens is refused.
    """

    def __init__(
        self,
        supervise: Callable[[Listener], Supervisor],
        settings: Settings,
        *,
        section: str = "web",
        callback_secret: str = "",
        session_token: str = "",
        problems: Callable[[], Sequence[Refusal]] = tuple,
        usual_wait: float = 0.0,
    ) -> None:
        self.seen = Seen()
        signals = _Signals(self.seen)
        self.supervisor = supervisor = supervise(signals)

        def all_problems() -> Sequence[Refusal]:
            return (*problems(), *supervisor.problems())

        def reasons_of(seen: Observation) -> Sequence[Reason]:
            return self.seen.shown(seen, _now())

        metrics = signals.metrics = Metrics(
            supervisor.tables,
            reasons_of,
            most_tables=settings.web.most_tables,
            problems=all_problems,
        )
        self._queries = queries = Queries(settings, counted=metrics.counted)
        machinery = Machinery(
            usual_wait=usual_wait,
            metrics=metrics.text,
            ready=lambda: supervisor.is_ready,
            callback=metrics.callback,
            problems=all_problems,
        )
        web = web_settings(settings, section)
        sessions = SparkSessions(settings, self._readable, self._options_of)
        tables = ReadTables(settings)
        reads, agents = Reads(tables), Agents(web, tables)
        self._warming = signals.warming = Warming(tables, supervisor.warmed)

        def application(most_streams: int) -> Application:
            return Application(
                supervisor,
                reasons_of,
                machinery,
                web,
                callback_secret=callback_secret,
                most_streams=most_streams,
                session_token=session_token,
                ask=queries.ask,
                more_routes=lambda requests, gate, streams: [
                    *sessions.routes(requests, gate),
                    *reads.routes(requests, gate, streams),
                    *agents.routes(requests, gate),
                ],
                running=agents.running,
            )

        with ExitStack() as stack:
            stack.callback(metrics.close)
            stack.callback(supervisor.close, seconds=DRAIN_SECONDS)
            stack.callback(sessions.close)
            stack.callback(reads.close)
            stack.callback(self._warming.close)
            stack.callback(queries.close)
            self.server = WebServer(web, settings.hook, application, section=section)
            stack.callback(self.server.close)
            self._closing = stack.pop_all()

    def answer(self) -> None:
        """Begins to answer."""
        self._queries.start()
        self.server.start()
        self._warming.start()

    def forget(self, policy: TablePolicy) -> None:
        """The table of a policy has left the fleet."""
        self.seen.forget(policy.name)
        self._warming.forget(policy.uri)

    def close(self) -> None:
        """Ends the answers, then waits for the running builds."""
        self._closing.close()

    def _readable(self, caller: Caller, requests: Requests, path: str) -> str:
        policy = requests.policy_of(caller, path)
        if policy is None or not policy.reads:
            raise RequestRefused(
                f"The table {path[:200]!r} is not one that this service reads.",
                remedy="Name it in the fleet's file, without `reads: false`.",
            )
        return policy.uri

    def _policy(self, uri: str) -> TablePolicy:
        policies = (each.policy for each in self.supervisor.tables())
        found = next((each for each in policies if each.uri == uri), None)
        if found is None:
            raise RequestRefused(f"The table {uri} has left the fleet.")
        return found

    def _options_of(self, uri: str) -> Mapping[str, str] | None:
        return resolved(self._policy(uri).storage) or None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def web_settings(settings: Settings, section: str) -> WebSettings:
    """The settings of a web server whose address is in a section of its own, for plain HTTP."""
    if section == "web":
        return settings.web
    own = getattr(settings, section)
    update = {"host": own.host, "port": own.port, "tls_cert": None, "tls_key": None}
    update["max_connections"] = settings.hook.max_connections
    return settings.web.model_copy(update=update)


def serve_fleet(
    path: Path,
    *,
    shard: Shard | None = None,
    host: str | None = None,
    port: int | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Keeps the tables of a fleet file until SIGTERM or SIGINT, then finishes the running builds.
    What waits is left to the next start: the timelines know it. The file is read again when it
    changes, and on SIGHUP. Must be called from the main thread.

    Args:
        path: The fleet file.
        shard: Which of its tables are this service's.
        host, port: Override the settings ``web.host`` and ``web.port``.
        say: Receives the lines for the terminal.

    Raises:
        FleetFileInvalid: the file has mistakes.
        ConfigInvalid: the address cannot be bound, or the file of tokens is refused.
    """
    effective = with_address(config.settings(), "web", host, port)
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    count_repeats()
    watcher = FleetFileWatcher(path)
    discovery = Discovery(before=FoundBefore(effective.state_folder / "fleet", path))
    problems: dict[str, tuple[Refusal, ...]] = {}

    def discovered() -> Mapping[str, TablePolicy]:
        found = discovery.discover(watcher.file)
        problems["fleet file"] = (Refusal.of(watcher.error),) if watcher.error else ()
        problems["sources"] = tuple(Refusal.of(each.problem) for each in found.failed)
        return found.tables

    found = discovered()
    secret = effective.hook.secret.get_secret_value() if effective.hook.secret else ""

    def supervise(listener: Listener) -> Supervisor:
        return Supervisor(found.values(), settings=effective, shard=shard, listener=listener)

    token = effective.answer.token.get_secret_value() if effective.answer.token else ""
    with (
        Service(
            supervise,
            effective,
            callback_secret=secret,
            session_token=token,
            problems=lambda: [each for some in list(problems.values()) for each in some],
        ) as service,
        stopped_by_signals(signal.SIGHUP) as stop,
    ):
        service.supervisor.start()
        service.answer()
        say(f"Keeping {counted(len(service.supervisor.tables()), 'table')} of {path}.")
        say(f"Page, API and metrics: {service.server.url}")
        while not stop.wait(LOOK_SECONDS):
            watcher.look()
            refused = service.server.look()
            problems["certificate"] = (Refusal.of(refused),) if refused else ()
            before, found = found, discovered()
            if found != before:
                service.supervisor.apply(found.values())
                for name in before.keys() - found.keys():
                    service.forget(before[name])
        say("Stopping after the running builds.")
