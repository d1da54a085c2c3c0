"""What a local disk and a remote store each implement for `hudi_index_service.storage.store`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it: path relative to the storage root, size in bytes, and the
    time of its last change in seconds since the epoch."""

    path: str
    size: int
    modified: float


class Files(Protocol):
    """The files below one root. Paths are relative to it; a missing folder is an empty one.

    Errors are Python's own (FileNotFoundError, FileExistsError, PermissionError, other OSErrors,
    and ValueError for a path that cannot be) or the service's.

    Attributes:
        lists_in_order: Whether listings are in the order of paths and can begin anywhere.
        deleted_at_once: The maximum number of files that `delete` takes.
    """

    lists_in_order: bool
    deleted_at_once: int

    def exists(self) -> bool:
        """Whether anything is stored at the root."""

    def read(self, path: str) -> bytes:
        """The whole file."""

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Any]:
        """The bytes of [start, end) ranges, at least one, as buffers; shorter where the file
        ends."""

    def status(self, path: str) -> StoredFile:
        """Size and time of a file."""

    def download(self, path: str, target: Path) -> int:
        """Copies a file to the local disk; returns its size."""

    def create(self, path: str, data: bytes | Path) -> None:
        """Stores a new file, from bytes or a local file. Raises FileExistsError."""

    def put(self, path: str, data: bytes | Path) -> None:
        """Stores a file, over an older one."""

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes files. Raises FileNotFoundError if one is missing and others may be left."""

    def below(self, folder: str) -> list[StoredFile]:
        """The files below a folder, at any depth."""

    def directly_in(self, folder: str) -> list[StoredFile]:
        """The files in a folder, without those of its sub-folders."""

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder."""

    def folders(self, folder: str) -> list[str]:
        """The folders directly below a folder."""

    def before(self, end: str) -> list[StoredFile]:
        """All files whose paths are less than `end`; only if listings are in order."""

    def after(self, start: str) -> list[StoredFile]:
        """All files whose paths are greater than `start`; only if listings are in order."""

    def linked_folders(self, folder: str) -> list[str]:
        """The symbolic links to folders below a folder, or on the way to it."""

    def delete_empty_folders(self, folder: str) -> int:
        """Removes empty folders below and including a folder; returns how many."""
