"""Writing and deleting on a local disk, where no symbolic link is followed; files that dead writers
left, empty folders.

obstore follows symbolic links wherever it meets one. For reading that is a convenience; a builder
or a cleaner that did so could be led to any file of the disk.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EEXIST, EROFS
from itertools import count
from pathlib import Path
from shutil import copyfileobj

from hudi_index_service.errors import StorageFailed

# What is being written is `<name>#<number>`, as obstore's own writers name it: no listing of its
# shows such files.
_UNFINISHED = re.compile(r".+#\d+")

_ONLY_FOLDERS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_TRIES = 10  # to begin a file in a folder that others remove as long as it is empty


def linked_folders(root: Path, prefix: str) -> list[str]:
    """The symbolic links below, or on the way to, the folder `prefix` that lead to folders, as
    paths relative to `root`. What lies behind one is not looked at."""
    link = link_on_the_way(root, prefix)
    if link is not None:
        return [link]
    found = []
    for folder, names, _ in os.walk(root / prefix):
        paths = (Path(folder, name) for name in names)
        found += [str(path.relative_to(root)) for path in paths if path.is_symlink()]
    return found


def link_on_the_way(root: Path, prefix: str) -> str | None:
    """The first symbolic link on the way to, or at, the folder `prefix`, relative to `root`."""
    at = root
    for part in prefix.split("/"):
        at = at / part
        if at.is_symlink():
            return str(at.relative_to(root))
    return None


def unfinished_files(root: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """The half-written files that killed writers left below `prefix`: path relative to `root`, and
    what the disk says of it. No link below `prefix` is followed."""
    for folder, _, names in os.walk(root / prefix):
        for name in filter(_UNFINISHED.fullmatch, names):
            path = Path(folder, name)
            try:
                yield str(path.relative_to(root)), path.lstat()
            except FileNotFoundError:  # renamed to what it was to become
                continue


def write_new(root: Path, path: str, data: bytes | Path) -> None:
    """Makes the file `path` below `root`, at once or not at all, and the folders on its way.

    Args:
        data: What it is to hold, or the file that holds it.

    Raises:
        FileExistsError: the name is taken, be it by a symbolic link.
        PermissionError: no write access.
        StorageFailed: a folder on the way is a symbolic link, or something else is wrong.
        ValueError: `path` leads out of `root`.
    """
    with _errors_named(root, path, "written"):
        _write(root, path, data, _publish_new)


def write_over(root: Path, path: str, data: bytes | Path) -> None:
    """The same where the name may be taken: what has it, be it a symbolic link, is replaced."""
    with _errors_named(root, path, "written"):
        _write(root, path, data, _publish_over)


def unlink(root: Path, path: str) -> None:
    """Deletes the file `path` below `root`; one that is not there is no error.

    Raises:
        PermissionError: no write access.
        StorageFailed: a folder on the way is a symbolic link, or something else is wrong.
        ValueError: `path` leads out of `root`.
    """
    with (
        _errors_named(root, path, "deleted"),
        suppress(FileNotFoundError),
        _folder_of(root, path, make=False) as (folder, name),
    ):
        os.unlink(name, dir_fd=folder)


@contextmanager
def _errors_named(root: Path, path: str, done: str) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, PermissionError):
        raise
    except OSError as error:
        if error.errno == EROFS:
            raise PermissionError(EROFS, error.strerror) from error
        said = f"{root}/{path} cannot be {done}"
        link = link_on_the_way(root, path.rpartition("/")[0])
        if link is None:
            raise StorageFailed(f"{said}: {error.strerror}.") from error
        raise StorageFailed(
            f"{said}: {root}/{link} is a symbolic link.",
            remedy="No link is followed for writing or deleting. Remove the link, and build anew "
            "what was behind it.",
        ) from error


def _write(
    root: Path, path: str, data: bytes | Path, publish: Callable[[int, str, str], None]
) -> None:
    """Writes the file beside its place, and lets `publish` put it there: of the folder, given as a
    descriptor, from one name to the other."""
    folder, unfinished, descriptor = _begun(root, path)
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


def _begun(root: Path, path: str) -> tuple[int, str, int]:
    """A new file for `path`, under a name that no listing shows: its folder, the name, and the
    file, opened. The folder cannot go any more: it is not empty."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    for tries_left in reversed(range(_TRIES)):
        try:
            with _folder_of(root, path, make=True) as (folder, name):
                for number in count(1):
                    unfinished = f"{name}#{number}"
                    with suppress(FileExistsError):  # another writer's, or a dead one's
                        file = os.open(unfinished, flags, 0o666, dir_fd=folder)
                        return os.dup(folder), unfinished, file
        except FileNotFoundError:  # somebody has just removed an empty folder
            if not tries_left:
                raise
    raise AssertionError("unreachable")


@contextmanager
def _folder_of(root: Path, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """The folder of the file `path` below `root`, as a descriptor, and the file's name. Each folder
    on the way is opened in the one before it, so that nobody can put a link in its place in the
    meantime.

    Args:
        make: Make those that are missing.
    """
    *folders, name = path.split("/")
    if any(part in ("", ".", "..") for part in (*folders, name)):
        raise ValueError(f"{path!r} is no path below the root")
    with ExitStack() as stack:
        at = os.open(root, _ONLY_FOLDERS)
        stack.callback(os.close, at)
        for folder in folders:
            if make:
                at = _made_and_opened(folder, at)
            else:
                at = os.open(folder, _ONLY_FOLDERS | os.O_NOFOLLOW, dir_fd=at)
            stack.callback(os.close, at)
        yield at, name


def _made_and_opened(folder: str, within: int) -> int:
    with suppress(FileNotFoundError):
        return os.open(folder, _ONLY_FOLDERS | os.O_NOFOLLOW, dir_fd=within)
    with suppress(FileExistsError):  # another writer was first
        os.mkdir(folder, dir_fd=within)
    return os.open(folder, _ONLY_FOLDERS | os.O_NOFOLLOW, dir_fd=within)


def remove_empty_folders(root: Path, prefix: str) -> int:
    """Removes empty folders below and including `prefix`; returns how many went."""
    if link_on_the_way(root, prefix) is not None:
        return 0
    gone = 0
    with suppress(FileNotFoundError):  # there is no such folder
        for _, names, _, folder in os.fwalk(root / prefix, topdown=False):
            gone += sum(_removed_if_empty(name, folder) for name in names)
    return gone + _removed_if_empty(root / prefix)


def _removed_if_empty(folder: str | Path, within: int | None = None) -> bool:
    try:
        os.rmdir(folder, dir_fd=within)
    except OSError:  # not empty, a link, or a builder has just put a file there: it stays
        return False
    return True
