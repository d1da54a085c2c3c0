"""What each kind of store does for `hudi_index_service.storage.store.Storage`, and the names of
files below a root: which are refused, and which belong to unfinished writes."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# `<name>#<number>`, as by obstore's writers and earlier releases.
_UNFINISHED = re.compile(r".+#\d+")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it: path relative to the storage root, size in bytes, and the
    time of its last change in seconds since the epoch."""

    path: str
    size: int
    modified: float


class Files(ABC):
    """The files below a root. Paths are relative to it.

    Methods raise Python's own FileNotFoundError, FileExistsError and PermissionError, other
    OSErrors of the local disk, ValueError for a path that is not below the root, or the service's
    errors.

    Attributes:
        deleted_at_once: The maximum number of files that `delete` takes.
        lists_in_order: Whether listings are in the order of paths and can begin anywhere, by
            `before` and `after`.
    """

    deleted_at_once: int = 1
    lists_in_order: bool = False

    @abstractmethod
    def exists(self) -> bool:
        """Whether anything is stored at the root."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The whole file."""

    @abstractmethod
    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Any]:
        """The bytes of [start, end) ranges; fewer where the file ends, or an error."""

    @abstractmethod
    def status(self, path: str) -> StoredFile:
        """Size and time of a file."""

    @abstractmethod
    def download(self, path: str, target: Path) -> int:
        """Copies a file to a local path; returns its size."""

    @abstractmethod
    def put(self, path: str, data: bytes | Path, *, new: bool) -> None:
        """Stores a file, which is visible only once it is complete.

        Args:
            new: Whether it must not exist yet; otherwise an older one is replaced.
        """

    @abstractmethod
    def delete(self, paths: Sequence[str]) -> None:
        """Deletes files. May raise FileNotFoundError for a missing one, and have stopped there."""

    @abstractmethod
    def below(self, folder: str) -> list[StoredFile]:
        """The files below a folder, at any depth."""

    @abstractmethod
    def level(self, folder: str) -> tuple[list[StoredFile], list[str]]:
        """The files and the folders directly in a folder."""

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder."""
        return [file.path.rsplit("/", 1)[-1] for file in self.level(folder)[0]]

    def before(self, end: str) -> list[StoredFile]:
        """All files whose paths are less than `end`."""
        raise NotImplementedError

    def after(self, start: str) -> list[StoredFile]:
        """All files whose paths are greater than `start`."""
        raise NotImplementedError

    def unfinished(self, folder: str) -> list[StoredFile]:
        """The half-written files of killed writers below a folder, which no listing shows."""
        return []

    def linked_folders(self, folder: str) -> list[str]:
        """The symbolic links to folders below a folder, or on the way to it."""
        return []

    def delete_empty_folders(self, folder: str) -> int:
        """Removes empty folders below and including a folder; returns how many."""
        return 0


def parts_of(path: str) -> list[str]:
    """The folders on the path to a file, and its name. Raises ValueError if the path is not one
    below a root."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{path!r} is not a path below the root")
    return parts


def unfinished_name(name: str, number: int) -> str:
    """The name, or the path, under which a file is written until it is complete. Listings omit it,
    and cleaning removes what a killed writer has left."""
    return f"{name}#{number}"


def is_unfinished(name: str) -> bool:
    """Whether a file name is such a name."""
    return _UNFINISHED.fullmatch(name) is not None
