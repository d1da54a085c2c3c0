"""A table opened by hudi-rs at one state of its timeline: its schema, and its snapshots.

hudi-rs (0.5) decodes commit metadata. The capability gate decides which tables are read this way at
all, and every snapshot has to pass the proof of completeness.
"""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Self

import hudi
import pyarrow as pa

from hudi_index_service.errors import (
    SnapshotChanged,
    SnapshotUnavailable,
    StorageFailed,
    TableFeatureUnsupported,
)
from hudi_index_service.hudi import gate
from hudi_index_service.hudi.completeness import Listing, Proof, list_data_files
from hudi_index_service.hudi.hudi_rs import hudi_rs_errors_named
from hudi_index_service.hudi.hudi_rs.commit_metadata import (
    CommitMetadata,
    latest_schema,
    schema_of_instant,
)
from hudi_index_service.hudi.hudi_rs.timeline_copy import TimelineCopy
from hudi_index_service.hudi.properties import is_true, split_columns
from hudi_index_service.hudi.snapshot import Snapshot
from hudi_index_service.hudi.timeline import (
    WRITE_ACTIONS,
    Timeline,
    archived_completion_times,
    list_timeline,
)
from hudi_index_service.storage.store import Storage

_UNKNOWN_TO_HUDI_RS = "hdfs://"


@dataclass(frozen=True)
class TableState:
    """What a look at a table's timeline and properties shows, before hudi-rs opens the table.

    Attributes:
        properties_file: The bytes of hoodie.properties: a comment holds the time of writing.
        refusal: Why the table is not read here at all.
        merge_refusal: Why its log files are not merged here.
    """

    timeline: Timeline
    properties_file: bytes
    properties: Mapping[str, str]
    refusal: str | None
    merge_refusal: str | None

    @property
    def version(self) -> int:
        """The table's version."""
        return gate.table_version(self.properties)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that partition the table."""
        return split_columns(self.properties.get("hoodie.table.partition.fields", ""))


class OpenedTable:
    """hudi-rs' table on exactly one timeline. Made by `at`.

    Attributes:
        state: Properties and timeline.
        table: hudi-rs' own.
        metadata: The metadata of the timeline's commits.
        schema: The latest schema.
        refusal: As in `TableState`, with what the schema adds.
        schema_refusal: Why hudi-rs cannot read its schema; it then merges no log files.
        copy: The copy of the timeline that `table` is on, in a store that hudi-rs cannot open.
    """

    def __init__(
        self,
        storage: Storage,
        state: TableState,
        table: Any,
        copy: TimelineCopy | None,
        listing: "Future[Listing] | None",
        earlier: CommitMetadata | None,
    ) -> None:
        self._storage = storage
        self.state = state
        self.table = table
        self.copy = copy
        self.metadata = CommitMetadata(table.get_timeline(), state.timeline, earlier)
        self.schema_refusal: str | None = None
        self.schema, unreadable = latest_schema(
            table,
            storage.uri,
            populated=is_true(state.properties, "hoodie.populate.meta.fields", default=True),
            has_base_files=copy is None,
        )
        if unreadable is not None:
            self.schema_refusal = f"hudi-rs cannot read it: {unreadable}."
        self.refusal = state.refusal or gate.unsupported_partition_column(
            state.partition_columns, self.schema.names
        )
        # For the first snapshot: listed while hudi-rs opened the table, with the same timeline
        # before and afterwards.
        self._listed = listing
        self._merging: TimelineCopy | None = copy
        self._snapshots: dict[tuple[str, bool], Snapshot] = {}
        self._making = Lock()  # of a snapshot, or the copy: by one thread, for all

    @classmethod
    def at(
        cls,
        storage: Storage,
        state: TableState,
        earlier: CommitMetadata | None,
        *,
        list_files: bool = False,
    ) -> Self | None:
        """The table at a state; None if the timeline has changed meanwhile.

        Args:
            earlier: The metadata that is known from an earlier state.
            list_files: Whether a snapshot comes next, so that a remote table's files are listed
                meanwhile.

        Raises:
            NeedsSpark, StorageFailed: hudi-rs cannot open it.
            TableFeatureUnsupported: see `latest_schema`.
        """
        listing: Future[Listing] | None = None
        if list_files and not storage.is_local:
            thread = ThreadPoolExecutor(1, "data-files")
            listing = thread.submit(_data_files, storage, state)
            thread.shutdown(wait=False)
        table, copy = opened_by_hudi_rs(storage, state)
        if listing is not None:
            wait([listing])  # so that one look at the timeline serves both
        # hudi-rs lists the timeline itself; if it is unchanged now, hudi-rs saw the same one.
        now = list_timeline(storage, state.version).version
        if table is None or now != state.timeline.version:
            return None
        return cls(storage, state, table, copy, listing, earlier)

    def pinned(self, as_of: str | None) -> str | None:
        """The latest completed instant, up to `as_of`; None for a table without any. Raises what
        `HudiTable.snapshot` raises for a time."""
        timeline = self.state.timeline
        if as_of is None or timeline.start is None:
            return timeline.latest
        self._refuse_in_flight(as_of)
        pinned = max((i.requested for i in timeline.instants if i.requested <= as_of), default=None)
        if pinned is None:
            raise TableFeatureUnsupported(
                f"Instant {as_of} is before the active timeline, which starts at {timeline.start}.",
                remedy="Query a later instant.",
            )
        return pinned

    def _refuse_in_flight(self, as_of: str) -> None:
        """Refuses a time whose state a write in flight may still change, as Hudi does
        (``TimelineUtils.validateTimestampAsOf``). Table services change no rows."""
        for requested, action in sorted(self.state.timeline.pending.items()):
            if requested > as_of or action not in WRITE_ACTIONS:
                continue
            if action == "replacecommit" and self.state.version < 8:
                raise TableFeatureUnsupported(
                    f"Instant {requested} is in flight, and only its plan shows whether it is a "
                    "clustering or a write."
                )
            raise SnapshotUnavailable(
                f"{self._storage.uri} as of {as_of} is not final: the write of instant "
                f"{requested} is in flight."
            )

    def schema_at(self, pinned: str | None) -> pa.Schema:
        """The schema at a completed instant; the latest if there is none. Raises
        TableFeatureUnsupported."""
        timeline = self.state.timeline
        if pinned is None or pinned == timeline.latest:
            return self.schema
        avro = self.metadata.extra(timeline.by_requested[pinned]).get("schema")
        by_hudi_rs = gate.is_merge_on_read(self.state.properties) and self.schema_refusal is None
        return schema_of_instant(
            pinned, avro, self.schema, uri=self._storage.uri, by_hudi_rs=by_hudi_rs
        )

    def snapshot(self, pinned: str, base_files_only: bool) -> Snapshot | None:
        """The snapshot at a completed instant, made by one thread and kept for all; None if the
        table has changed. Raises what `HudiTable.snapshot` raises."""
        key = (pinned, base_files_only)
        if key not in self._snapshots:
            with self._making:
                if key not in self._snapshots:
                    snapshot = self._make_snapshot(pinned, base_files_only)
                    if snapshot is None:
                        return None
                    self._snapshots[key] = snapshot
        return self._snapshots[key]

    def merging_copy(self) -> TimelineCopy:
        """Where small base files are merged; made for the first one.

        Raises:
            SnapshotChanged: the timeline has changed, and its older state cannot be read anymore.
        """
        with self._making:
            if self._merging is None:
                self._merging = _copy(self._storage, self.state, {})
            if self._merging is None:
                raise SnapshotChanged(f"{self._storage.uri}: something was committed meanwhile.")
            return self._merging

    def _make_snapshot(self, pinned: str, base_files_only: bool) -> Snapshot | None:
        """The snapshot; None if Hudi deleted its files or archived instants meanwhile."""
        try:
            return self._listed_snapshot(pinned, base_files_only)
        except FileNotFoundError:  # Hudi has just merged files of its archive
            return None
        except (StorageFailed, SnapshotChanged):
            if self._timeline_now().version == self.state.timeline.version:
                raise
            return None

    def _listed_snapshot(self, pinned: str, base_files_only: bool) -> Snapshot | None:
        state = self.state
        listing = self._listing()
        if listing is None:
            return None
        if base_files_only:
            listing = listing.without_log_files()
        proof = Proof(
            state.timeline,
            state.version,
            pinned,
            self.metadata.replaced(pinned),
            partial(archived_completion_times, self._storage),
        )
        slices = proof.slices(listing)
        self.metadata.check_not_cleaned(pinned, listing)
        reason = gate.unsupported_partition(state.properties, (s.partition for s in slices))
        if reason is not None:
            raise TableFeatureUnsupported(f"{self._storage.uri}: {reason}")
        return Snapshot(pinned, tuple(slices), self.schema_at(pinned), base_files_only)

    def _listing(self) -> Listing | None:
        """The data files, listed after the state's timeline; None if Hudi has removed some since.
        Otherwise a file group deleted before both listings would be missed unnoticed."""
        listed, self._listed = self._listed, None
        if listed is not None:
            return listed.result()
        listing = _data_files(self._storage, self.state)
        timeline, now = self.state.timeline, self._timeline_now()
        was_moved = timeline.latest not in now.by_requested
        return None if was_moved or now.removals - timeline.removals else listing

    def _timeline_now(self) -> Timeline:
        return list_timeline(self._storage, self.state.version)


def _data_files(storage: Storage, state: TableState) -> Listing:
    return list_data_files(storage, partitioned=bool(state.partition_columns))


def opened_by_hudi_rs(storage: Storage, state: TableState) -> tuple[Any, TimelineCopy | None]:
    """hudi-rs' table, and the copy that it is on, where hudi-rs cannot open the store. None instead
    of both if the timeline has changed while it was copied."""
    options = {}
    merges = gate.is_merge_on_read(state.properties)
    if not merges or state.refusal is not None or state.merge_refusal is not None:
        # The gate has decided. hudi-rs would also refuse a table for how it merges log files
        # if it has none; the schema and the instants of a refused table are still needed.
        options["hoodie.internal.skip.config.validation"] = "true"
    if storage.uri.startswith(_UNKNOWN_TO_HUDI_RS):
        copy = _copy(storage, state, options)
        return (None if copy is None else copy.table), copy
    with hudi_rs_errors_named(f"{storage.uri} cannot be opened"):
        builder = hudi.HudiTableBuilder(
            storage.uri,
            hudi_options=options,
            storage_options={key: str(value) for key, value in storage.options.items()},
        )
        return builder.build(), None


def _copy(storage: Storage, state: TableState, options: Mapping[str, str]) -> TimelineCopy | None:
    try:
        return TimelineCopy.of(storage, state.version, state.timeline.version, options)
    except FileNotFoundError:  # an instant was archived meanwhile
        return None
