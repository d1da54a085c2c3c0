"""What a Hudi table consists of: instants, base files, file slices, and a snapshot of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa


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
