"""What a Hudi table consists of: instants, files with their names, file slices, a snapshot of them.

Sources on names: Hudi's `FSUtils` (``BASE_FILE_PATTERN``, ``LOG_FILE_PATTERN``) and the file layout
section of the Hudi technical specification.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

# <fileId>_<writeToken>_<instant>.parquet
_BASE_FILE = re.compile(
    r"(?P<file_id>[a-zA-Z0-9-]+)_(?P<token>[a-zA-Z0-9-]+)_(?P<instant>[0-9]+)\.parquet"
)
# .<fileId>_<instant>.log.<version>[_<writeToken>][.cdc]
_LOG_FILE = re.compile(
    r"\.(?P<file_id>[^._]+)_(?P<instant>[^._]+)\.log\.(?P<version>[0-9]+)"
    r"(?:_(?P<token>[0-9]+-[0-9]+-[0-9]+))?(?P<cdc>\.cdc)?"
)
# .hoodie_partition_metadata, with a suffix if it is stored in the base file format.
_PARTITION_MARKER = ".hoodie_partition_metadata"

FileGroup = tuple[str, str]
"""Partition and file id."""

OTHER_FORMATS = (".orc", ".hfile", ".lance", ".vortex")
"""Suffixes of base files that are not Parquet files."""

_DATA_SUFFIXES = (".parquet", *OTHER_FORMATS)


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

    @property
    def file_name(self) -> str:
        """The name of its file in the timeline's folder."""
        times = self.requested if self.completed is None else f"{self.requested}_{self.completed}"
        return f"{times}.{self.action}"


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

    @property
    def group(self) -> FileGroup:
        """The file group it belongs to."""
        return self.partition, self.file_id


@dataclass(frozen=True, slots=True)
class ListedLogFile:
    """A log file, as far as its path says what it is.

    Attributes:
        path, partition, file_id: As of a base file.
        instant: On table versions 8 and newer the requested time of the delta commit that wrote
            it; on version 6 the instant of the base file below it.
        version: Orders the log files of an instant.
        change_data: Whether it holds change records for CDC queries (``.cdc``). The rows themselves
            are in the base or log file of the same change; snapshots never read a ``.cdc`` file.
    """

    path: str
    partition: str
    file_id: str
    instant: str
    version: int
    change_data: bool

    @property
    def group(self) -> FileGroup:
        """The file group it belongs to."""
        return self.partition, self.file_id


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file and the log files above it, in the order in which they were begun."""

    partition: str
    file_id: str
    base_file: BaseFile
    log_files: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The slice's name in reports: its base file's path."""
        return self.base_file.path


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
        return tuple(s.base_file for s in self.slices)


class OtherFile(Enum):
    """A file of a partition that is neither a base file nor a log file."""

    PARTITION_MARKER = "marks its folder as a partition"
    UNKNOWN_DATA = "looks like data, but has no Hudi file name"


def parse_path(path: str, size: int = 0) -> BaseFile | ListedLogFile | OtherFile | None:
    """The file at a path, of a length in bytes; None for files that Hudi's readers ignore, too.

    Ignored are Hadoop's checksums (``.….crc``), markers like ``_SUCCESS`` and all other files that
    have neither the suffix of a data file nor the form of a log file name.
    """
    partition, _, name = path.rpartition("/")
    if name.endswith(".crc"):
        return None
    if name.startswith(_PARTITION_MARKER):
        return OtherFile.PARTITION_MARKER
    if match := _BASE_FILE.fullmatch(name):
        return BaseFile(path, partition, match["file_id"], match["instant"], size)
    if match := _LOG_FILE.fullmatch(name):
        version, is_cdc = int(match["version"]), match["cdc"] is not None
        return ListedLogFile(path, partition, match["file_id"], match["instant"], version, is_cdc)
    if name.endswith(_DATA_SUFFIXES) or (name.startswith(".") and ".log." in name):
        return OtherFile.UNKNOWN_DATA
    return None
