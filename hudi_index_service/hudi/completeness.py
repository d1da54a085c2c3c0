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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from hudi_index_service.errors import NeedsSpark, TableFeatureUnsupported
from hudi_index_service.hudi.properties import HOODIE_FOLDER
from hudi_index_service.hudi.snapshot import (
    OTHER_FORMATS,
    BaseFile,
    FileGroup,
    FileSlice,
    ListedLogFile,
    OtherFile,
    parse_path,
)
from hudi_index_service.hudi.timeline import Timeline
from hudi_index_service.storage.store import Storage, StoredFile


@dataclass(frozen=True, slots=True)
class Listing:
    """The files under the table's partitions.

    Attributes:
        base_files, log_files: All of them, visible in a snapshot or not.
        partitions: The folders with Hudi's partition marker.
        unknown: Files that look like data but have no Hudi file name.
    """

    base_files: Sequence[BaseFile]
    log_files: Sequence[ListedLogFile]
    partitions: frozenset[str]
    unknown: Sequence[str]


def list_data_files(storage: Storage, *, partitioned: bool) -> Listing:
    """Lists all files below the table except in ``.hoodie``: a local table folder by folder, a
    remote one with one request per thousand files, and one more if it is partitioned."""
    return classify(storage.files_outside(HOODIE_FOLDER, flat=not partitioned))


def classify(stored: Iterable[StoredFile]) -> Listing:
    """Classifies listed files by their names."""
    base_files: list[BaseFile] = []
    log_files: list[ListedLogFile] = []
    partitions: set[str] = set()
    unknown: list[str] = []
    for file in stored:
        match parse_path(file.path, file.size):
            case BaseFile() as base_file:
                base_files.append(base_file)
            case ListedLogFile() as log_file:
                log_files.append(log_file)
            case OtherFile.PARTITION_MARKER:
                partitions.add(file.path.rpartition("/")[0])
            case OtherFile.UNKNOWN_DATA:
                unknown.append(file.path)
    return Listing(base_files, log_files, frozenset(partitions), sorted(unknown))


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
        base_files: defaultdict[FileGroup, list[BaseFile]] = defaultdict(list)
        for base_file in filter(self._shows, listing.base_files):
            base_files[base_file.group].append(base_file)
        log_files: defaultdict[FileGroup, list[ListedLogFile]] = defaultdict(list)
        for log_file in listing.log_files:
            if not log_file.change_data and self._shows(log_file):
                log_files[log_file.group].append(log_file)
        slices = [
            self._slice(group, base_files[group], log_files[group])
            for group in sorted({*base_files, *log_files})
        ]
        for each in slices:
            if each.partition not in listing.partitions:
                raise TableFeatureUnsupported(
                    f"{each.name} is in a folder without Hudi's partition marker."
                )
        return slices

    def _slice(
        self,
        group: FileGroup,
        base_files: Sequence[BaseFile],
        log_files: Sequence[ListedLogFile],
    ) -> FileSlice:
        if not base_files:
            raise NeedsSpark(f"File group {'/'.join(group)} has log files and no base file yet.")
        instant = max(file.instant for file in base_files)
        base, *others = sorted(
            (file for file in base_files if file.instant == instant), key=lambda file: file.path
        )
        if others:
            raise NeedsSpark(f"{others[0].path} and {base.path} are of the same instant.")
        # The order of Hudi's `HoodieLogFile.LogFileComparator`: instant, version, write token.
        logs = sorted(
            (file.instant, file.version, file.path)
            for file in log_files
            if not self._is_older(file, instant)
        )
        return FileSlice(*group, base, tuple(path for _, _, path in logs))

    def _shows(self, file: BaseFile | ListedLogFile) -> bool:
        """Whether the file is committed by the pinned instant and its file group not replaced. Its
        rows or changes may still be superseded by later files of the group."""
        if file.instant > self.pinned or self._is_uncommitted(file):
            return False
        return file.instant >= self.replaced.get(file.group, "")

    def _is_uncommitted(self, file: BaseFile | ListedLogFile) -> bool:
        if self.timeline.is_committed(file.instant):
            return False
        # On version 6, log files written during a pending compaction have its instant in their
        # names; their own delta commits may be complete.
        on_pending_compaction = (
            self.table_version < 8
            and isinstance(file, ListedLogFile)
            and self.timeline.pending.get(file.instant) in ("compaction", "logcompaction")
        )
        return not on_pending_compaction

    def _is_older(self, file: ListedLogFile, base_instant: str) -> bool:
        """Whether the base file of that instant supersedes a log file of its group."""
        if self.table_version < 8:
            return file.instant < base_instant
        known = self.timeline.by_requested.get(file.instant)
        completed = known.completed if known is not None else self.archived().get(file.instant)
        if completed is None:
            raise NeedsSpark(f"No timeline shows when the instant of {file.path} was completed.")
        return completed < base_instant
