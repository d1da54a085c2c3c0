"""The service's metrics in Prometheus' form. What concerns a table is made from memory when it is
asked for, so that no scrape looks at a store, and a table that left the fleet has no series.

Queries are those of this process and of its children, whoever asks for them: each read, count or
test for existence tells `hudi_index_service.read.recording`, to which `Metrics` listens here, and
each child in its process; see `Metrics.counted`. So routes and pages need not count them. Those
that Spark tasks, notebooks and other services run are not counted here.
"""

from collections import Counter as Numbers
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hudi_index_service import __version__
from hudi_index_service.fleet.builds.messages import Counted
from hudi_index_service.fleet.observation import EndedBuild, Observation, Refusal
from hudi_index_service.fleet.signals.attention import Reason, ReasonsOf, oldest_due, place
from hudi_index_service.maintain.status import TableStatus
from hudi_index_service.read.recording import QueryTaken, listen, stop_listening
from hudi_index_service.storage.store import requests_made
from hudi_index_service.wording import printable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

PREFIX = "hudi_index_"

MOST_TABLES = 1000

OUTCOMES = ("finished", "failed", "cancelled", "hung", "died", "out_of_memory")
TRIGGERS = ("callback", "poll", "retry", "schedule", "request")

_LABELS = ("catalog", "database", "table")

_BUILD_SECONDS = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600)
_QUERY_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

_OF_TABLES = {
    "table_up": ("Whether the last look at the table succeeded (1) or failed (0).", ()),
    "attention_severity": (
        "The severity of the worst reason that needs attention, from 1; 0 without one.",
        (),
    ),
    "lag_instants": ("Completed instants since the oldest due base file was written.", ()),
    "oldest_due_timestamp_seconds": (
        "When the oldest base file that is due was written; absent if none is.",
        (),
    ),
    "coverage_ratio": ("The covered fraction of the base files, from 0 to 1.", ("index",)),
    "files": (
        "Base files by the state of their entries; each counts once for each index.",
        ("state",),
    ),
    "bytes": ("Bytes of the entries that serve the present snapshot.", ("type",)),
    "orphaned_bytes": ("Bytes in entries that no snapshot needs.", ()),
    "prewarmed": (
        "What the last prewarming made ready for queries, or left out; absent if it failed.",
        ("kind",),
    ),
}
"""The gauges of each table: their help, and their labels beside those of the table."""


class Metrics(Collector):
    """The metrics of one service, in a registry of their own. It counts the queries of this process
    until `close`. Its methods may be called in any thread.

    Args:
        tables: All tables of the fleet; called once a scrape, so it should answer from memory.
        reasons_of: Why a table needs attention.
        most_tables: Tables with series of their own. Those that need attention most have them; how
            many have none is a metric.
        problems: What is wrong with the service itself; called once a scrape, too.
    """

    def __init__(
        self,
        tables: Callable[[], Iterable[Observation]],
        reasons_of: ReasonsOf,
        *,
        most_tables: int = MOST_TABLES,
        problems: Callable[[], Iterable[Refusal]] = tuple,
    ) -> None:
        # Otherwise each counter has a second series, with the time of its creation.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._tables, self._reasons_of = tables, reasons_of
        self._problems = problems
        self._most_tables = most_tables
        self._requests_of_children = Numbers[str]()
        self._counting_requests = Lock()
        info = Info(f"{PREFIX}build", "The release of the service.", registry=self.registry)
        info.info({"version": __version__})
        self._builds = self._counter("builds", "Builds that ended.", "outcome", "trigger")
        for outcome in OUTCOMES:
            for trigger in TRIGGERS:
                self._builds.labels(outcome, trigger)  # a rate needs the series before the first
        self._build_seconds = Histogram(
            f"{PREFIX}build_duration_seconds",
            "How long builds took that ended, however they did.",
            buckets=_BUILD_SECONDS,
            registry=self.registry,
        )
        self._callbacks = self._counter("callbacks", "Commit callbacks of Hudi writers.", "outcome")
        self._queries = self._counter(
            "queries", "Queries of the service; not those of Spark tasks.", "path", "rule"
        )
        self._query_seconds = Histogram(
            f"{PREFIX}query_duration_seconds",
            "How long queries of the service took.",
            ("path",),
            buckets=_QUERY_SECONDS,
            registry=self.registry,
        )
        self._read_bytes = self._counter(
            "read_bytes", "Bytes that queries of the service read: data, and index.", "kind"
        )
        self._hits = self._counter("cache_hits", "Index entries of queries that were open.")
        self._misses = self._counter("cache_misses", "Index entries that queries had to open.")
        self.registry.register(self)
        listen(self.query)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}{name}", meaning, labels, registry=self.registry)

    def close(self) -> None:
        """Counts no more queries of this process."""
        stop_listening(self.query)

    def build_ended(self, ended: EndedBuild, seconds: float) -> None:
        """Counts a build; what ended may also be a clean or a verification, which is not counted.

        Args:
            seconds: How long it took, by a clock that nobody sets.
        """
        if ended.action != "build":
            return
        self._builds.labels(ended.outcome, ended.trigger).inc()
        self._build_seconds.observe(max(0.0, seconds))

    def callback(self, outcome: str) -> None:
        """Counts a commit callback, by what became of it, such as ``accepted`` or ``refused``."""
        self._callbacks.labels(outcome).inc()

    def query(self, taken: QueryTaken) -> None:
        """Counts a query."""
        self._queries.labels(taken.path, taken.rule).inc()
        self._query_seconds.labels(taken.path).observe(taken.seconds)
        self._read_bytes.labels("data").inc(taken.data_bytes)
        self._read_bytes.labels("index").inc(taken.index_bytes)
        self._hits.inc(taken.entries_used - taken.entries_opened)
        self._misses.inc(taken.entries_opened)

    def counted(self, counted: Counted) -> None:
        """Counts what a child process has done since it last told: a child of builds, or one that
        runs queries for the service. Give it as a `Job`'s ``counted``."""
        with self._counting_requests:  # of several children at once
            self._requests_of_children.update(counted.requests)
        for each in counted.queries:
            self.query(QueryTaken(**each))

    def text(self) -> bytes:
        """All metrics in Prometheus' text form, of the type `CONTENT_TYPE`."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """What is made when it is asked for."""
        tables = [(seen, self._reasons_of(seen)) for seen in self._tables()]
        tables.sort(key=lambda each: place(each[0].policy, each[1]))
        yield from _of_tables(tables[: self._most_tables])
        yield _gauge("tables", "Tables of the fleet.", len(tables))
        cut = max(0, len(tables) - self._most_tables)
        yield _gauge("tables_cut", "Tables without series of their own, as they are too many.", cut)
        queued = sum(seen.queued is not None for seen, _ in tables)
        yield _gauge("queue_tables", "Tables that wait for a build to begin.", queued)
        problems = GaugeMetricFamily(
            f"{PREFIX}problems",
            "Problems of the service itself, such as a wrong fleet file, by the code of the error.",
            labels=["code"],
        )
        for code, number in Numbers(each.code for each in self._problems()).items():
            problems.add_metric([code], number)
        yield problems
        requests = CounterMetricFamily(
            f"{PREFIX}store_requests",
            "Requests to stores of this process and of its builds.",
            labels=["op"],
        )
        made = Numbers[str](requests_made())
        with self._counting_requests:
            made.update(self._requests_of_children)
        for operation, number in made.items():
            requests.add_metric([operation], number)
        yield requests


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}{name}", meaning, value)


def _of_tables(
    tables: Sequence[tuple[Observation, Sequence[Reason]]],
) -> Iterator[Metric]:
    gauges = {
        name: GaugeMetricFamily(f"{PREFIX}{name}", meaning, labels=[*_LABELS, *labels])
        for name, (meaning, labels) in _OF_TABLES.items()
    }
    for seen, reasons in tables:
        policy = seen.policy
        labels = [printable(part) for part in (policy.catalog, policy.database, policy.name)]
        for name, further, value in _values(seen, reasons):
            gauges[name].add_metric([*labels, *further], value)
    yield from gauges.values()


def _values(
    seen: Observation, reasons: Sequence[Reason]
) -> Iterator[tuple[str, Sequence[str], float]]:
    """The values of a table: the metric, its further labels, and the number."""
    yield "attention_severity", (), min((each.severity for each in reasons), default=0)
    if seen.at is not None:
        yield "table_up", (), seen.status is not None and not seen.unreachable_polls
    if seen.warmed is not None and (ready := seen.warmed.ready) is not None:
        for kind in ("entries", "files", "left_out"):
            yield "prewarmed", (kind,), getattr(ready, kind)
    if seen.status is None:
        return
    status = seen.status
    yield "lag_instants", (), status.lag_instants
    yield "orphaned_bytes", (), seen.orphaned_bytes
    due = oldest_due(status)
    if due is not None:
        yield "oldest_due_timestamp_seconds", (), due.timestamp()
    coverage: dict[str, float] = {}
    for each in status:
        name = each.definition.name
        coverage[name] = min(each.coverage, coverage.get(name, 1.0))  # of its index types
    for name, ratio in coverage.items():
        yield "coverage_ratio", (name,), ratio
    for state, number in _files(status).items():
        yield "files", (state,), number
    for index_type, size in _bytes(status).items():
        yield "bytes", (index_type,), size


def _files(status: TableStatus) -> dict[str, int]:
    return {
        "covered": sum(each.covered for each in status),
        "due": sum(each.due for each in status),
        "outdated": sum(each.outdated for each in status),
        "newer": sum(each.newer for each in status),
        "damaged": sum(each.damaged for each in status),
        "not_due": sum(each.left for each in status),
    }


def _bytes(status: TableStatus) -> dict[str, int]:
    """The bytes by index type. Of one type, a file that several indexes share counts once; of
    several types, once for each index."""
    sizes: defaultdict[str, int] = defaultdict(int)
    for each in status:
        sizes[each.index_type] += each.index_bytes
    return dict.fromkeys(sizes, status.index_bytes) if len(sizes) == 1 else sizes
