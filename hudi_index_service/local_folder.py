"""What deleting on a local disk takes beyond obstore: links that are not followed, files that dead
writers left, empty folders.

obstore follows symbolic links wherever it meets one. For reading that is a convenience; a cleaner
that did so could be led to any file of the disk.
"""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

# obstore writes `<name>#<number>`, renames it, and hides such files from every listing.
_UNFINISHED = re.compile(r".+#\d+")


def linked_folders(root: Path, prefix: str) -> list[str]:
    """The symbolic links below, or on the way to, the folder `prefix` that lead to folders, as
    paths relative to `root`. What lies behind one is not looked at."""
    link = _link_on_the_way(root, prefix)
    if link is not None:
        return [link]
    found = []
    for folder, names, _ in os.walk(root / prefix):
        paths = (Path(folder, name) for name in names)
        found += [str(path.relative_to(root)) for path in paths if path.is_symlink()]
    return found


def _link_on_the_way(root: Path, prefix: str) -> str | None:
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


def unlink(root: Path, path: str) -> None:
    """Deletes the file `path` below `root`. Each folder on the way is opened in the one before it,
    so that nobody can put a link in its place in the meantime.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: a folder on the way is a symbolic link, or something else is wrong.
        ValueError: `path` leads out of `root`.
    """
    *folders, name = path.split("/")
    if any(part in ("", ".", "..") for part in (*folders, name)):
        raise ValueError(f"{path!r} is no path below the root")
    only_folders = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    with ExitStack() as stack:
        at = os.open(root, only_folders)
        stack.callback(os.close, at)
        for folder in folders:
            at = os.open(folder, only_folders | os.O_NOFOLLOW, dir_fd=at)
            stack.callback(os.close, at)
        os.unlink(name, dir_fd=at)


def remove_empty_folders(root: Path, prefix: str) -> int:
    """Removes empty folders below and including `prefix`; returns how many went."""
    if _link_on_the_way(root, prefix) is not None:
        return 0
    gone = 0
    for folder, _, _ in os.walk(root / prefix, topdown=False):
        gone += _removed_if_empty(Path(folder))
    return gone


def _removed_if_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:  # not empty, or a builder has just put a file there: it stays
        return False
    return True
