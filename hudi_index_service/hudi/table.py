"""A Hudi table, read without Spark and without a JVM; hudi-rs merges its log files.

Every call first lists the timeline's folder. While the listing is unchanged, properties, schema,
commit metadata and snapshots are kept.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Lock
from time import sleep

import pyarrow as pa

from hudi_index_service.errors import (
    NeedsSpark,
    SnapshotChanged,
    StorageFailed,
    StorageUnsupported,
    TableFeatureUnsupported,
)
from hudi_index_service.hudi import gate
from hudi_index_service.hudi.completeness import Listing
from hudi_index_service.hudi.hudi_rs.slice_merger import MergeOptions, SliceMerger, merged_columns
from hudi_index_service.hudi.hudi_rs.timeline_copy import TableOnTimeline
from hudi_index_service.hudi.opened_table import OpenedTable, TableState, files_listed
from hudi_index_service.hudi.partition_path import PartitionPaths
from hudi_index_service.hudi.properties import (
    HOODIE_FOLDER,
    is_true,
    parse_properties,
    read_properties,
    read_properties_file,
    split_columns,
)
from hudi_index_service.hudi.snapshot import FileSlice, Instant, ServiceKind, Snapshot, TouchedKeys
from hudi_index_service.hudi.timeline import Timeline, is_archived, list_timeline, may_lack_instants
from hudi_index_service.storage.store import Storage
from hudi_index_service.storage.waiting import Backoff

log = logging.getLogger(__name__)

_ATTEMPTS = 3
# Hudi moves a timeline to another folder within some 30 ms; all waits together take 2.3 s.
_LISTINGS = 10
_LISTED_AGAIN = Backoff(first=0.01, longest=0.5)
# Written by ALTER TABLE under hoodie.schema.on.read.enable.
_SCHEMA_HISTORY = f"{HOODIE_FOLDER}/.schema"


class _Listed(threading.local):
    """The completed instants that a thread's caller has seen; None outside of
    `listed_by_caller`."""

    instants: Set[str] | None = None


class HudiTable:
    """A Hudi table opened for reading.

    `snapshot` raises `TableFeatureUnsupported` if the capability gate or the completeness proof
    refuses the table; `schema` and `completed_instants` work even then.

    Args:
        storage: The files below the table's base path.

    Raises:
        TableNotFound: nothing is stored there.
        NotAHudiTable: the location is not a Hudi table.
        StorageUnsupported: a store that hudi-rs cannot open (``memory://``).
    """

    def __init__(self, storage: Storage) -> None:
        if storage.uri.startswith("memory://"):
            raise StorageUnsupported(f"{storage.uri}: Hudi tables cannot be read from memory.")
        self._storage = storage
        self._properties = read_properties(storage)
        self._state: TableState | None = None
        self._opened: OpenedTable | None = None
        self._opening = Lock()
        self._listed = _Listed()
        self._merger = SliceMerger(storage)

    @property
    def storage(self) -> Storage:
        """The files below the table's base path."""
        return self._storage

    @property
    def name(self) -> str:
        """The table's name from hoodie.properties."""
        return self._properties.get("hoodie.table.name", "")

    def record_key_columns(self) -> tuple[str, ...]:
        """The columns of the record key; empty if Hudi generates the keys."""
        return split_columns(self._properties.get("hoodie.table.recordkey.fields", ""))

    def partition_columns(self) -> tuple[str, ...]:
        """The columns that partition the table; empty when it is not partitioned."""
        return split_columns(self._properties.get("hoodie.table.partition.fields", ""))

    def partition_paths(self) -> PartitionPaths:
        """The format of partition paths, as of the last listing of the timeline."""
        return PartitionPaths.of(self._properties)

    def unsupported_feature(self) -> str | None:
        """Why the capability gate refuses the table, in one sentence; None if it does not."""
        state = self._look()
        return state.refusal or state.merge_refusal or self._open().refusal

    def index_reading_enabled(self) -> bool:
        """Whether the table's kill switch, ``hoodie.index.read.enabled`` in hoodie.properties,
        leaves reading by index on, as of the last listing of the timeline. A change takes effect
        with the next commit, or when the table is opened again."""
        return is_true(self._properties, "hoodie.index.read.enabled", default=True)

    def schema(self, as_of: str | None = None, *, fresh: bool = True) -> pa.Schema:
        """The table's schema, Hudi's ``_hoodie_*`` meta columns first if populated; without columns
        before the first commit of a table that was created without a schema.

        Args:
            as_of: See `snapshot`; None for the latest.
            fresh: Whether to list the timeline; otherwise the schema may be that of the last
                listing, and a snapshot is expected to be wanted next.

        Raises:
            TableFeatureUnsupported, SnapshotUnavailable: see `snapshot`.
        """
        opened = self._open() if fresh else self._known(list_files=True)
        return opened.schema_at(opened.pinned(as_of))

    def completed_instants(self) -> tuple[Instant, ...]:
        """The completed commits, delta commits and replace commits of the active timeline, by
        requested time."""
        return self._look().timeline.instants

    def timeline(self) -> Timeline:
        """The active timeline, as it is listed now."""
        return self._look().timeline

    def latest_instant(self) -> str:
        """Requested time of the latest completed instant; "" if there is none."""
        return self._look().timeline.latest or ""

    @contextmanager
    def listed_by_caller(self, instants: Set[str]) -> Iterator[None]:
        """Spares this thread's listings of the timeline within the context, if the last one had
        just these completed instants.

        Args:
            instants: The requested times of `completed_instants`, as the caller has just seen them.
        """
        self._listed.instants = instants
        try:
            yield
        finally:
            self._listed.instants = None

    def service_kind(self, instant: Instant) -> ServiceKind:
        """Which table service wrote the instant, by the operation in its commit metadata."""
        return self._open().metadata.service_kind(instant)

    def extra_metadata(self, instant: Instant) -> Mapping[str, str]:
        """The metadata that the instant's writer added: the schema, checkpoints, and its options
        under ``hoodie.datasource.write.commitmeta.key.prefix``.

        Raises:
            SnapshotChanged: the instant is not (or no longer) in the active timeline.
        """
        return self._open().metadata.extra(instant)

    def ever_completed(self, requested: str) -> bool:
        """Whether the instant ever completed: it is on the active timeline or archived."""
        state = self._look()
        return requested in state.timeline.by_requested or is_archived(
            self._storage, state.version, state.properties, requested
        )

    def rows_written(self, instant: Instant) -> Mapping[str, int]:
        """Path of each base file that the instant wrote → its rows, from its commit metadata; empty
        if that cannot be read, or no longer. For display only: the counts are not checked."""
        metadata = self._open().metadata
        try:
            return metadata.rows_written(instant)
        except (SnapshotChanged, StorageFailed) as error:
            log.debug("The rows that instant %s wrote are unknown: %s", instant.requested, error)
            return {}

    def snapshot(self, as_of: str | None = None, *, base_files_only: bool = False) -> Snapshot:
        """The slices at the latest completed instant, or at `as_of`; proved complete.

        Args:
            as_of: The requested time of an instant, or any time in that format.
            base_files_only: Whether to leave out log files, and with them file groups without a
                base file, as Spark's query type ``read_optimized`` does.

        Raises:
            TableFeatureUnsupported: the gate or the proof of completeness refuses; or `as_of` is
                before the active timeline, or its files have been cleaned.
            SnapshotUnavailable: a write that began before `as_of` is still in flight.
            SnapshotChanged: files were deleted during every attempt to make the slices.
        """
        for _ in range(_ATTEMPTS):
            ahead = self._listed_ahead()
            opened = ahead or self._open(list_files=True)
            refusal = opened.refusal or (None if base_files_only else opened.state.merge_refusal)
            if refusal is not None:
                raise TableFeatureUnsupported(f"{self._storage.uri}: {refusal}")
            pinned = opened.pinned(as_of)
            if pinned is None:
                return Snapshot("", schema=opened.schema)
            snapshot = opened.snapshot(pinned, base_files_only, unchanged=ahead is not None)
            if snapshot is not None:
                return snapshot
            self._opened = self._listed.instants = None
        raise SnapshotChanged(f"{self._storage.uri} changed while its files were listed.")

    def read_slice(
        self, file_slice: FileSlice, columns: Sequence[str], *, as_of: str, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """The merged rows of a slice with log files, with `columns` in that order and in the
        table's types. A column that the slice does not have yet is NULL.

        Args:
            as_of: Requested time of the last instant whose log files are merged.
            schema: The table's schema at that instant.

        Raises:
            ColumnNotFound: a column is not in the table's schema.
            FileNotFoundError: a file of the slice is gone.
            NeedsSpark: the slice cannot be merged here.
        """
        opened, by_hudi_rs = self._for_merging(file_slice)
        options = MergeOptions.of(opened.state.properties, schema, columns, as_of)
        yield from self._merger.rows(by_hudi_rs, file_slice, options)

    def touched_keys(self, file_slice: FileSlice) -> TouchedKeys:
        """Every record key in the slice's log files, also of blocks that do not count.

        Raises:
            LogKeysUnknown: they cannot be told from the files.
            NeedsSpark: a log file is damaged.
        """
        return self._merger.touched_keys(file_slice)

    def merged_until(self, instant: str) -> str:
        """What the merged rows of a slice depend on besides its files: on version 6, where a log
        file may hold blocks of several commits, the snapshot's instant; else nothing ("")."""
        return instant if self._known().state.version < 8 else ""

    def merged_columns(self, stored: pa.Schema, columns: Sequence[str]) -> list[str]:
        """The columns of a base file that `read_touched` needs for some columns, without the record
        key.

        Args:
            stored: The base file's schema.
        """
        return merged_columns(stored, columns, self._known().state.properties)

    def read_touched(
        self,
        file_slice: FileSlice,
        log_files: Mapping[str, bytes],
        keys: pa.StringArray,
        rows: pa.Table,
        columns: Sequence[str],
        *,
        as_of: str,
        schema: pa.Schema,
    ) -> Iterator[pa.RecordBatch]:
        """The merged rows of the record keys in a slice's log files: what `read_slice` returns,
        without the rows of all other keys.

        Args:
            log_files: As `touched_keys` has read them.
            keys: Those of the record keys that the base file has.
            rows: Its rows with these keys, in the same order, with the columns `merged_columns`, in
                the file's types.
            columns, as_of, schema: See `read_slice`.

        Raises:
            NeedsSpark: the rows cannot be merged here.
            SnapshotChanged: the timeline has changed, and its older state cannot be read anymore.
        """
        opened = self._known()
        _refuse_unread_schema(opened, file_slice)
        copy = opened.merging_copy()
        options = MergeOptions.of(opened.state.properties, schema, columns, as_of)
        yield from self._merger.touched_rows(copy, file_slice, log_files, keys, rows, options)

    def _look(self) -> TableState:
        """The state at the current timeline; kept while the timeline's listing is unchanged."""
        return self._looked(list_files=False)[0]

    def _looked(self, *, list_files: bool) -> tuple[TableState, Future[Listing] | None]:
        """The same, and the data files that are being listed since then.

        Args:
            list_files: Whether files are listed while the rest of a new state is read.
        """
        before, listed = self._state, self._listed.instants
        if before is not None and before.timeline.by_requested.keys() == listed:
            return before, None
        for failures in range(_LISTINGS):
            if failures:  # sleeping for no time gives the processor away
                sleep(_LISTED_AGAIN.seconds(failures))
            now = self._state_now(before, list_files=list_files)
            if now is not None:
                self._state = now[0]
                return now
        raise SnapshotChanged(
            f"{self._storage.uri}: completed instants are missing from its timeline, as while Hudi "
            "upgrades or removes a table.",
            remedy="Run the query again when that has ended. If the table was created anew, or "
            "instants were removed by hand, open it again.",
        )

    def _state_now(
        self, before: TableState | None, *, list_files: bool
    ) -> tuple[TableState, Future[Listing] | None] | None:
        """What `_looked` returns, `before` if it is unchanged; None if the timeline may be
        incomplete, or is in another folder than before."""
        version = gate.table_version(self._properties)
        timeline = list_timeline(self._storage, version)
        is_known = before is not None and before.timeline.version == timeline.version
        same = before if is_known else None
        if same is not None and timeline.instants:
            return same, None
        columns, listing = self.partition_columns(), None
        if list_files:
            listing = files_listed(self._storage, partitioned=bool(columns))
        # The properties change only together with the timeline, unless that is empty: an upgrade
        # commits.
        content, has_schema_history = self._properties_and_schema_history()
        properties = self._properties = parse_properties(content)
        if gate.table_version(properties) != version:
            return None
        is_new = before is not None and content != before.properties_file
        known = None if before is None else before.timeline
        if may_lack_instants(self._storage, version, timeline, known, is_new=is_new):
            return None
        if same is not None and not is_new:
            return same, None
        refusal = gate.unsupported_base_files(properties)
        if refusal is None and has_schema_history:
            # Columns renamed or retyped without rewriting files: hudi-rs would give NULL for them.
            refusal = f"The table's schema was changed on read ({_SCHEMA_HISTORY})."
        merge_refusal = gate.unsupported_merge(properties)
        state = TableState(timeline, content, properties, refusal, merge_refusal)
        return state, listing if state.partition_columns == columns else None

    def _properties_and_schema_history(self) -> tuple[bytes, bool]:
        """The properties' file, and whether the table's schema was changed on read. A remote store
        is asked for both at once."""
        if self._storage.is_local:
            content = read_properties_file(self._storage)
            return content, bool(self._storage.files_in(_SCHEMA_HISTORY))
        with ThreadPoolExecutor(1, "schema-history") as thread:
            history = thread.submit(self._storage.files_in, _SCHEMA_HISTORY)
            return read_properties_file(self._storage), bool(history.result())

    def _open(self, *, list_files: bool = False) -> OpenedTable:
        """The table, opened at the current state by one thread for all.

        Args:
            list_files: Whether a snapshot comes next, so that a remote table's files are listed
                meanwhile.
        """
        list_files = list_files and not self._storage.is_local
        for _ in range(_ATTEMPTS):
            state, listing = self._looked(list_files=list_files)
            with self._opening:
                before = self._opened
                if before is not None and before.state is state:
                    return before
                metadata = None if before is None else before.metadata
                if listing is None and list_files:
                    partitioned = bool(state.partition_columns)
                    listing = files_listed(self._storage, partitioned=partitioned)
                with suppress(SnapshotChanged):  # an instant was archived meanwhile
                    self._opened = OpenedTable(self._storage, state, listing, metadata)
                    return self._opened
            self._listed.instants = None  # out of date
        raise self._unsteady()

    def _listed_ahead(self) -> OpenedTable | None:
        """The table as it was opened for its schema, if its files are still being listed since: the
        timeline is listed after them, and need not be listed before. None if it has to be."""
        opened = self._opened
        is_listing = opened is not None and opened.is_listing and opened.state is self._state
        return opened if is_listing and self._listed.instants is None else None

    def _for_merging(self, file_slice: FileSlice) -> tuple[OpenedTable, TableOnTimeline]:
        """The table, also as hudi-rs has opened it. The state that a slice was planned with is
        enough: the timeline is not listed for each slice."""
        for _ in range(_ATTEMPTS):
            opened = self._known()
            _refuse_unread_schema(opened, file_slice)
            by_hudi_rs = opened.by_hudi_rs()
            if by_hudi_rs is not None:
                return opened, by_hudi_rs
            self._opened = None
        raise self._unsteady()

    def _unsteady(self) -> SnapshotChanged:
        return SnapshotChanged(f"{self._storage.uri}: the timeline changes faster than it is read.")

    def _known(self, *, list_files: bool = False) -> OpenedTable:
        """The table as of the last look at the timeline, which is not listed if it is open."""
        opened = self._opened
        if opened is not None and opened.state is self._state:
            return opened
        return self._open(list_files=list_files)


def _refuse_unread_schema(opened: OpenedTable, file_slice: FileSlice) -> None:
    if opened.schema_refusal is not None:
        raise NeedsSpark(
            f"{file_slice.name} has log files. hudi-rs cannot read it: {opened.schema_refusal}."
        )
