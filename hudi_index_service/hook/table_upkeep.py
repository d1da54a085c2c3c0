"""Keeps one table's index up to date; every wake-up runs this."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self

from hudi_index_service import config
from hudi_index_service.build.outcomes import Build
from hudi_index_service.build.run import Details, RetryFailed
from hudi_index_service.build.strategy import NO_BACKFILL, UNLIMITED, Budget, Strategy
from hudi_index_service.catalog import table_location
from hudi_index_service.config import RetentionPolicy, Settings
from hudi_index_service.errors import IndexServiceError, NativeModuleMissing, TableOverwritten
from hudi_index_service.hook.table_keys import (
    INDEX_NAME,
    Remembered,
    TableMemory,
    define,
    first_instant_with_keys,
    newest_keys,
)
from hudi_index_service.hook.write_options import PREFIX, index_options, read_write_keys
from hudi_index_service.index.metadata.definitions import DefinitionStore, IndexDefinition
from hudi_index_service.maintain.overwrite import KnownTable, overwritten_since
from hudi_index_service.maintain.status import idle_reason
from hudi_index_service.storage.store import normalize_uri
from hudi_index_service.table import IndexedTable, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_EVERYTHING = ""  # as a first instant: earlier than any other


@dataclass(frozen=True, slots=True)
class _WriteRequest:
    """Keys, and how they relate to the table.

    Attributes:
        since: First instant that the index covers; None for the instants after the present ones.
        outdated: Whether the index was changed or dropped since. If so, the keys only set how to
            build.
    """

    options: Mapping[str, str]
    since: str | None
    outdated: bool = False


@dataclass(slots=True)
class _Found:
    """What a wake-up finds, listed once.

    Attributes:
        before: What was remembered; None if nothing was.
        overwrite: The table's overwrite since; None if there was none.
        live: The live definitions.
        version: The newest version of the keys' index, perhaps one that marks it as dropped; None
            if it never existed.
    """

    before: Remembered | None
    overwrite: TableOverwritten | None
    live: Sequence[IndexDefinition]
    version: IndexDefinition | None

    def is_defined_since(self, instant: str) -> bool:
        """Whether the keys' index was created, changed or dropped since this instant. If so, only
        the keys of a later commit change it or recreate it."""
        return self.version is not None and instant <= self.version.latest


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """The outcome of applying the keys.

    Attributes:
        strategy: What to build.
        enabled: Whether wake-ups define and build anything.
        failure: Why the keys' index could not be defined or changed; else None.
    """

    strategy: Strategy = Strategy.INCREMENTAL
    enabled: bool = True
    failure: IndexServiceError | None = None


class TableUpkeep:
    """Keeps the index of one table up to date. Only one thread at a time may call `run`.

    The ``hoodie.index.*`` keys come from the first of these that has any: the newest commit with
    keys, `suggest`, and the state remembered between runs (after an overwrite the keys applied
    last, otherwise those of commits that Hudi has archived). `options` override all of them.

    Args:
        uri: The table's base path; it need not exist before `run`. An unsupported scheme raises
            StorageUnsupported.
        spark, storage_options, settings: As for `open_table`.
        strategy: What to build if the keys set no strategy.
        clean: Clean the table's index after each build.
        defer_failed: Leave base files that failed recently (`Build.deferred`) to later triggers.
        options: A write config whose keys override the others key by key.
    """

    def __init__(
        self,
        uri: str | Path,
        *,
        spark: "SparkSession | None" = None,
        storage_options: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        strategy: Strategy = Strategy.INCREMENTAL,
        clean: bool = True,
        defer_failed: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.uri = normalize_uri(table_location(uri, spark))
        self._settings = config.effective(settings)
        self._spark = spark
        self._storage_options = storage_options
        self._strategy = strategy
        self._clean = clean
        self._retry_failed: RetryFailed = "backoff" if defer_failed else "now"
        self._overrides = index_options(options or {})
        self._suggested: _WriteRequest | None = None
        self._committed: Mapping[str, str] = {}  # for the memory, as read last
        self._memory = TableMemory(self._settings.state_folder, self.uri)
        self._opening = Lock()
        self._table: IndexedTable | None = None
        self._retention: RetentionPolicy | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the table; the next use reopens it."""
        with self._opening:
            if self._table is not None:
                self._table.close()
            self._table = None

    @property
    def table(self) -> IndexedTable:
        """The table, opened at first use. Its entries are kept as the keys say that were applied
        last, by `define` or `peek`.

        Raises:
            TableNotFound, NotAHudiTable, StorageUnsupported.
        """
        with self._opening:
            if self._table is None:
                self._table = open_table(
                    self.uri,
                    storage_options=self._storage_options,
                    spark=self._spark,
                    settings=self._settings,
                )
                self._table.retain(self._retention)
            return self._table

    def suggest(self, options: Mapping[str, str]) -> None:
        """Sets the keys of a write that is about to begin. They apply from that write on, unless a
        commit has keys."""
        try:
            latest = self.table.hudi_table.latest_instant()
        except IndexServiceError as error:  # most likely not written yet
            log.debug("%s: %s", self.uri, error)
            latest = ""
        since = _next_instant(latest) if latest else _EVERYTHING
        self._suggested = _WriteRequest(index_options(options), since)

    def version(self) -> str:
        """A digest of timeline and definitions, which is equal while there is nothing new to
        build."""
        table = self.table
        live = table.indexes()  # which reads again only what has changed
        parts = [table.hudi_table.timeline().version, *(f"{d.name}-{d.version}" for d in live)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def run(
        self,
        *,
        strategy: Strategy | None = None,
        budget: Budget = UNLIMITED,
        backfill: timedelta = NO_BACKFILL,
        details: Details | None = None,
    ) -> Build:
        """Defines the keys' index, builds what is due, and cleans if `clean` is set. Does none of
        it with ``hoodie.index.enabled=false``.

        Args:
            strategy: What to build in place of what the keys say.
            budget: The limits of the build.
            backfill: As for `IndexedTable.build`.
            details: Called during the build; see `Details`.

        Raises:
            IndexServiceError: as `IndexedTable.build` and `IndexedTable.clean`; or the failure to
                apply the keys, raised after everything else is done.
        """
        outcome = self.define()
        if outcome.enabled:
            try:
                build = self.table.build(
                    strategy=strategy or outcome.strategy,
                    budget=budget,
                    backfill=backfill,
                    retry_failed=self._retry_failed,
                    details=details,
                )
            except NativeModuleMissing:  # of an index type; the others' entries are cleaned
                if self._clean:
                    self.table.clean()
                raise
            if self._clean:
                self.table.clean()
        else:
            log.info("%s: nothing is built because hoodie.index.enabled is false.", self.uri)
            build = Build("", outcome.strategy, ())
        if outcome.failure is not None:
            raise outcome.failure
        return build

    def define(self) -> ResolvedConfig:
        """Creates or changes the keys' index. Logs when the table was overwritten, and what became
        of its indexes.

        Wrong keys, or an index that cannot be created, raise nothing, so that other indexes are
        still built; see `ResolvedConfig.failure`.

        Raises:
            IndexServiceError: the table cannot be read.
        """
        found = self._find()
        request = self._request(found)
        outcome = self._apply(request, found, defining=True)
        if found.before is not None and found.overwrite is not None:
            loss = overwritten_since(self.table.hudi_table, found.before.table)
            restored = (
                f"{TableOverwritten.code}: {self.uri} was overwritten, including .hoodie. Its "
                "hoodie.index.* keys define its index again and set how it is built."
            )
            log.warning("%s", loss or restored)
        self._remember(request, found)
        return outcome

    def peek(self) -> ResolvedConfig:
        """The result that `define` would return, except for failures to define; changes nothing.

        Raises:
            IndexServiceError: the table cannot be read.
        """
        found = self._find()
        return self._apply(self._request(found), found, defining=False)

    def idle_reason(self, strategy: Strategy | None = None) -> str | None:
        """Why wake-ups build nothing on the table as it is, although it is not indexed, in
        sentences with the remedy; None if they do, or will after the next table service. Changes
        nothing.

        Args:
            strategy: What to build in place of what the keys say.

        Raises:
            IndexServiceError: the table cannot be read.
        """
        found = self._find()
        request = self._request(found)
        keys = self._apply(request, found, defining=False)
        if not keys.enabled:
            return f"Nothing is built: the key {PREFIX}enabled is false."
        status = self.table.status()
        if not status and request is not None and not request.outdated and keys.failure is None:
            defined = read_write_keys(request.options)
            if defined is not None and defined.columns:
                return None
        if status and (strategy or keys.strategy) is Strategy.ALL:
            return None
        return idle_reason(status)

    def _find(self) -> _Found:
        before = self._memory.load()
        overwrite = overwritten_since(self.table.hudi_table, before.table) if before else None
        if overwrite is not None:
            self.close()  # its cached state is invalid
        versions = DefinitionStore(self.table.hudi_table.storage).versions()
        current = [each.current for each in versions if each.current is not None]
        return _Found(
            before,
            overwrite,
            live=tuple(each for each in current if not each.dropped),
            version=next((each for each in current if each.name == INDEX_NAME), None),
        )

    def _apply(
        self, request: _WriteRequest | None, found: _Found, *, defining: bool
    ) -> ResolvedConfig:
        outcome = ResolvedConfig(self._strategy)
        try:
            keys = read_write_keys(request.options) if request is not None else None
            if request is not None and keys is not None:
                strategy = keys.strategy or self._strategy
                outcome = ResolvedConfig(strategy, keys.enabled)
                self._retention = keys.retention
                self.table.retain(keys.retention)
                if keys.enabled and defining and not request.outdated:
                    found.live = define(self.table, found.live, keys, since=request.since)
        except IndexServiceError as error:
            log.error("%s: the keys hoodie.index.* are not applied. %s", self.uri, error)
            return replace(outcome, failure=error)
        return outcome

    def _request(self, found: _Found) -> _WriteRequest | None:
        base = self._base_request(found)
        if not self._overrides:
            return base
        if f"{PREFIX}columns" in self._overrides or base is None:
            since = None if found.overwrite is None else _EVERYTHING
            return _WriteRequest({**(base.options if base else {}), **self._overrides}, since)
        return replace(base, options={**base.options, **self._overrides})

    def _base_request(self, found: _Found) -> _WriteRequest | None:
        """The keys from the commits, `suggest` or the memory, without `options`."""
        hudi_table = self.table.hudi_table
        stored_keys = newest_keys(hudi_table)
        before, overwrite = found.before, found.overwrite
        archived_options = before.committed if before is not None and overwrite is None else {}
        self._committed = archived_options if stored_keys is None else stored_keys.options
        if stored_keys is not None:
            outdated = found.is_defined_since(stored_keys.instant)
            # Only a new definition needs `since`; finding it reads every commit.
            is_live = found.version is not None and not found.version.dropped
            since = None if is_live else first_instant_with_keys(hudi_table)
            return _WriteRequest(stored_keys.options, since, outdated)
        if self._suggested is not None:
            since = self._suggested.since or _EVERYTHING
            return replace(self._suggested, outdated=found.is_defined_since(since))
        if overwrite is not None and before is not None and before.keys:
            return _WriteRequest(before.keys, _EVERYTHING)
        # Too old to change or recreate the index.
        return _WriteRequest(archived_options, None, outdated=True) if archived_options else None

    def _remember(self, request: _WriteRequest | None, found: _Found) -> None:
        before = found.before
        self._memory.store(
            KnownTable.of(self.table.hudi_table.latest_instant(), found.live),
            keys=dict(request.options) if request is not None else before.keys if before else {},
            committed=dict(self._committed),
        )


def configured(
    uri: str | Path,
    *,
    spark: "SparkSession | None" = None,
    storage_options: Mapping[str, str] | None = None,
    settings: Settings | None = None,
) -> IndexedTable:
    """A table whose entries are kept as the keys of its write config say. Arguments and errors are
    those of `open_table`."""
    upkeep = TableUpkeep(uri, spark=spark, storage_options=storage_options, settings=settings)
    upkeep.peek()
    return upkeep.table


def _next_instant(requested: str) -> str:
    """The earliest instant after another; instants are strings of digits."""
    return str(int(requested) + 1).zfill(len(requested))
