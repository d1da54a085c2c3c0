"""The proof that a snapshot's slices are all of the table (design, rule 2).

The slices come from hudi-rs, the files from a listing of our own. Every data and log file listed
has to be accounted for; one that is not may hold rows that a query would miss without a word, so
the snapshot is refused then. Hudi's rules, which the proof follows:

- A file whose instant is neither completed nor older than the active timeline was never
  committed: a write in flight, or what a rollback could not delete.
- A base file older than the one of its file group's slice is an older version. So is a log file
  that was complete before that base file's instant began; one that was complete later belongs to
  the slice.
- A file group named in the ``partitionToReplaceFileIds`` of a completed replace commit is gone
  from then on, under its partition *and* file id: with the bucket index every partition has a
  file group of the same id.
- With ``as_of``, a file of a later instant is not there yet.

On table versions 8 and newer a log file's name tells the delta commit that wrote it. On version 6
it tells the base file's instant instead; whether the delta commit completed is known by the blocks
inside alone, and the reader checks it there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from hudi_index_service.errors import NeedsSpark, TableFeatureUnsupported
from hudi_index_service.storage import Storage, StoredFile
from hudi_index_service.table.file_names import (
    BaseFileName,
    LogFileName,
    PartitionMarker,
    UnknownDataFile,
    parse_file_name,
)
from hudi_index_service.table.properties import HOODIE_FOLDER
from hudi_index_service.table.protocol import BaseFile, FileSlice
from hudi_index_service.table.timeline import Timeline

FileGroup = tuple[str, str]
"""Partition and file id."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A listed base or log file: where it lies, what its name says, its length in bytes."""

    path: str
    partition: str
    name: BaseFileName | LogFileName
    size: int

    @property
    def group(self) -> FileGroup:
        """The file group it belongs to."""
        return self.partition, self.name.file_id

    def as_base_file(self) -> BaseFile:
        """Itself, being a base file."""
        return BaseFile(self.path, self.partition, self.name.file_id, self.name.instant, self.size)


@dataclass(frozen=True, slots=True)
class Listing:
    """The files under the table's partitions.

    Attributes:
        files: Base and log files by path.
        partitions: The folders that carry Hudi's partition marker.
        unknown: Files that look like data under a name that is none of Hudi's.
    """

    files: Mapping[str, DataFile]
    partitions: frozenset[str] = field(default=frozenset())
    unknown: tuple[str, ...] = ()

    def without_log_files(self) -> "Listing":
        """The same listing, as if there were no log files."""
        files = {path: f for path, f in self.files.items() if isinstance(f.name, BaseFileName)}
        return Listing(files, self.partitions, self.unknown)

    def base_files(self) -> tuple[BaseFile, ...]:
        """All base files that are there, whether a snapshot shows them or not."""
        return tuple(
            file.as_base_file()
            for file in self.files.values()
            if isinstance(file.name, BaseFileName)
        )


def list_data_files(storage: Storage) -> Listing:
    """Lists everything below the table except ``.hoodie``: of a local table folder by folder, of a
    remote one by a request a thousand files, and one more."""
    return classify(storage.files_outside(HOODIE_FOLDER))


def classify(stored: Iterable[StoredFile]) -> Listing:
    """Sorts listed files by what their names say."""
    files: dict[str, DataFile] = {}
    partitions: set[str] = set()
    unknown: list[str] = []
    for file in stored:
        partition, _, name = file.path.rpartition("/")
        match parse_file_name(name):
            case BaseFileName() | LogFileName() as parsed:
                files[file.path] = DataFile(file.path, partition, parsed, file.size)
            case PartitionMarker():
                partitions.add(partition)
            case UnknownDataFile():
                unknown.append(file.path)
    return Listing(files, frozenset(partitions), tuple(sorted(unknown)))


@dataclass(frozen=True, slots=True)
class Proof:
    """What the proof is made from, besides the slices.

    Attributes:
        timeline: The active timeline that the slices were made from.
        table_version: Decides what the instant in a log file's name means.
        pinned: Requested time of the latest instant included.
        replaced: File groups that completed replace commits up to `pinned` took away → requested
            time of the (last) replace commit.
        archived: Gives the completion times of archived instants by requested time; asked once
            at most, when a log file turns on one, which is seldom.
    """

    timeline: Timeline
    table_version: int
    pinned: str
    replaced: Mapping[FileGroup, str]
    archived: Callable[[], Mapping[str, str]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "archived", cache(self.archived))

    def check(self, listing: Listing, slices: Sequence[FileSlice]) -> None:
        """Raises:
        TableFeatureUnsupported: a file is not accounted for; its name is in the message.
        """
        if listing.unknown:
            raise TableFeatureUnsupported(
                f"{listing.unknown[0]} looks like data, but its name is none that Hudi gives."
            )
        by_group = {(s.partition, s.file_id): s for s in slices}
        in_slices: set[str] = set()
        for file_slice in slices:
            self._check_slice(file_slice, listing)
            in_slices.update(file_slice.log_files)
            if file_slice.base_file is not None:
                in_slices.add(file_slice.base_file.path)
        for file in listing.files.values():
            if file.path not in in_slices and not self._accounted(file, by_group.get(file.group)):
                raise NeedsSpark(
                    f"{file.path} is part of the table at instant {self.pinned}, but no file "
                    f"slice {'of its file group ' if file.group in by_group else ''}holds it."
                )

    def _check_slice(self, file_slice: FileSlice, listing: Listing) -> None:
        if file_slice.base_file is None:
            raise NeedsSpark(f"File group {file_slice.name} has log files and no base file yet.")
        if file_slice.partition not in listing.partitions:
            raise TableFeatureUnsupported(
                f"{file_slice.name} lies in a folder without Hudi's partition marker."
            )
        base_instant = file_slice.base_file.instant
        if base_instant > self.pinned or not self.timeline.is_committed(base_instant):
            raise TableFeatureUnsupported(f"{file_slice.name} is not of instant {self.pinned}.")
        if base_instant < self.replaced.get((file_slice.partition, file_slice.file_id), ""):
            raise TableFeatureUnsupported(f"{file_slice.name} was replaced.")
        for path in file_slice.log_files:
            name = listing.files[path].name
            if name.instant < base_instant and self.is_older(name, base_instant):
                raise TableFeatureUnsupported(f"{path} is older than {file_slice.name}.")

    def _accounted(self, file: DataFile, file_slice: FileSlice | None) -> bool:
        if not self.shows(file):
            return True
        if file_slice is None or file_slice.base_file is None:
            return False
        return self.is_older(file.name, file_slice.base_file.instant)

    def shows(self, file: DataFile) -> bool:
        """Whether the file holds rows, or changes of rows, of the pinned instant, be they
        superseded by its file group's later files: committed by then, and not replaced."""
        name = file.name
        if isinstance(name, LogFileName) and name.change_data:
            return False
        if name.instant > self.pinned or self._is_uncommitted(name):
            return False
        return name.instant >= self.replaced.get(file.group, "")

    def _is_uncommitted(self, name: BaseFileName | LogFileName) -> bool:
        if self.timeline.is_committed(name.instant):
            return False
        # On version 6, log files written while a compaction is pending bear its instant; their
        # own delta commits may be complete.
        on_pending_compaction = (
            self.table_version < 8
            and isinstance(name, LogFileName)
            and self.timeline.pending.get(name.instant) in ("compaction", "logcompaction")
        )
        return not on_pending_compaction

    def is_older(self, name: BaseFileName | LogFileName, base_instant: str) -> bool:
        """Whether a file of the group is superseded by the base file of that instant."""
        if isinstance(name, BaseFileName) or self.table_version < 8:
            return name.instant < base_instant
        if name.instant in self.timeline.by_requested:
            completed = self.timeline.by_requested[name.instant].completed
        else:
            completed = self.archived().get(name.instant)
        return completed is not None and completed < base_instant
