"""Whether a data file that is open is still what it was when it was opened.

Blocks of a mapped file are checked before their first use, not before each: whoever writes over the
file afterwards writes over what was found intact.
"""

import os
from pathlib import Path


class OpenedFile:
    """A local file as it was opened; make it before anything is read of it.

    Args:
        is_copy: Whether it is a copy in the user's cache. That is written to as blocks come, marked
            as used, evicted and made anew; those who have it open read on.
    """

    def __init__(self, path: Path, *, is_copy: bool) -> None:
        self._path = path
        self._is_copy = is_copy
        self._opened = self._look()

    def has_changed(self) -> bool:
        """Whether the file was written to, or another one is in its place: its size, its inode or
        one of its times is another; of a copy, its size. A file that is gone has not changed: its
        bytes stay as long as it is open."""
        now, opened = self._look(), self._opened
        if now is None or opened is None:
            return now is not None  # else it is gone
        same_file = now.st_ino == opened.st_ino and now.st_dev == opened.st_dev
        if self._is_copy:
            return same_file and now.st_size != opened.st_size
        return not (
            same_file
            and now.st_size == opened.st_size
            and now.st_mtime_ns == opened.st_mtime_ns
            # Which nobody can set back, as he can the other one.
            and now.st_ctime_ns == opened.st_ctime_ns
        )

    def _look(self) -> os.stat_result | None:
        try:
            return self._path.stat()
        except FileNotFoundError:
            return None
