"""A Hudi table read through hudi-rs, without Spark and without a JVM.

hudi-rs (0.5) decodes commit metadata, makes the file slices and merges log files with base files.
Its results are checked: the capability gate decides which tables are read this way at all, and
every snapshot has to pass the proof of completeness.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from time import sleep
from typing import Any

import hudi
import pyarrow as pa

from hudi_index_service.columns import column_field
from hudi_index_service.errors import (
    ColumnNotFound,
    NeedsSpark,
    SnapshotChanged,
    SnapshotUnavailable,
    StorageFailed,
    StorageUnsupported,
    TableFeatureUnsupported,
)
from hudi_index_service.hudi import gate
from hudi_index_service.hudi.commit_metadata import CommitMetadata
from hudi_index_service.hudi.completeness import Listing, Proof, list_data_files
from hudi_index_service.hudi.hudi_rs.errors import hudi_rs_errors_named
from hudi_index_service.hudi.hudi_rs.slice_merger import (
    MergeOptions,
    SliceMerger,
    merged_columns,
    ordering_columns,
)
from hudi_index_service.hudi.hudi_rs.slices import slice_of
from hudi_index_service.hudi.hudi_rs.timeline_copy import TimelineCopy
from hudi_index_service.hudi.partition_path import PartitionPaths
from hudi_index_service.hudi.properties import (
    HOODIE_FOLDER,
    is_true,
    parse_properties,
    read_properties,
    read_properties_file,
    split_columns,
)
from hudi_index_service.hudi.protocol import (
    FileSlice,
    Instant,
    ServiceKind,
    Snapshot,
    TouchedKeys,
)
from hudi_index_service.hudi.slices_from_names import slices_by_names
from hudi_index_service.hudi.table_schema import latest_schema, schema_of_instant
from hudi_index_service.hudi.timeline import (
    WRITE_ACTIONS,
    Timeline,
    archived_completion_times,
    is_archived,
    list_timeline,
    may_lack_instants,
)
from hudi_index_service.storage.backoff import Backoff
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)

_ATTEMPTS = 3
# Hudi moves a timeline to another folder within some 30 ms; all waits together take 2.3 s.
_LISTINGS = 10
_LISTED_AGAIN = Backoff(first=0.01, longest=0.5)
_UNKNOWN_TO_HUDI_RS = "hdfs://"
# Written by ALTER TABLE under hoodie.schema.on.read.enable.
_SCHEMA_HISTORY = f"{HOODIE_FOLDER}/.schema"


@dataclass
class _State:
    """The table at one state of its timeline, with the results cached for that state.

    Attributes:
        refusal: Why the table is not read here at all.
        merge_refusal: Why its log files are not merged here.
        schema_refusal: Why hudi-rs cannot read its schema; hudi-rs then makes no slices and reads
            no rows.
        listing: The data files of a remote table, listed while hudi-rs opened it, for the first
            snapshot. The timeline was the same afterwards.
        copy: Where small base files are merged; made for the first one. In a store that hudi-rs
            cannot open, `table` is on the copy.
    """

    timeline: Timeline
    properties: Mapping[str, str]
    refusal: str | None
    merge_refusal: str | None
    table: Any = None
    metadata: CommitMetadata | None = None
    schema_refusal: str | None = None
    listing: "Future[Listing] | None" = None
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    copy: TimelineCopy | None = None
    snapshots: dict[tuple[str, bool], Snapshot] = field(default_factory=dict)
    making: Lock = field(default_factory=Lock, repr=False)
    copying: Lock = field(default_factory=Lock, repr=False)

    @property
    def version(self) -> int:
        return gate.table_version(self.properties)


@dataclass(frozen=True)
class _Complete:
    """The last listing of the timeline that was found complete, and the properties' file then."""

    timeline: Timeline
    properties: bytes


class _Listed(threading.local):
    """The completed instants that a thread's caller has seen; None outside of
    `listed_by_caller`."""

    instants: Set[str] | None = None


class HudiRsTable:
    """`HudiTable` over hudi-rs.

    Every call first lists the timeline's folder. While the listing is unchanged, properties,
    hudi-rs' table, schema, commit metadata and snapshots are kept.

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
        self._state: _State | None = None
        self._complete: _Complete | None = None
        self._listed = _Listed()
        self._merger = SliceMerger(storage)

    @property
    def storage(self) -> Storage:
        """The files below the table's base path."""
        return self._storage

    @property
    def name(self) -> str:
        """The table's name."""
        return self._properties.get("hoodie.table.name", "")

    def record_key_columns(self) -> tuple[str, ...]:
        """The columns of the record key; empty if Hudi generates the keys."""
        return split_columns(self._properties.get("hoodie.table.recordkey.fields", ""))

    def partition_columns(self) -> tuple[str, ...]:
        """The columns that partition the table; empty when it is not partitioned."""
        return split_columns(self._properties.get("hoodie.table.partition.fields", ""))

    def partition_paths(self) -> PartitionPaths:
        """The format of partition paths, from the properties last read."""
        return PartitionPaths.of(self._properties)

    def unsupported_feature(self) -> str | None:
        """Why the capability gate refuses the table, in one sentence; None if it does not."""
        # hudi-rs may be unable to open a table that is refused for its properties.
        state = self._look()
        if state.refusal is None and state.merge_refusal is None:
            state = self._open()
        return state.refusal or state.merge_refusal

    def index_reading_enabled(self) -> bool:
        """Whether the table's own kill switch leaves reading by index on, from the properties last
        read."""
        return is_true(self._properties, "hoodie.index.read.enabled", default=True)

    def schema(self, as_of: str | None = None, *, fresh: bool = True) -> pa.Schema:
        """The table's schema, Hudi's meta columns first if populated; without columns before the
        first commit of a table that was created without a schema.

        Args:
            as_of: See `snapshot`; None for the latest.
            fresh: Whether to list the timeline; otherwise the schema may be that of the last
                listing.

        Raises:
            TableFeatureUnsupported, SnapshotUnavailable: see `snapshot`.
        """
        state = self._state
        if fresh or state is None or state.table is None:
            state = self._open(list_files=not fresh)
        pinned = self._pinned(state, as_of)
        return state.schema if pinned is None else self._schema_at(state, pinned)

    def completed_instants(self) -> tuple[Instant, ...]:
        """The completed commits, delta commits and replace commits of the active timeline."""
        return self._look().timeline.instants

    @contextmanager
    def listed_by_caller(self, instants: Set[str]) -> Iterator[None]:
        """See `HudiTable.listed_by_caller`."""
        self._listed.instants = instants
        try:
            yield
        finally:
            self._listed.instants = None

    def timeline_version(self) -> str:
        """A digest of the timeline's listing: equal while nothing is committed, nor begun."""
        return self._look().timeline.version

    def service_kind(self, instant: Instant) -> ServiceKind:
        """Which table service wrote the instant, by the operation in its commit metadata."""
        return self._metadata(self._open()).service_kind(instant)

    def extra_metadata(self, instant: Instant) -> Mapping[str, str]:
        """The metadata that the instant's writer added."""
        return self._metadata(self._open()).extra(instant)

    def has_had(self, requested: str) -> bool:
        """Whether the instant ever completed, even if it has been archived since."""
        state = self._look()
        return requested in state.timeline.by_requested or is_archived(
            self._storage, state.version, state.properties, requested
        )

    def rows_written(self, instant: Instant) -> Mapping[str, int]:
        """See `HudiTable.rows_written`; no answer depends on it."""
        metadata = self._metadata(self._open())
        try:
            return metadata.rows_written(instant)
        except (SnapshotChanged, StorageFailed) as error:
            log.debug("The rows that instant %s wrote are unknown: %s", instant.requested, error)
            return {}

    def snapshot(self, as_of: str | None = None, *, base_files_only: bool = False) -> Snapshot:
        """See `HudiTable.snapshot`; proved complete."""
        for _ in range(_ATTEMPTS):
            state = self._open(list_files=True)
            refusal = state.refusal or (None if base_files_only else state.merge_refusal)
            if refusal is not None:
                raise TableFeatureUnsupported(f"{self._storage.uri}: {refusal}")
            pinned = self._pinned(state, as_of)
            if pinned is None:
                return Snapshot("", schema=state.schema)
            snapshot = self._snapshot_of(state, pinned, base_files_only)
            if snapshot is not None:
                return snapshot
            self._state = None
        raise SnapshotChanged(f"{self._storage.uri} changed while its files were listed.")

    def _snapshot_of(self, state: _State, pinned: str, base_files_only: bool) -> Snapshot | None:
        """A snapshot, made by one thread and kept for all; None if the table has changed."""
        key = (pinned, base_files_only)
        if key not in state.snapshots:
            with state.making:
                if key not in state.snapshots:
                    try:
                        snapshot = self._make_snapshot(state, pinned, base_files_only)
                    except FileNotFoundError:  # Hudi has just merged files of its archive
                        return None
                    if snapshot is None:
                        return None
                    state.snapshots[key] = snapshot
        return state.snapshots[key]

    def read_slice(
        self,
        file_slice: FileSlice,
        columns: Sequence[str],
        *,
        as_of: str | None = None,
        schema: pa.Schema | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The merged rows of a slice, with `columns` in that order and in the table's types.

        A column that the slice does not have yet is NULL.

        Args:
            as_of: The last instant whose log files are merged; None for the latest.
            schema: The table's schema at that instant; None for the latest.

        Raises:
            ColumnNotFound: a column is not in the table's schema.
            FileNotFoundError: a file of the slice is gone.
            NeedsSpark: the slice cannot be merged here.
        """
        # The state that the slice was planned with is enough: no listing of the timeline per slice.
        state = self._known()
        options = self._merge_options(state, columns, as_of, schema)
        if state.schema_refusal is not None and file_slice.base_file is not None:
            raise NeedsSpark(f"{file_slice.name} has log files. {state.schema_refusal}")
        copy = state.copy if self._reads_copy else None
        yield from self._merger.rows(state.table, file_slice, options, copy)

    def touched_keys(self, file_slice: FileSlice) -> TouchedKeys:
        """See `HudiTable.touched_keys`."""
        return self._merger.touched_keys(file_slice)

    def merged_until(self, instant: str) -> str:
        """See `HudiTable.merged_until`."""
        return instant if self._known().version < 8 else ""

    def merged_columns(self, stored: pa.Schema, columns: Sequence[str]) -> list[str]:
        """See `HudiTable.merged_columns`."""
        return merged_columns(stored, columns, self._known().properties)

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
        """See `HudiTable.read_touched`."""
        state = self._known()
        if state.schema_refusal is not None:
            raise NeedsSpark(f"{file_slice.name} has log files. {state.schema_refusal}")
        with state.copying:
            copy = state.copy
            if copy is None:
                copy = self._copy(state, {})
            state.copy = copy
        if copy is None:
            raise SnapshotChanged(f"{self._storage.uri}: something was committed meanwhile.")
        options = self._merge_options(state, columns, as_of, schema)
        yield from self._merger.touched_rows(copy, file_slice, log_files, keys, rows, options)

    @property
    def _reads_copy(self) -> bool:
        """Whether hudi-rs cannot open the table's store."""
        return self._storage.uri.startswith(_UNKNOWN_TO_HUDI_RS)

    def _known(self) -> _State:
        """The state of the last look at the timeline, if hudi-rs' table is open."""
        state = self._state
        return self._open() if state is None or state.table is None else state

    def _merge_options(
        self, state: _State, columns: Sequence[str], as_of: str | None, schema: pa.Schema | None
    ) -> MergeOptions:
        known = schema or state.schema
        read_schema = pa.schema([_column(known, name) for name in columns])
        instant = as_of if as_of is not None else state.timeline.latest
        fields = (column_field(known, name) for name in ordering_columns(state.properties))
        ordering = pa.schema([field for field in fields if field is not None])
        return MergeOptions(read_schema, instant, state.properties, ordering)

    def _look(self) -> _State:
        """The state at the current timeline; kept while the timeline's listing is unchanged."""
        before, listed = self._state, self._listed.instants
        if before is not None and before.timeline.by_requested.keys() == listed:
            return before
        for failures in range(_LISTINGS):
            sleep(_LISTED_AGAIN.seconds(failures))
            state = self._state_now(before)
            if state is not None:
                return state
        raise SnapshotChanged(
            f"{self._storage.uri}: completed instants are missing from its timeline, as while Hudi "
            "upgrades or removes a table.",
            remedy="Run the query again when that has ended. If the table was created anew, or "
            "instants were removed by hand, open it again.",
        )

    def _state_now(self, before: _State | None) -> _State | None:
        """The state at the current timeline, `before` if it is unchanged; None if the timeline may
        be incomplete, or is in another folder than before."""
        version = gate.table_version(self._properties)
        timeline = list_timeline(self._storage, version)
        is_same = before is not None and before.timeline.version == timeline.version
        if is_same and timeline.instants:
            return before
        # The properties change only together with the timeline, unless that is empty: an upgrade
        # commits.
        content, has_schema_history = self._properties_and_schema_history()
        self._properties = parse_properties(content)
        if gate.table_version(self._properties) != version:
            return None
        last = self._complete
        if may_lack_instants(
            self._storage,
            version,
            timeline,
            None if last is None else last.timeline,
            is_new=last is not None and content != last.properties,
        ):
            return None
        self._complete = _Complete(timeline, content)
        if is_same and last is not None and content == last.properties:
            return before
        refusal = gate.unsupported_base_files(self._properties)
        if refusal is None and has_schema_history:
            # Columns renamed or retyped without rewriting files: hudi-rs would give NULL for them.
            refusal = f"The table's schema was changed on read ({_SCHEMA_HISTORY})."
        merge_refusal = gate.unsupported_merge(self._properties)
        state = _State(timeline, self._properties, refusal, merge_refusal)
        if before is not None:
            state.metadata = before.metadata
        self._state = state
        return state

    def _properties_and_schema_history(self) -> tuple[bytes, bool]:
        """The properties' file, and whether the table's schema was changed on read. A remote store
        is asked for both at once."""
        if self._storage.is_local:
            content = read_properties_file(self._storage)
            return content, bool(self._storage.files_in(_SCHEMA_HISTORY))
        with ThreadPoolExecutor(1, "schema-history") as thread:
            history = thread.submit(self._storage.files_in, _SCHEMA_HISTORY)
            return read_properties_file(self._storage), bool(history.result())

    def _open(self, *, list_files: bool = False) -> _State:
        """The current state, with hudi-rs' table opened on exactly that timeline.

        Args:
            list_files: Whether a snapshot comes next, so that a remote table's files are listed
                meanwhile.
        """
        for _ in range(_ATTEMPTS):
            state = self._look()
            if state.table is not None:
                return state
            if list_files and not self._storage.is_local:
                thread = ThreadPoolExecutor(1, "data-files")
                state.listing = thread.submit(self._data_files)
                thread.shutdown(wait=False)
            table = self._build(state)
            if state.listing is not None:
                wait([state.listing])  # so that one look at the timeline serves both
            # hudi-rs lists the timeline itself; if it is unchanged now, hudi-rs saw the same one.
            now = list_timeline(self._storage, state.version).version
            if table is not None and now == state.timeline.version:
                state.metadata = CommitMetadata(
                    table.get_timeline(), state.timeline, state.metadata
                )
                populated = is_true(state.properties, "hoodie.populate.meta.fields", default=True)
                state.schema, unreadable = latest_schema(
                    table,
                    self._storage.uri,
                    populated=populated,
                    has_base_files=not self._reads_copy,
                )
                if unreadable is not None:
                    state.schema_refusal = f"hudi-rs cannot read it: {unreadable}."
                    if gate.is_merge_on_read(state.properties) and state.version < 8:
                        # On version 6 only hudi-rs can assign a log file to its slice.
                        state.merge_refusal = state.merge_refusal or state.schema_refusal
                if state.refusal is None:
                    state.refusal = gate.unsupported_partition_column(
                        self.partition_columns(), state.schema.names
                    )
                state.table = table
                return state
        raise SnapshotChanged(f"{self._storage.uri}: the timeline changes faster than it is read.")

    def _build(self, state: _State) -> Any:
        """hudi-rs' table; None if it is made on a copy and the timeline has changed meanwhile."""
        # hudi-rs makes its slices from Hudi's metadata table if there is one (no option turns that
        # off); the proof has its own listing, so that the two have to agree.
        options = {}
        merges = gate.is_merge_on_read(state.properties)
        if not merges or state.refusal is not None or state.merge_refusal is not None:
            # The gate has decided. hudi-rs would also refuse a table for how it merges log files
            # if it has none; the schema and the instants of a refused table are still needed.
            options["hoodie.internal.skip.config.validation"] = "true"
        if self._reads_copy:
            state.copy = self._copy(state, options)
            return None if state.copy is None else state.copy.table
        with hudi_rs_errors_named(f"{self._storage.uri} cannot be opened"):
            return hudi.HudiTableBuilder(
                self._storage.uri,
                hudi_options=options,
                storage_options={key: str(value) for key, value in self._storage.options.items()},
            ).build()

    def _copy(self, state: _State, options: Mapping[str, str]) -> TimelineCopy | None:
        version, timeline = state.version, state.timeline.version
        try:
            return TimelineCopy.of(self._storage, version, timeline, options)
        except FileNotFoundError:  # an instant was archived meanwhile
            return None

    def _metadata(self, state: _State) -> CommitMetadata:
        assert state.metadata is not None, "set together with the table"
        return state.metadata

    def _pinned(self, state: _State, as_of: str | None) -> str | None:
        """The latest completed instant, up to `as_of`; None for a table without any."""
        timeline = state.timeline
        if as_of is None or timeline.start is None:
            return timeline.latest
        self._refuse_in_flight(state, as_of)
        pinned = max((i.requested for i in timeline.instants if i.requested <= as_of), default=None)
        if pinned is None:
            raise TableFeatureUnsupported(
                f"Instant {as_of} is before the active timeline, which starts at {timeline.start}.",
                remedy="Query a later instant.",
            )
        return pinned

    def _refuse_in_flight(self, state: _State, as_of: str) -> None:
        """Refuses a time whose state a write in flight may still change, as Hudi does
        (``TimelineUtils.validateTimestampAsOf``). Table services change no rows."""
        for requested, action in sorted(state.timeline.pending.items()):
            if requested > as_of or action not in WRITE_ACTIONS:
                continue
            if action == "replacecommit" and state.version < 8:
                raise TableFeatureUnsupported(
                    f"Instant {requested} is in flight, and only its plan shows whether it is a "
                    "clustering or a write."
                )
            raise SnapshotUnavailable(
                f"{self._storage.uri} as of {as_of} is not final: the write of instant "
                f"{requested} is in flight."
            )

    def _schema_at(self, state: _State, pinned: str) -> pa.Schema:
        if pinned == state.timeline.latest:
            return state.schema
        avro = self._metadata(state).extra(state.timeline.by_requested[pinned]).get("schema")
        by_hudi_rs = gate.is_merge_on_read(state.properties) and state.schema_refusal is None
        return schema_of_instant(
            pinned, avro, state.schema, uri=self._storage.uri, by_hudi_rs=by_hudi_rs
        )

    def _hudi_rs_slices(self, state: _State, pinned: str) -> list[Any] | None:
        """hudi-rs' slices; None if it fails on the metadata table from which it lists files."""
        options = hudi.HudiReadOptions().with_as_of_timestamp(pinned)
        try:
            with hudi_rs_errors_named(f"The file slices of {self._storage.uri}"):
                if self._reads_copy:
                    assert state.copy is not None, "the table is on it"
                    return state.copy.slices(self._data_files(), options)
                return list(state.table.get_file_slices(options))
        except (StorageFailed, TableFeatureUnsupported) as error:
            if not _has_metadata_table(state):
                raise
            log.info("Slices are made without the metadata table: %s", error.message)
            return None

    def _make_snapshot(self, state: _State, pinned: str, base_files_only: bool) -> Snapshot | None:
        """The snapshot; None if Hudi deleted its files or archived instants meanwhile."""
        try:
            return self._listed_snapshot(state, pinned, base_files_only)
        except (StorageFailed, SnapshotChanged):
            if list_timeline(self._storage, state.version).version == state.timeline.version:
                raise
            return None

    def _listed_snapshot(
        self, state: _State, pinned: str, base_files_only: bool
    ) -> Snapshot | None:
        # Without log files a slice needs only its base file's name. hudi-rs would list each
        # partition of a remote store twice in sequence. From version 8 on, a log file's name is
        # enough, too; only then does hudi-rs need a metadata table, which a copy does not hold.
        by_names = base_files_only or not gate.is_merge_on_read(state.properties)
        by_names = by_names or state.schema_refusal is not None
        by_names = by_names or (self._reads_copy and state.version >= 8)
        hudi_rs_slices = None if by_names else self._hudi_rs_slices(state, pinned)
        listing = self._listing(state)
        if listing is None:
            return None
        if base_files_only:
            listing = listing.without_log_files()
        metadata = self._metadata(state)
        proof = Proof(
            state.timeline,
            state.version,
            pinned,
            metadata.replaced(state.timeline, pinned),
            partial(archived_completion_times, self._storage),
        )
        if hudi_rs_slices is None:
            slices = slices_by_names(listing, proof)
        else:
            log_files_until = pinned if state.version >= 8 else None
            converted = [slice_of(each, listing, log_files_until) for each in hudi_rs_slices]
            slices = [each for each in converted if each is not None]
            if len(slices) < len(converted):
                return None
        slices.sort(key=lambda each: (each.partition, each.file_id))
        proof.check(listing, slices)
        metadata.check_not_cleaned(state.timeline, pinned, listing)
        reason = gate.unsupported_partition(state.properties, (s.partition for s in slices))
        if reason is not None:
            raise TableFeatureUnsupported(f"{self._storage.uri}: {reason}")
        schema = self._schema_at(state, pinned)
        return Snapshot(pinned, tuple(slices), schema, base_files_only)

    def _listing(self, state: _State) -> Listing | None:
        """The data files, listed after the state's timeline; None if Hudi has removed some since.
        Otherwise a file group deleted before both listings would be missed unnoticed."""
        listed, state.listing = state.listing, None
        if listed is not None:
            return listed.result()  # the timeline was the same afterwards
        listing = self._data_files()
        now = list_timeline(self._storage, state.version)
        was_moved = state.timeline.latest not in now.by_requested
        return None if was_moved or now.removals - state.timeline.removals else listing

    def _data_files(self) -> Listing:
        return list_data_files(self._storage, partitioned=bool(self.partition_columns()))


def _has_metadata_table(state: _State) -> bool:
    """Whether hudi-rs lists files from Hudi's metadata table."""
    partitions = state.properties.get("hoodie.table.metadata.partitions", "")
    return state.version >= 8 and "files" in split_columns(partitions)


def _column(schema: pa.Schema, name: str) -> pa.Field:
    index = schema.get_field_index(name)
    if index < 0:
        raise ColumnNotFound(f"Column {name} is not in the table's schema.")
    return schema.field(index)
