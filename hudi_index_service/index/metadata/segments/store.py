"""The segments of a table: written beside entries, merged, and cleaned.

    .hoodie/.index/_service/segments/<index type>/<digest>.segment

A process that builds entries writes a segment of some base files at a time; when a build ends,
small segments are merged. A segment is named by its content and created by put-if-absent. A merged
one is created before those that it replaces are deleted. So builders need no lock, and no fact is
lost.

Least and greatest values, and keys, are data of the table. Removing an entry includes removing its
facts (`forget`). A merge may have read these facts before: after it has published, it checks that
the segments it read still exist, and otherwise deletes its own.
"""

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate

from hudi_index_service.errors import EntryInvalid, PermissionDenied, StorageFailed
from hudi_index_service.index.metadata.documents import SERVICE_FOLDER, UNREADABLE, NewerFormat
from hudi_index_service.index.metadata.segments.segment import (
    MOST_PAIRS,
    SEGMENT_SUFFIX,
    ColumnKey,
    Facts,
    merged,
)
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile, segment_bytes
from hudi_index_service.storage.store import Storage, StoredFile

log = logging.getLogger(__name__)

SEGMENTS_FOLDER = f"{SERVICE_FOLDER}/segments"

MOST_FILES = 2**16
"""Base files of a segment."""

_FEWEST = 4
"""Fewer segments are not merged with each other: to look into each costs little."""

_GROWTH = 4
"""A segment is merged with smaller ones if it has at most so many times their files."""

_READ_AT_ONCE = 32
_ROUNDS = 5  # of forgetting, while mergers publish what they read before


class SegmentStore:
    """The segments of one index type's entries."""

    def __init__(self, storage: Storage, index_type: str) -> None:
        self._storage = storage
        self._index_type = index_type
        self._folder = f"{SEGMENTS_FOLDER}/{index_type}"

    def listed(self) -> list[StoredFile]:
        """The files of all segments, by name."""
        files = self._storage.files(self._folder)
        return sorted((each for each in files if each.path.endswith(SEGMENT_SUFFIX)), key=_path)

    def open(self, file: StoredFile) -> SegmentFile:
        """Opens a listed segment. Raises what `SegmentFile` raises."""
        return SegmentFile(self._storage, file)

    def opened(self, files: Sequence[StoredFile]) -> list[SegmentFile | None]:
        """The listed segments, in order; None for those that cannot be read."""
        if len(files) < 2:
            return list(map(self._opened, files))
        with ThreadPoolExecutor(min(len(files), _READ_AT_ONCE), "segment") as threads:
            return list(threads.map(self._opened, files))

    def _opened(self, file: StoredFile) -> SegmentFile | None:
        try:
            return self.open(file)
        except FileNotFoundError:  # merged meanwhile
            return None
        except UNREADABLE as error:
            log.warning("Base files are not excluded by %s: %s", file.path, error)
            return None

    def add(self, facts: Facts, replaces: Iterable[str] = ()) -> str | None:
        """Stores a segment, and returns its path; None if there is one with the same content.

        Raises:
            PermissionDenied, StorageFailed: it cannot be written.
        """
        content = segment_bytes(self._index_type, facts, replaces)
        path = f"{self._folder}/{hashlib.sha256(content).hexdigest()[:32]}{SEGMENT_SUFFIX}"
        try:
            self._storage.create(path, content)
        except FileExistsError:
            return None
        return path

    def readable(self) -> list[SegmentFile]:
        """All segments that can be read."""
        return [each for each in self.opened(self.listed()) if each is not None]

    def merge(self) -> list[SegmentFile]:
        """Merges small segments, so that their number grows with the logarithm of the table's.
        Returns all that could be read before.

        Raises:
            PermissionDenied, StorageFailed: a segment cannot be read, written or deleted.
        """
        segments = self.readable()
        small = [each for each in segments if not _is_full(each)]
        for group in _groups(sorted(small, key=lambda each: each.document.files)):
            self._merge(group)
        return segments

    def _merge(self, group: Sequence[SegmentFile]) -> None:
        names = {each.name for each in group}
        try:
            facts = merged([each.facts() for each in group])
        except UNREADABLE as error:
            log.warning("Segments of %s are not merged: %s", self._storage.uri, error)
            return
        path = self.add(facts, names)
        if path is None:
            return  # another process has written the same merge, and finishes it
        listed = {_path(each).rsplit("/", 1)[1] for each in self.listed()}
        outdated = [f"{self._folder}/{name}" for name in sorted(names)]
        # If one is gone, another merge has its facts, or they were removed on purpose.
        self._storage.delete(outdated if names <= listed else [path])

    def forget(
        self,
        keeps: Callable[[str], bool],
        columns: Callable[[ColumnKey], bool],
        *,
        dry_run: bool = False,
    ) -> list[StoredFile]:
        """Removes facts of base files and columns, by rewriting the segments that state them.

        Args:
            keeps: Whether the facts of the base file at a path are kept.
            columns: Whether the facts of a column are kept.
            dry_run: Change nothing.

        Returns:
            The segments that stated other facts.

        Raises:
            PermissionDenied, StorageFailed: a segment cannot be read or deleted.
        """
        changed: list[StoredFile] = []
        for _ in range(1 if dry_run else _ROUNDS):
            outdated = [each for each in self.listed() if self._must_change(each, keeps, columns)]
            changed += outdated
            if dry_run or not outdated:
                break
            for each in outdated:
                self._rewrite(each, keeps, columns)
        return changed

    def forget_files(self, paths: Collection[str]) -> None:
        """Removes the facts of base files; see `forget`."""
        self.forget(lambda path: path not in paths, lambda column: True)

    def _must_change(
        self, file: StoredFile, keeps: Callable[[str], bool], columns: Callable[[ColumnKey], bool]
    ) -> bool:
        try:
            segment = self.open(file)
        except (FileNotFoundError, NewerFormat):
            return False
        except EntryInvalid:
            return True  # no reader can use it
        paths = segment.files["path"].to_pylist()
        return not (all(map(keeps, paths)) and all(map(columns, segment.columns)))

    def _rewrite(
        self, file: StoredFile, keeps: Callable[[str], bool], columns: Callable[[ColumnKey], bool]
    ) -> None:
        try:
            segment = self.open(file)
            left = segment.facts().kept(keeps, list(filter(columns, segment.columns)))
        except (EntryInvalid, FileNotFoundError) as error:
            log.warning("%s is deleted, not rewritten: %s", file.path, error)
        else:
            if left.count and left.columns:
                self.add(left, [segment.name])
        self._storage.delete([file.path])


class OpenSegments:
    """The segments of one index type as queries use them: each is opened once.

    Attributes:
        last: Those of the last listing that can be read.
    """

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self._known: dict[str, SegmentFile | None] = {}
        self.last: tuple[SegmentFile, ...] = ()

    def now(self) -> tuple[SegmentFile, ...]:
        """Lists the segments, and opens those that are new. Segments that others replace are left
        out; none, if they cannot be listed."""
        try:
            files = self._store.listed()
        except (PermissionDenied, StorageFailed) as error:
            log.warning("Base files are not excluded by segments: %s", error)
            files = []
        known = self._known
        if {each.path for each in files} != known.keys():
            new = [each for each in files if each.path not in known]
            opened = dict(zip(map(_path, new), self._store.opened(new), strict=True))
            known = {each.path: known.get(each.path, opened.get(each.path)) for each in files}
            segments = [each for each in known.values() if each is not None]
            replaced = {name for each in segments for name in each.document.replaces}
            self.last = tuple(each for each in segments if each.name not in replaced)
            self._known = known
        return self.last


def _path(file: StoredFile) -> str:
    return file.path


def _is_full(segment: SegmentFile) -> bool:
    runs = [each.run for each in segment.document.columns if each.run is not None]
    return segment.document.files >= MOST_FILES // 2 or any(each.is_full for each in runs)


def _groups(ascending: Sequence[SegmentFile]) -> list[list[SegmentFile]]:
    """Segments to be merged with each other: all up to the last that has at most `_GROWTH` times as
    many files as the smaller ones together."""
    files = [each.document.files for each in ascending]
    together = list(accumulate(files))
    end = max(
        (n + 1 for n in range(1, len(files)) if files[n] <= _GROWTH * together[n - 1]), default=0
    )
    groups: list[list[SegmentFile]] = [[]]
    files_of_group = pairs_of_group = 0
    for segment in ascending[:end]:
        more, more_pairs = segment.document.files, _most_pairs(segment)
        if files_of_group + more > MOST_FILES or pairs_of_group + more_pairs > MOST_PAIRS:
            groups.append([])
            files_of_group = pairs_of_group = 0
        groups[-1].append(segment)
        files_of_group, pairs_of_group = files_of_group + more, pairs_of_group + more_pairs
    return [each for each in groups if len(each) >= _FEWEST]


def _most_pairs(segment: SegmentFile) -> int:
    runs = (each.run for each in segment.document.columns)
    return max((each.pairs for each in runs if each is not None), default=0)
