"""Lists, writes and deletes on a local disk; leftover files of dead writers, empty folders.

Listings follow symbolic links, and omit unfinished files. Writes and deletions follow none: a link
could lead a builder or cleaner to any file on the disk.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EEXIST, EROFS
from itertools import count
from pathlib import Path
from shutil import copyfileobj

from hudi_index_service.errors import StorageFailed
from hudi_index_service.storage.names import is_unfinished, parts_of, unfinished_name

_ONLY_FOLDERS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_TRIES = 10  # to create a file in a folder that others remove while it is empty


def files_below(root: Path, folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a folder, at any depth, without unfinished ones: path relative to `root`, and
    status. Empty if there is no such folder.

    Raises:
        PermissionError: a folder cannot be read.
        OSError: the disk fails.
    """
    for path, entry in _entries(root, folder):
        if entry.is_dir():
            yield from files_below(root, path)
        else:
            yield from _status(path, entry)


def files_in(root: Path, folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Does the same without those in its sub-folders."""
    for path, entry in _entries(root, folder):
        if not entry.is_dir():
            yield from _status(path, entry)


def names_in(root: Path, folder: str) -> Iterator[str]:
    """The names of the files directly in a folder, unfinished ones included. Raises what
    `files_below` raises."""
    return (entry.name for _, entry in _entries(root, folder) if entry.is_file())


def folders_in(root: Path, folder: str) -> Iterator[str]:
    """The folders directly below a folder, as paths relative to `root`. Raises what `files_below`
    raises."""
    return (path for path, entry in _entries(root, folder) if entry.is_dir())


def _entries(root: Path, folder: str) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    prefix = f"{folder}/" if folder else ""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(f"{root}/{folder}") as entries:
        for entry in entries:
            yield prefix + entry.name, entry


def _status(path: str, entry: "os.DirEntry[str]") -> Iterator[tuple[str, os.stat_result]]:
    if is_unfinished(entry.name):
        return
    with suppress(FileNotFoundError):  # deleted meanwhile, or a link to nothing
        yield path, entry.stat()


def linked_folders(root: Path, prefix: str) -> list[str]:
    """The symbolic links to folders below, or on the path to, the folder `prefix`, as paths
    relative to `root`. Links are not followed."""
    link = link_on_the_way(root, prefix)
    if link is not None:
        return [link]
    links = []
    for folder, names, _ in os.walk(root / prefix):
        paths = (Path(folder, name) for name in names)
        links += [str(path.relative_to(root)) for path in paths if path.is_symlink()]
    return links


def link_on_the_way(root: Path, prefix: str) -> str | None:
    """The first symbolic link on the path to, or at, the folder `prefix`, relative to `root`."""
    at = root
    for part in prefix.split("/"):
        at = at / part
        if at.is_symlink():
            return str(at.relative_to(root))
    return None


def unfinished_files(root: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """The half-written files of killed writers below `prefix`: path relative to `root`, and its
    status. No link below `prefix` is followed."""
    for folder, _, names in os.walk(root / prefix):
        for name in filter(is_unfinished, names):
            path = Path(folder, name)
            try:
                yield str(path.relative_to(root)), path.lstat()
            except FileNotFoundError:  # renamed to its final name
                continue


def write_new(root: Path, path: str, data: bytes | Path) -> None:
    """Creates the file `path` below `root` atomically, and its missing folders.

    Args:
        data: The content, or the file that holds it.

    Raises:
        FileExistsError: the name is taken, even by a symbolic link.
        PermissionError: no write access.
        StorageFailed: a folder of the path is a symbolic link, or the write fails otherwise.
        ValueError: `path` leads out of `root`.
    """
    with _errors_named(root, path, "written"):
        _write(root, path, data, _publish_new)


def write_over(root: Path, path: str, data: bytes | Path) -> None:
    """Does the same, but replaces an existing file or symbolic link of that name."""
    with _errors_named(root, path, "written"):
        _write(root, path, data, _publish_over)


def unlink(root: Path, path: str) -> None:
    """Deletes the file `path` below `root`; a missing file is no error.

    Raises:
        PermissionError: no write access.
        StorageFailed: a folder of the path is a symbolic link, or the deletion fails otherwise.
        ValueError: `path` leads out of `root`.
    """
    with (
        _errors_named(root, path, "deleted"),
        suppress(FileNotFoundError),
        _folder_of(root, path, make=False) as (folder, name),
    ):
        os.unlink(name, dir_fd=folder)


@contextmanager
def _errors_named(root: Path, path: str, operation: str) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, PermissionError):
        raise
    except OSError as error:
        if error.errno == EROFS:
            raise PermissionError(EROFS, error.strerror) from error
        message = f"{root}/{path} cannot be {operation}"
        link = link_on_the_way(root, path.rpartition("/")[0])
        if link is None:
            raise StorageFailed(f"{message}: {error.strerror}.") from error
        raise StorageFailed(
            f"{message}: {root}/{link} is a symbolic link.",
            remedy="Writes and deletes follow no links. Remove the link and rebuild the indexes "
            "behind it.",
        ) from error


def _write(
    root: Path, path: str, data: bytes | Path, publish: Callable[[int, str, str], None]
) -> None:
    """Writes the file under a temporary name in its folder. `publish` moves it to its final name;
    it takes the folder's descriptor and both names."""
    folder, unfinished, descriptor = _create_unfinished(root, path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if isinstance(data, Path):
                with data.open("rb") as source:
                    copyfileobj(source, file, 2**20)
            else:
                file.write(data)
        publish(folder, unfinished, path.rpartition("/")[2])
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished, dir_fd=folder)
        raise
    finally:
        os.close(folder)


def _publish_new(folder: int, unfinished: str, name: str) -> None:
    try:
        os.link(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError as error:
        raise FileExistsError(EEXIST, "The name is taken", name) from error
    os.unlink(unfinished, dir_fd=folder)


def _publish_over(folder: int, unfinished: str, name: str) -> None:
    os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)


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


def remove_empty_folders(root: Path, prefix: str) -> int:
    """Removes empty folders below and including `prefix`; returns how many."""
    if link_on_the_way(root, prefix) is not None:
        return 0
    removed = 0
    with suppress(FileNotFoundError):  # there is no such folder
        for _, names, _, folder in os.fwalk(root / prefix, topdown=False):
            removed += sum(_remove_if_empty(name, folder) for name in names)
    return removed + _remove_if_empty(root / prefix)


def _remove_if_empty(folder: str | Path, parent: int | None = None) -> bool:
    try:
        os.rmdir(folder, dir_fd=parent)
    except OSError:  # not empty, a link, or a builder has just put a file there: it stays
        return False
    return True
