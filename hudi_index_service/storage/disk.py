"""The files below a local folder, without a store's client: opening a small file by one takes ten
times as long."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import copyfile
from stat import S_ISREG

from hudi_index_service.errors import StorageFailed
from hudi_index_service.storage import local
from hudi_index_service.storage.contract import Files
from hudi_index_service.storage.names import parts_of
from hudi_index_service.storage.stored_file import StoredFile


class Disk(Files):
    """Reads and listings follow symbolic links; writes and deletions follow none.

    Args:
        root: The folder's absolute path.
    """

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._prefix = os.path.join(self._root, "")  # noqa: PTH118 - ends with a slash

    def exists(self) -> bool:
        """Whether the folder is there."""
        return self._root.is_dir()

    def read(self, path: str) -> bytes:
        """The whole file."""
        with open(self._name(path), "rb") as file:  # noqa: PTH123
            return file.read()

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of [start, end) ranges; fewer where the file ends."""
        with open(self._name(path), "rb") as file:  # noqa: PTH123
            return [os.pread(file.fileno(), end - start, start) for start, end in ranges]

    def status(self, path: str) -> StoredFile:
        """Size and time of a file."""
        status = os.stat(self._name(path))  # noqa: PTH116
        if not S_ISREG(status.st_mode):
            raise FileNotFoundError(f"{self._root}/{path} is no file")
        return StoredFile(path, status.st_size, status.st_mtime)

    def download(self, path: str, target: Path) -> int:
        """Copies a file; returns its size."""
        copyfile(self._reading(path), target)
        return target.stat().st_size

    def create(self, path: str, data: bytes | Path) -> None:
        """Stores a new file."""
        local.write_new(self._root, path, data)

    def put(self, path: str, data: bytes | Path) -> None:
        """Stores a file, over an older one."""
        local.write_over(self._root, path, data)

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes files."""
        for path in paths:
            local.unlink(self._root, path)

    def below(self, folder: str) -> list[StoredFile]:
        """The files below a folder, at any depth."""
        return _listed(local.files_below(self._existing_root(), folder))

    def level(self, folder: str) -> tuple[list[StoredFile], list[str]]:
        """The files and the folders directly in a folder."""
        return self.directly_in(folder), self.folders(folder)

    def directly_in(self, folder: str) -> list[StoredFile]:
        """The files in a folder, without those of its sub-folders."""
        return _listed(local.files_in(self._existing_root(), folder))

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder; without their attributes, a tenth of the time."""
        return list(local.names_in(self._existing_root(), folder))

    def folders(self, folder: str) -> list[str]:
        """The folders directly below a folder."""
        return list(local.folders_in(self._existing_root(), folder))

    def unfinished(self, folder: str) -> list[StoredFile]:
        """The half-written files of killed writers."""
        return _listed(local.unfinished_files(self._root, folder))

    def linked_folders(self, folder: str) -> list[str]:
        """The symbolic links to folders below a folder, or on the way to it."""
        return local.linked_folders(self._root, folder)

    def delete_empty_folders(self, folder: str) -> int:
        """Removes empty folders; returns how many."""
        return local.remove_empty_folders(self._root, folder)

    def _existing_root(self) -> Path:
        if not self._root.is_dir():
            raise StorageFailed(f"{self._root} cannot be opened: there is no such folder.")
        return self._root

    def _reading(self, path: str) -> Path:
        """The file at a path, which must lie below the root."""
        return Path(self._name(path))

    def _name(self, path: str) -> str:
        """The same as text, for calls made thousands of times: a `Path` takes longer than they."""
        return self._prefix + "/".join(parts_of(path))


def _listed(files: Iterable[tuple[str, os.stat_result]]) -> list[StoredFile]:
    return [StoredFile(path, status.st_size, status.st_mtime) for path, status in files]
