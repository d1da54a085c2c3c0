"""The read-only interface to a Hudi table.

A `HudiTable` hides the library that reads Hudi's metadata (hudi-rs today) from its callers.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import pyarrow as pa

from hudi_index_service.hudi.partition_path import PartitionPaths
from hudi_index_service.storage.store import Storage


class ServiceKind(Enum):
    """The table service, if any, that wrote a completed instant."""

    CLUSTERING = "CLUSTER"
    COMPACTION = "COMPACT"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class Instant:
    """A completed instant of the active timeline.

    Attributes:
        requested: The instant's requested time, as in base file names (``yyyyMMddHHmmssSSS``).
        action: ``commit``, ``deltacommit``, ``replacecommit``, …
        completed: Completion time of the same form on table versions 8 and newer; None on
            version 6, whose timeline does not record it in names.
    """

    requested: str
    action: str
    completed: str | None = None


@dataclass(frozen=True, slots=True)
class BaseFile:
    """An immutable Parquet file of the table.

    Attributes:
        path: Relative to the table's base path; this is its identity.
        partition: The partition's path relative to the table, "" when not partitioned.
        file_id: Unique only within its partition.
        instant: Requested time of the instant that wrote it.
        size: Length in bytes.
    """

    path: str
    partition: str
    file_id: str
    instant: str
    size: int


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file and the log files above it; either part may be missing, never both."""

    partition: str
    file_id: str
    base_file: BaseFile | None
    log_files: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The slice's name in reports: its base file's path, or partition and file id."""
        return self.base_file.path if self.base_file else f"{self.partition}/{self.file_id} (log)"


@dataclass(frozen=True, slots=True)
class TouchedKeys:
    """The record keys in a slice's log files.

    Attributes:
        keys: UTF-8; a key may occur several times.
        rows: The row of the slice's base file that has each key, as the writer found it; None if
            not known of all.
        log_files: The log files by path, so that merging them need not read them again.
    """

    keys: Sequence[bytes]
    rows: Sequence[int] | None
    log_files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All file slices visible at one instant, proved complete.

    Attributes:
        instant: The latest completed instant included; "" for a table without commits.
        slices: Sorted by partition, then file id.
        schema: The table's schema at that instant, Hudi's meta columns first if populated.
        base_files_only: Whether log files were left out.
    """

    instant: str
    slices: tuple[FileSlice, ...] = field(default=())
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    base_files_only: bool = False

    def base_files(self) -> tuple[BaseFile, ...]:
        """The snapshot's base files, in slice order."""
        return tuple(s.base_file for s in self.slices if s.base_file is not None)


class HudiTable(Protocol):
    """A Hudi table opened for reading.

    Implementations raise `TableFeatureUnsupported` from `snapshot` if the capability gate or the
    completeness proof refuses the table; `schema` and `completed_instants` work even then.
    """

    @property
    def storage(self) -> Storage:
        """The files below the table's base path."""

    @property
    def name(self) -> str:
        """The table's name from hoodie.properties."""

    def schema(self, as_of: str | None = None, *, fresh: bool = True) -> pa.Schema:
        """The table's schema, Hudi's ``_hoodie_*`` meta columns first if populated.

        Args:
            as_of: See `snapshot`; None for the latest.
            fresh: Whether to list the timeline; otherwise the schema may be that of the last
                listing, and a snapshot is expected to be wanted next.

        Raises:
            TableFeatureUnsupported, SnapshotUnavailable: see `snapshot`.
        """

    def record_key_columns(self) -> tuple[str, ...]:
        """The columns of the record key; empty if Hudi generates the keys."""

    def partition_columns(self) -> tuple[str, ...]:
        """The columns that partition the table; empty when it is not partitioned."""

    def partition_paths(self) -> PartitionPaths:
        """The format of partition paths, as of the last listing of the timeline."""

    def unsupported_feature(self) -> str | None:
        """Why the capability gate refuses the table, in one sentence; None if it does not."""

    def index_reading_enabled(self) -> bool:
        """Whether the table's kill switch, ``hoodie.index.read.enabled`` in hoodie.properties,
        leaves reading by index on, as of the last listing of the timeline. A change takes effect
        with the next commit, or when the table is opened again."""

    def completed_instants(self) -> tuple[Instant, ...]:
        """The completed commits, delta commits and replace commits of the active timeline, by
        requested time."""

    def listed_by_caller(self, instants: Set[str]) -> AbstractContextManager[None]:
        """Spares this thread's listings of the timeline within the context, if the last one had
        just these completed instants.

        Args:
            instants: The requested times of `completed_instants`, as the caller has just seen them.
        """

    def service_kind(self, instant: Instant) -> ServiceKind:
        """Which table service wrote the instant, by its commit metadata."""

    def extra_metadata(self, instant: Instant) -> Mapping[str, str]:
        """The metadata that the instant's writer added: the schema, checkpoints, and its options
        under ``hoodie.datasource.write.commitmeta.key.prefix``.

        Raises:
            SnapshotChanged: the instant is not (or no longer) in the active timeline.
        """

    def has_had(self, requested: str) -> bool:
        """Whether the instant ever completed: it is on the active timeline or archived."""

    def rows_written(self, instant: Instant) -> Mapping[str, int]:
        """Path of each base file that the instant wrote → its rows, from its commit metadata; empty
        if that cannot be read, or no longer. For display only: the counts are not checked."""

    def timeline_version(self) -> str:
        """A digest of the timeline's listing: equal while nothing has been committed."""

    def snapshot(self, as_of: str | None = None, *, base_files_only: bool = False) -> Snapshot:
        """The slices at the latest completed instant, or at `as_of`.

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

    def read_slice(
        self,
        file_slice: FileSlice,
        columns: Sequence[str],
        *,
        as_of: str | None = None,
        schema: pa.Schema | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The merged rows of a slice with log files, with `columns` in that order and in the
        table's types.

        Args:
            as_of: Requested time of the last instant whose log files are merged; None for the
                latest.
            schema: The table's schema at that instant; None for the latest.

        Raises:
            NeedsSpark: the slice cannot be merged here.
        """

    def touched_keys(self, file_slice: FileSlice) -> TouchedKeys:
        """Every record key in the slice's log files, also of blocks that do not count.

        Raises:
            LogKeysUnknown: they cannot be told from the files.
            NeedsSpark: a log file is damaged.
        """

    def merged_until(self, instant: str) -> str:
        """What the merged rows of a slice depend on besides its files: on version 6, where a log
        file may hold blocks of several commits, the snapshot's instant; else nothing ("")."""

    def merged_columns(self, stored: pa.Schema, columns: Sequence[str]) -> list[str]:
        """The columns of a base file that `read_touched` needs for some columns, without the record
        key.

        Args:
            stored: The base file's schema.
        """

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
