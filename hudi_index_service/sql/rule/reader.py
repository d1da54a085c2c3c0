"""Decides who reads the rows of a request, and reads them when the query runs."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from threading import Lock
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_index_service.config import Settings
from hudi_index_service.hook.table_upkeep import configured
from hudi_index_service.optimizer.cost.in_spark import SessionReaders
from hudi_index_service.read.explanation import Explanation
from hudi_index_service.read.slices.index_estimates import with_index_estimates
from hudi_index_service.read.statistics import ReadStatistics
from hudi_index_service.sql.rule.by_index import AWAITED, best_rows, by_index, undecided
from hudi_index_service.sql.rule.counting import by_counting
from hudi_index_service.sql.rule.decision import Decision, serving_indexes
from hudi_index_service.sql.rule.full_text import FullTextCalls
from hudi_index_service.sql.rule.request import Request, read_request
from hudi_index_service.sql.rule.uses import Observed, Read, RelationUse, Use
from hudi_index_service.table import IndexedTable, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_index_service.sql.rule.decision import RowsRead

log = logging.getLogger(__name__)

_KEPT = 64
"""Plans that are kept from a decision until the query runs."""

_READS = 256
"""Uses of relations whose statistics are kept."""

_FRESH_SECONDS = 10.0
"""How long: after that, the plan is made again, since files may have gone, or entries come."""


class RelationReader:
    """Answers the requests of queries, and keeps their tables open. Sessions of one Spark context
    that were enabled with the same arguments share it.

    Args:
        storage_options: As for `enable`; or a function that gives them, by a table's base path. A
            table whose options have changed is opened again.
        settings: As for `enable`.
        allowed: Returns a table's base path as it is to be opened, or raises an error of the
            service. By default, all tables are read.
    """

    def __init__(
        self,
        storage_options: Mapping[str, str] | Callable[[str], Mapping[str, str] | None] | None,
        settings: Settings | None,
        allowed: Callable[[str], str] = str,
    ) -> None:
        self._storage_options = storage_options
        self._settings = settings
        self._allowed = allowed
        self._tables: dict[str, tuple[IndexedTable, Mapping[str, str] | None]] = {}
        self._kept: OrderedDict[str, tuple[Decision, float]] = OrderedDict()
        self._reads: OrderedDict[int, Read] = OrderedDict()
        self._lock = Lock()
        self.calls = FullTextCalls(self._table)
        """Answers questions about full-text calls."""

    def has(self, storage_options: Mapping[str, str] | None, settings: Settings | None) -> bool:
        """Whether it was made with these arguments."""
        return (self._storage_options, self._settings) == (storage_options, settings)

    def opened(self, path: str, spark: "SparkSession | None" = None) -> IndexedTable:
        """A table for an index statement, see `configured`.

        Args:
            path: Its base path.
            spark: A session to build on; None builds in local threads.
        """
        uri = self._allowed(path)
        return configured(
            uri, storage_options=self._options(uri), spark=spark, settings=self._settings
        )

    def decide(self, text: str, readers: SessionReaders) -> Decision:
        """Who reads the rows of a request, or counts them. Looks into the index and reads no row.

        Raises:
            IndexServiceError, OSError: the table cannot be opened, planned or looked up.
        """
        decided = self._decision(text, readers)
        if decided.reader == "spark" and AWAITED in text:
            return self._undecided(text) or decided
        return decided

    def rows(
        self,
        session: Any,
        text: str,
        use: int | None,
        readers: SessionReaders,
        observed: Observed | None = None,
    ) -> "RowsRead":
        """The rows of a request.

        Args:
            session: The JVM's session, by whose settings tasks read; not used if none can.
            use: The number of the relation's use, by which `read` finds what was read; None if
                nobody asks.
            observed: Receives what reading costs.

        Raises:
            IndexServiceError, OSError, pa.ArrowException, PySparkException, Py4JJavaError: they
                cannot be read.
        """
        decided = self._fresh(text) or self._decision(text, readers)
        if decided.read is None:
            return decided.reason
        observed = observed or Observed()
        statistics, started = ReadStatistics(), perf_counter()
        rows = decided.read(session, statistics, observed.read_by_task)
        if isinstance(rows, str):
            return rows
        if isinstance(rows, Iterator):
            return _observed(rows, observed, statistics, started)
        # A search for the best rows has no statistics.
        in_driver = isinstance(rows, pa.Table) and bool(statistics.plans)
        if in_driver:
            observed.read_here(statistics, perf_counter() - started)
        if use is not None:
            self._remember(use, Read(decided.where, statistics if in_driver else None, observed))
        return rows

    def read(self, use: int) -> Read | None:
        """What has been read for a use, by its number; None if nothing was, or long ago."""
        with self._lock:
            return self._reads.get(use)

    def explained(self, use: Use, readers: SessionReaders) -> RelationUse:
        """How a relation is read, with how an index would read it, even if Spark reads, if an index
        can.

        Raises:
            IndexServiceError, OSError: the table cannot be opened, planned or looked up.
        """
        relation, request = use.relation(self.read), use.request
        if request is None or request.why_not() is not None:
            return relation
        decided = self._decided(request, readers)
        if decided.run is None:
            return relation
        plan = with_index_estimates(decided.run.plan, decided.run.reader.pool)
        return replace(
            relation,
            explanation=Explanation.of(plan, decided.where),
            where=relation.where or decided.where,
            indexes=serving_indexes(self._table(request.uri).indexes(), plan),
        )

    def forget(self, *, close: bool = False) -> None:
        """Forgets what was decided: an index may have been built, or dropped.

        Args:
            close: Whether files of an index may have been removed: an open file's bytes stay on
                the disk.
        """
        with self._lock:
            self._kept.clear()
        if close:
            self.close()

    def close(self) -> None:
        """Closes the tables and their open index files."""
        with self._lock:
            tables, self._tables = self._tables, {}
            self._kept.clear()
        for table, _ in tables.values():
            table.close()

    def _decision(self, text: str, readers: SessionReaders) -> Decision:
        request = read_request(text)
        if isinstance(request, str):
            return Decision.spark(request)
        decided = self._decided(request, readers)
        by_index = decided.read is not None
        reader = "index" if by_index else "Spark"
        log.info("%s is read by %s: %s.", request.uri, reader, decided.reason)
        if by_index and request.key is None:
            self._keep(text, decided)
        return decided

    def _undecided(self, text: str) -> Decision | None:
        request = read_request(text)
        if isinstance(request, str) or not self._table(request.uri).indexes():
            return None
        return undecided(self._table(request.uri), request)

    def _decided(self, request: Request, readers: SessionReaders) -> Decision:
        table = self._table(request.uri)
        # The files of an earlier snapshot may have been cleaned.
        latest = request.as_of is None
        with table.hudi_table.listed_by_caller(request.instants) if latest else nullcontext():
            if not table.indexes():
                return Decision.spark("the table has no index")
            if request.counts is not None:
                return by_counting(table, request, request.counts)
            if request.best is not None:
                return best_rows(table, request, request.best, self.calls, readers)
            return by_index(table, request, self.calls, readers)

    def _table(self, path: str) -> IndexedTable:
        uri = self._allowed(path)
        options = self._options(uri)
        with self._lock:
            table, before = self._tables.get(uri, (None, None))
            if table is None or before != options:
                table = open_table(uri, storage_options=options, settings=self._settings)
                self._tables[uri] = table, options
            return table

    def _options(self, uri: str) -> Mapping[str, str] | None:
        options = self._storage_options
        return options(uri) if callable(options) else options

    def _remember(self, use: int, read: Read) -> None:
        with self._lock:
            self._reads[use] = read
            while len(self._reads) > _READS:
                self._reads.popitem(last=False)

    def _keep(self, text: str, decided: Decision) -> None:
        with self._lock:
            self._kept[text] = decided, monotonic()
            self._kept.move_to_end(text)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)

    def _fresh(self, text: str) -> Decision | None:
        with self._lock:
            decided, since = self._kept.get(text, (None, 0.0))
        return decided if monotonic() - since < _FRESH_SECONDS else None


def _observed(
    parts: Iterator[pa.Table], observed: Observed, statistics: ReadStatistics, started: float
) -> Iterator[pa.Table]:
    """The parts; what reading all of them has cost is known at their end."""
    yield from parts
    observed.read_here(statistics, perf_counter() - started)
