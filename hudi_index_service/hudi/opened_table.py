"""A table at one state of its timeline: its schema, and its snapshots.

The capability gate decides which tables are read without Spark at all, and every snapshot has to
pass the proof of completeness.
"""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import RLock

import pyarrow as pa

from hudi_index_service.arrow import nullable
from hudi_index_service.errors import (
    SnapshotChanged,
    SnapshotUnavailable,
    StorageFailed,
    TableFeatureUnsupported,
)
from hudi_index_service.hudi import gate
from hudi_index_service.hudi.avro_schema import UnknownAvroType, arrow_schema, unreadable_column
from hudi_index_service.hudi.commit_metadata import CommitMetadata
from hudi_index_service.hudi.completeness import Listing, Proof, list_data_files
from hudi_index_service.hudi.files.parquet_file import open_parquet
from hudi_index_service.hudi.hudi_rs.timeline_copy import TableOnTimeline, TimelineCopy
from hudi_index_service.hudi.properties import is_true, split_columns
from hudi_index_service.hudi.snapshot import Snapshot
from hudi_index_service.hudi.timeline import (
    WRITE_ACTIONS,
    Timeline,
    archived_completion_times,
    list_timeline,
)
from hudi_index_service.storage.store import Storage

_META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


@dataclass(frozen=True)
class TableState:
    """What a look at a table's timeline and properties shows.

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
    """A table on exactly one timeline.

    Args:
        listing: Of the data files, begun after the state's timeline was listed; None to list them
            for the first snapshot.
        earlier: The metadata that is known from an earlier state.

    Raises:
        SnapshotChanged: a commit was archived meanwhile.
        StorageFailed: a commit cannot be read.
        TableFeatureUnsupported: its schema is not known, or has an unknown type.

    Attributes:
        state: Properties and timeline.
        metadata: The metadata of the timeline's commits.
        schema: The latest schema; without columns before the first commit of a table that was
            created without one.
        refusal: As in `TableState`, with what the schema adds.
        schema_refusal: Why hudi-rs cannot read its schema; it then merges no log files.
    """

    def __init__(
        self,
        storage: Storage,
        state: TableState,
        listing: Future[Listing] | None,
        earlier: CommitMetadata | None,
    ) -> None:
        self._storage = storage
        self.state = state
        timeline = state.timeline
        self.metadata = CommitMetadata(storage, state.version, timeline, earlier)
        if not storage.is_local:
            replacing = (each for each in timeline.instants if each.action == "replacecommit")
            self.metadata.fetch(list({*timeline.instants[-1:], *replacing}))
        avro = self.metadata.latest_schema() or state.properties.get("hoodie.table.create.schema")
        self.schema_refusal: str | None = None
        if avro:
            self.schema = self._with_meta_columns(_known_schema(avro, storage.uri))
            self.schema_refusal = unreadable_column(avro)
        else:
            self.schema = self._schema_of_base_files() if timeline.instants else pa.schema([])
        self.refusal = state.refusal or gate.unsupported_partition_column(
            state.partition_columns, self.schema.names
        )
        self._listed = listing  # for the first snapshot
        self._by_hudi_rs: TableOnTimeline | None = None
        self._merging: TimelineCopy | None = None
        self._snapshots: dict[tuple[str, bool], Snapshot] = {}
        self._making = RLock()  # of a snapshot, or hudi-rs' table: by one thread, for all

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
        if not avro:
            raise TableFeatureUnsupported(f"Instant {pinned} does not hold the table's schema.")
        by_hudi_rs = gate.is_merge_on_read(self.state.properties) and self.schema_refusal is None
        reason = unreadable_column(avro) if by_hudi_rs else None
        if reason is not None:
            raise TableFeatureUnsupported(f"hudi-rs cannot read instant {pinned}: {reason}.")
        return self._with_meta_columns(_known_schema(avro, self._storage.uri))

    def _schema_of_base_files(self) -> pa.Schema:
        """The schema of the last base file that a commit names, where no commit holds one."""
        for instant in reversed(self.state.timeline.instants):
            for path in self.metadata.rows_written(instant):
                with open_parquet(self._storage, path) as file:
                    schema = file.schema_arrow
                for column in schema:
                    if pa.types.is_fixed_size_binary(column.type):
                        raise TableFeatureUnsupported(
                            f"Only base files hold the schema of {self._storage.uri}, and they do "
                            f"not tell whether column {column.name} holds vectors."
                        )
                return self._with_meta_columns(nullable(schema))
        raise TableFeatureUnsupported(f"No commit of {self._storage.uri} holds its schema.")

    def _with_meta_columns(self, schema: pa.Schema) -> pa.Schema:
        """A schema with Hudi's meta columns first, if the table's rows have them."""
        if not is_true(self.state.properties, "hoodie.populate.meta.fields", default=True):
            return schema
        columns = (each for each in schema if each.name not in _META_COLUMNS)
        return pa.schema([*((name, pa.string()) for name in _META_COLUMNS), *columns])

    @property
    def is_listing(self) -> bool:
        """Whether the files of its first snapshot are being listed; of a table with commits."""
        return self._listed is not None and bool(self.state.timeline.instants)

    def snapshot(
        self, pinned: str, base_files_only: bool, *, unchanged: bool = False
    ) -> Snapshot | None:
        """The snapshot at a completed instant, made by one thread and kept for all; None if the
        table has changed. Raises what `HudiTable.snapshot` raises.

        Args:
            unchanged: Whether nothing may have been committed or begun since: the timeline was not
                listed for this snapshot.
        """
        key = (pinned, base_files_only)
        if key not in self._snapshots:
            with self._making:
                if key not in self._snapshots:
                    snapshot = self._make_snapshot(pinned, base_files_only, unchanged)
                    if snapshot is None:
                        return None
                    self._snapshots[key] = snapshot
        return self._snapshots[key]

    def by_hudi_rs(self) -> TableOnTimeline | None:
        """hudi-rs' table on this timeline, opened for the first slice with log files; None if the
        timeline has changed meanwhile. Raises NeedsSpark, StorageFailed: it cannot be opened."""
        with self._making:
            if self._by_hudi_rs is None:
                state = self.state
                opened = TableOnTimeline.of(self._storage, state.version, state.timeline.version)
                self._by_hudi_rs = opened
            return self._by_hudi_rs

    def merging_copy(self) -> TimelineCopy:
        """Where small base files are merged; made for the first one.

        Raises:
            SnapshotChanged: the timeline has changed, and its older state cannot be read anymore.
        """
        with self._making:
            if self._merging is None:
                opened, state = self._by_hudi_rs, self.state
                self._merging = (opened and opened.copy) or TimelineCopy.of(
                    self._storage, state.version, state.timeline.version
                )
            if self._merging is None:
                raise SnapshotChanged(f"{self._storage.uri}: something was committed meanwhile.")
            return self._merging

    def _make_snapshot(
        self, pinned: str, base_files_only: bool, unchanged: bool
    ) -> Snapshot | None:
        """The snapshot; None if Hudi deleted its files or archived instants meanwhile."""
        try:
            return self._listed_snapshot(pinned, base_files_only, unchanged)
        except FileNotFoundError:  # Hudi has just merged files of its archive
            return None
        except (StorageFailed, SnapshotChanged):
            if self._timeline_now().version == self.state.timeline.version:
                raise
            return None

    def _listed_snapshot(
        self, pinned: str, base_files_only: bool, unchanged: bool
    ) -> Snapshot | None:
        state = self.state
        listing = self._listing(unchanged)
        if listing is None:
            return None
        if base_files_only:
            listing = replace(listing, log_files=())
        proof = Proof(
            state.timeline,
            state.version,
            pinned,
            self.metadata.replaced(pinned),
            partial(archived_completion_times, self._storage),
        )
        slices = proof.slices(listing)
        # hudi-rs lists the timeline itself. Opened now, it sees the one that the slices are from.
        is_merged = any(each.log_files for each in slices) and self.schema_refusal is None
        if is_merged and self.by_hudi_rs() is None:
            return None
        self.metadata.check_not_cleaned(pinned, listing)
        reason = gate.unsupported_partition(state.properties, (s.partition for s in slices))
        if reason is not None:
            raise TableFeatureUnsupported(f"{self._storage.uri}: {reason}")
        return Snapshot(pinned, tuple(slices), self.schema_at(pinned), base_files_only)

    def _listing(self, unchanged: bool) -> Listing | None:
        """The data files, listed after the state's timeline; None if Hudi has removed some since,
        or with `unchanged` done anything. Otherwise a file group deleted before both listings would
        be missed unnoticed."""
        listed, self._listed = self._listed, None
        listing = _data_files(self._storage, self.state) if listed is None else listed.result()
        timeline, now = self.state.timeline, self._timeline_now()
        if unchanged and now.version != timeline.version:
            return None
        was_moved = timeline.latest not in now.by_requested
        return None if was_moved or now.removals - timeline.removals else listing

    def _timeline_now(self) -> Timeline:
        return list_timeline(self._storage, self.state.version)


def files_listed(storage: Storage, *, partitioned: bool) -> Future[Listing]:
    """Begins to list a table's data files, by a thread."""
    thread = ThreadPoolExecutor(1, "data-files")
    listing = thread.submit(list_data_files, storage, partitioned=partitioned)
    thread.shutdown(wait=False)
    return listing


def _data_files(storage: Storage, state: TableState) -> Listing:
    return list_data_files(storage, partitioned=bool(state.partition_columns))


def _known_schema(avro: str, uri: str) -> pa.Schema:
    try:
        return arrow_schema(avro)
    except UnknownAvroType as error:
        raise TableFeatureUnsupported(
            f"The schema of {uri} has an unknown type: {error}."
        ) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise StorageFailed(f"The schema of {uri} is no Avro schema: {error!r}.") from error
