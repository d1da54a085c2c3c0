"""The proof that a snapshot's slices cover the whole table (design, rule 2).

Every data and log file listed must be accounted for. Otherwise the snapshot is refused, because a
query could silently miss the file's rows. The proof follows Hudi's rules:

- A file whose instant is neither completed nor older than the active timeline was never
  committed: it belongs to a write in flight, or a rollback could not delete it.
- A base file older than the one of its file group's slice is an older version. So is a log file
  completed before that base file's instant began; one completed later belongs to the slice.
- A file group named in the ``partitionToReplaceFileIds`` of a completed replace commit is replaced
  from then on. It is identified by partition *and* file id: with the bucket index every partition
  has a file group of the same id.
- With ``as_of``, files of later instants do not exist yet.

On table versions 8 and newer a log file's name holds the instant of the delta commit that wrote it.
On version 6 it holds the base file's instant instead; only the file's blocks show whether the delta
commit completed, and the reader checks that.

Slices come from names and timeline alone, as in Hudi without a metadata table. hudi-rs would list
every partition of a remote store twice in sequence; it fails on a metadata table that two releases
have written, which an upgraded table keeps until Hudi next compacts it; and it loses log files of
file groups without a base file, or of a pending compaction.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from hudi_index_service.errors import NeedsSpark, TableFeatureUnsupported
from hudi_index_service.hudi.properties import HOODIE_FOLDER
from hudi_index_service.hudi.snapshot import (
    OTHER_FORMATS,
    BaseFile,
    BaseFileName,
    FileSlice,
    LogFileName,
    OtherFile,
    parse_file_name,
)
from hudi_index_service.hudi.timeline import Timeline
from hudi_index_service.storage.store import Storage, StoredFile

FileGroup = tuple[str, str]
"""Partition and file id."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A listed base or log file: path, partition, parsed name and length in bytes."""

    path: str
    partition: str
    name: BaseFileName | LogFileName
    size: int

    @property
    def group(self) -> FileGroup:
        """The file group it belongs to."""
        return self.partition, self.name.file_id

    def as_base_file(self) -> BaseFile:
        """This file as a base file."""
        return BaseFile(self.path, self.partition, self.name.file_id, self.name.instant, self.size)


@dataclass(frozen=True, slots=True)
class Listing:
    """The files under the table's partitions.

    Attributes:
        files: Base and log files by path.
        partitions: The folders with Hudi's partition marker.
        unknown: Files that look like data but have no Hudi file name.
    """

    files: Mapping[str, ListedFile]
    partitions: frozenset[str] = field(default=frozenset())
    unknown: tuple[str, ...] = ()

    def without_log_files(self) -> "Listing":
        """The same listing without its log files."""
        files = {path: f for path, f in self.files.items() if isinstance(f.name, BaseFileName)}
        return Listing(files, self.partitions, self.unknown)

    def base_files(self) -> tuple[BaseFile, ...]:
        """All listed base files, visible in a snapshot or not."""
        return tuple(
            file.as_base_file()
            for file in self.files.values()
            if isinstance(file.name, BaseFileName)
        )


def list_data_files(storage: Storage, *, partitioned: bool) -> Listing:
    """Lists all files below the table except in ``.hoodie``: a local table folder by folder, a
    remote one with one request per thousand files, and one more if it is partitioned."""
    return classify(storage.files_outside(HOODIE_FOLDER, flat=not partitioned))


def classify(stored: Iterable[StoredFile]) -> Listing:
    """Classifies listed files by their names."""
    files: dict[str, ListedFile] = {}
    partitions: set[str] = set()
    unknown: list[str] = []
    for file in stored:
        partition, _, name = file.path.rpartition("/")
        match parse_file_name(name):
            case BaseFileName() | LogFileName() as parsed:
                files[file.path] = ListedFile(file.path, partition, parsed, file.size)
            case OtherFile.PARTITION_MARKER:
                partitions.add(partition)
            case OtherFile.UNKNOWN_DATA:
                unknown.append(file.path)
    return Listing(files, frozenset(partitions), tuple(sorted(unknown)))


@dataclass(frozen=True, slots=True)
class Proof:
    """Which files count at an instant, and why the others do not.

    Attributes:
        timeline: The active timeline.
        table_version: The table's version, which defines the instant in a log file's name.
        pinned: Requested time of the latest instant included.
        replaced: File groups that completed commits up to `pinned` replaced → requested time of the
            (last) replace commit.
        archived: Returns the completion times of archived instants by requested time; called at
            most once, in the rare case that a log file depends on one.
    """

    timeline: Timeline
    table_version: int
    pinned: str
    replaced: Mapping[FileGroup, str]
    archived: Callable[[], Mapping[str, str]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "archived", cache(self.archived))

    def slices(self, listing: Listing) -> list[FileSlice]:
        """The latest slice of each file group, by partition and file id. Every listed file is in a
        slice, or older than its group's slice, or not part of the table at the pinned instant.

        Log files are in the order in which they were begun.

        Raises:
            TableFeatureUnsupported: a file is not accounted for; its name is in the message.
        """
        for path in listing.unknown:
            if path.endswith(OTHER_FORMATS):
                raise TableFeatureUnsupported(f"{path} is a data file, but not a Parquet file.")
            raise TableFeatureUnsupported(f"{path} looks like data, but has no Hudi file name.")
        groups: dict[FileGroup, list[ListedFile]] = defaultdict(list)
        for file in listing.files.values():
            if self._shows(file):
                groups[file.group].append(file)
        slices = [self._slice(group, files) for group, files in sorted(groups.items())]
        for each in slices:
            if each.partition not in listing.partitions:
                raise TableFeatureUnsupported(
                    f"{each.name} is in a folder without Hudi's partition marker."
                )
        return slices

    def _slice(self, group: FileGroup, files: list[ListedFile]) -> FileSlice:
        base_files = [file for file in files if isinstance(file.name, BaseFileName)]
        if not base_files:
            raise NeedsSpark(f"File group {'/'.join(group)} has log files and no base file yet.")
        instant = max(file.name.instant for file in base_files)
        base, *others = sorted(
            (file for file in base_files if file.name.instant == instant),
            key=lambda file: file.path,
        )
        if others:
            raise NeedsSpark(f"{others[0].path} and {base.path} are of the same instant.")
        # The order of Hudi's `HoodieLogFile.LogFileComparator`: instant, version, write token.
        logs = sorted(
            (file.name.instant, file.name.version, file.path)
            for file in files
            if isinstance(file.name, LogFileName) and not self._is_older(file, file.name, instant)
        )
        return FileSlice(*group, base.as_base_file(), tuple(path for _, _, path in logs))

    def _shows(self, file: ListedFile) -> bool:
        """Whether the file is committed by the pinned instant and its file group not replaced. Its
        rows or changes may still be superseded by later files of the group."""
        name = file.name
        if isinstance(name, LogFileName) and name.change_data:
            return False
        if name.instant > self.pinned or self._is_uncommitted(name):
            return False
        return name.instant >= self.replaced.get(file.group, "")

    def _is_uncommitted(self, name: BaseFileName | LogFileName) -> bool:
        if self.timeline.is_committed(name.instant):
            return False
        # On version 6, log files written during a pending compaction have its instant in their
        # names; their own delta commits may be complete.
        on_pending_compaction = (
            self.table_version < 8
            and isinstance(name, LogFileName)
            and self.timeline.pending.get(name.instant) in ("compaction", "logcompaction")
        )
        return not on_pending_compaction

    def _is_older(self, file: ListedFile, name: LogFileName, base_instant: str) -> bool:
        """Whether the base file of that instant supersedes a log file of its group."""
        if self.table_version < 8:
            return name.instant < base_instant
        known = self.timeline.by_requested.get(name.instant)
        completed = known.completed if known is not None else self.archived().get(name.instant)
        if completed is None:
            raise NeedsSpark(f"No timeline shows when the instant of {file.path} was completed.")
        return completed < base_instant
