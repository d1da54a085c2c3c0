"""What a process forked from one that has used the service may not do: use a library whose threads
stayed in the parent, or remove its parent's folders."""

import os
import shutil
import weakref
from contextlib import suppress
from functools import cache

from hudi_index_service.errors import NativeModuleMissing
from hudi_index_service.storage.temporary_folder import locked_folder, remove_abandoned


class OwnRuntime:
    """A library's threads, which exist in one process alone. A call in a forked one would wait for
    them for ever, deaf to Ctrl-C.

    Args:
        use: What the parent has done with it, for the error.
    """

    def __init__(self, use: str) -> None:
        self._use = use
        self._process: int | None = None

    def require(self) -> None:
        """To be called before each use.

        Raises:
            NativeModuleMissing: this process was forked from one that has used the library.
        """
        process = os.getpid()
        if self._process is None:
            self._process = process
        elif self._process != process:
            raise NativeModuleMissing(
                f"This process was forked from one that had already {self._use}.",
                remedy="Use the multiprocessing start method 'spawn', or open tables only in the "
                "children.",
            )


class OwnedFolder:
    """A temporary folder, removed with this object, or by `close`, by the process that made it
    alone. What killed processes left is removed before a process makes its first one.

    Args:
        prefix: Of its name; see `locked_folder`.

    Attributes:
        name: Its path.
    """

    def __init__(self, prefix: str) -> None:
        _remove_abandoned_once(os.getpid())
        folder, lock = locked_folder(prefix)
        self.name = str(folder)
        weakref.finalize(self, os.close, lock)  # made first, called last
        self.close = weakref.finalize(self, _remove, self.name, os.getpid())


@cache
def _remove_abandoned_once(process: int) -> None:
    remove_abandoned()


def _remove(name: str, owner: int) -> None:
    if owner == os.getpid():
        # Who cleaned up the temporary folder above it has removed this one too.
        with suppress(FileNotFoundError):
            shutil.rmtree(name)
