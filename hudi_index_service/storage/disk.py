"""The files below a local folder, without a store's client: opening a small file by one takes ten
times as long. Also files that only this user may read, such as those in the state folder.

Reads and listings follow symbolic links, and listings omit unfinished files. Writes and deletions
follow none: a link could lead a builder or cleaner to any file on the disk.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from errno import EEXIST, EROFS
from itertools import count
from pathlib import Path
from shutil import copyfile, copyfileobj
from stat import S_ISREG
from typing import TypeVar

from hudi_index_parquet import folder_entries, folder_file_names

from hudi_index_service.errors import StorageFailed
from hudi_index_service.storage.contract import (
    Files,
    StoredFile,
    is_unfinished,
    parts_of,
    unfinished_name,
)

_ONLY_FOLDERS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

T = TypeVar("T")

_TRIES = 10  # to create a file in a folder that others remove while it is empty


class Disk(Files):
    """The files below a folder; see `Files` for what each method does.

    Args:
        root: The folder's absolute path.
    """

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._prefix = os.path.join(self._root, "")  # noqa: PTH118 - ends with a slash

    def exists(self) -> bool:
        return self._root.is_dir()

    def read(self, path: str) -> bytes:
        with open(self._name(path), "rb") as file:  # noqa: PTH123
            return file.read()

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of [start, end) ranges; fewer where the file ends."""
        with open(self._name(path), "rb") as file:  # noqa: PTH123
            return [os.pread(file.fileno(), end - start, start) for start, end in ranges]

    def status(self, path: str) -> StoredFile:
        status = os.stat(self._name(path))  # noqa: PTH116
        if not S_ISREG(status.st_mode):
            raise FileNotFoundError(f"{self._root}/{path} is no file")
        return _stored_file(path, status)

    def download(self, path: str, target: Path) -> int:
        copyfile(self._name(path), target)
        return target.stat().st_size

    def put(self, path: str, data: bytes | Path, *, new: bool) -> None:
        """Stores a file. A symbolic link takes a name, too, and is replaced like a file."""
        with self._errors_named(path, "written"):
            self._write(path, data, new=new)

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes files; missing ones are no error."""
        for path in paths:
            with (
                self._errors_named(path, "deleted"),
                suppress(FileNotFoundError),
                _folder_of(self._root, path, make=False) as (folder, name),
            ):
                os.unlink(name, dir_fd=folder)

    def below(self, folder: str) -> list[StoredFile]:
        files, folders = self.level(folder)
        for each in folders:
            files += self.below(each)
        return files

    def level(self, folder: str) -> tuple[list[StoredFile], list[str]]:
        files, folders, above = [], [], f"{folder}/" if folder else ""
        for name, file in self._listed(folder, folder_entries):
            if file is None:
                folders.append(above + name)
            elif not is_unfinished(name):
                files.append(StoredFile(above + name, *file))
        return files, folders

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, unfinished ones included; without their attributes, a
        tenth of the time."""
        return self._listed(folder, folder_file_names)

    def unfinished(self, folder: str) -> list[StoredFile]:
        """The half-written files of killed writers. No link below the folder is followed."""
        files = []
        for above, _, names in os.walk(self._root / folder):
            for name in filter(is_unfinished, names):
                path = Path(above, name)
                with suppress(FileNotFoundError):  # renamed to its final name
                    files.append(_stored_file(str(path.relative_to(self._root)), path.lstat()))
        return files

    def linked_folders(self, folder: str) -> list[str]:
        link = self._link_on_the_way(folder)
        if link is not None:
            return [link]
        links = []
        for above, names, _ in os.walk(self._root / folder):
            paths = (Path(above, name) for name in names)
            links += [str(path.relative_to(self._root)) for path in paths if path.is_symlink()]
        return links

    def delete_empty_folders(self, folder: str) -> int:
        if self._link_on_the_way(folder) is not None:
            return 0
        removed = 0
        with suppress(FileNotFoundError):  # there is no such folder
            for _, names, _, above in os.fwalk(self._root / folder, topdown=False):
                removed += sum(_remove_if_empty(name, above) for name in names)
        return removed + _remove_if_empty(self._root / folder)

    def _name(self, path: str) -> str:
        """The file at a path, which must lie below the root, as text for calls made thousands of
        times: a `Path` takes longer than they."""
        return self._prefix + "/".join(parts_of(path))

    def _listed(self, folder: str, by: Callable[[str], list[T]]) -> list[T]:
        """What a listing says is in a folder; nothing if there is no such folder."""
        try:
            return by(self._prefix + folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            if not self._root.is_dir():
                message = f"{self._root} cannot be opened: there is no such folder."
                raise StorageFailed(message) from error
            return []

    def _link_on_the_way(self, folder: str) -> str | None:
        """The first symbolic link on the path to, or at, a folder."""
        at = self._root
        for part in folder.split("/"):
            at = at / part
            if at.is_symlink():
                return str(at.relative_to(self._root))
        return None

    @contextmanager
    def _errors_named(self, path: str, operation: str) -> Iterator[None]:
        try:
            yield
        except (FileExistsError, PermissionError):
            raise
        except OSError as error:
            if error.errno == EROFS:
                raise PermissionError(EROFS, error.strerror) from error
            message = f"{self._root}/{path} cannot be {operation}"
            link = self._link_on_the_way(path.rpartition("/")[0])
            if link is None:
                raise StorageFailed(f"{message}: {error.strerror}.") from error
            raise StorageFailed(
                f"{message}: {self._root}/{link} is a symbolic link.",
                remedy="Writes and deletes follow no links. Remove the link and rebuild the "
                "indexes behind it.",
            ) from error

    def _write(self, path: str, data: bytes | Path, *, new: bool) -> None:
        """Writes the file under a temporary name in its folder, which is made if it is missing, and
        gives it its final name."""
        folder, unfinished, descriptor = _create_unfinished(self._root, path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if isinstance(data, Path):
                    with data.open("rb") as source:
                        copyfileobj(source, file, 2**20)
                else:
                    file.write(data)
            _publish(folder, unfinished, path.rpartition("/")[2], new=new)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(unfinished, dir_fd=folder)
            raise
        finally:
            os.close(folder)


def write_private_file(path: Path, content: bytes) -> None:
    """Writes a file that only this user may read, atomically, with mode 0600; missing folders are
    created with mode 0700.

    Raises:
        OSError: the file cannot be written.
    """
    # `mkdir` with parents applies its mode to the last folder only.
    for folder in reversed((path.parent, *path.parent.parents)):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    # `mkstemp` creates it with mode 0600.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _stored_file(path: str, status: os.stat_result) -> StoredFile:
    return StoredFile(path, status.st_size, status.st_mtime)


def _publish(folder: int, unfinished: str, name: str, *, new: bool) -> None:
    if not new:
        os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    try:
        os.link(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError as error:
        raise FileExistsError(EEXIST, "The name is taken", name) from error
    os.unlink(unfinished, dir_fd=folder)


def _create_unfinished(root: Path, path: str) -> tuple[int, str, int]:
    """Creates a new file for `path` under a name that listings omit: its folder, name and open
    file. The folder is then not empty, so it cannot be removed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    for tries_left in reversed(range(_TRIES)):
        try:
            with _folder_of(root, path, make=True) as (folder, name):
                for number in count(1):
                    unfinished = unfinished_name(name, number)
                    with suppress(FileExistsError):  # another writer's, or a dead one's
                        file = os.open(unfinished, flags, 0o666, dir_fd=folder)
                        return os.dup(folder), unfinished, file
        except FileNotFoundError:  # a concurrent cleaner has just removed an empty folder
            if not tries_left:
                raise
    raise AssertionError("unreachable")


@contextmanager
def _folder_of(root: Path, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """The folder of the file `path` below `root`, as a descriptor, and the file's name. Each folder
    is opened relative to its parent, so that no link can take its place in the meantime.

    Args:
        make: Whether to create missing folders.
    """
    *folders, name = parts_of(path)
    with ExitStack() as stack:
        at = os.open(root, _ONLY_FOLDERS)
        stack.callback(os.close, at)
        for folder in folders:
            if make:
                at = _make_and_open(folder, at)
            else:
                at = os.open(folder, _ONLY_FOLDERS | os.O_NOFOLLOW, dir_fd=at)
            stack.callback(os.close, at)
        yield at, name


def _make_and_open(folder: str, parent: int) -> int:
    with suppress(FileNotFoundError):
        return os.open(folder, _ONLY_FOLDERS | os.O_NOFOLLOW, dir_fd=parent)
    with suppress(FileExistsError):  # another writer was first
        os.mkdir(folder, dir_fd=parent)
    return os.open(folder, _ONLY_FOLDERS | os.O_NOFOLLOW, dir_fd=parent)


def _remove_if_empty(folder: str | Path, parent: int | None = None) -> bool:
    try:
        os.rmdir(folder, dir_fd=parent)
    except OSError:  # not empty, a link, or a builder has just put a file there: it stays
        return False
    return True
