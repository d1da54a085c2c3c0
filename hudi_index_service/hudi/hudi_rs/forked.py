"""What a forked process may not do with hudi-rs: use it, or remove its parent's folders."""

import os
import shutil
import weakref
from contextlib import suppress
from tempfile import mkdtemp

from hudi_index_service.errors import NativeModuleMissing

_used_in: int | None = None


def require_own_runtime() -> None:
    """Refuses hudi-rs in a process forked from one that has used it: the threads of its runtime
    do not exist there, and a call would wait for them for ever, deaf to Ctrl-C.

    Raises:
        NativeModuleMissing: this is such a process.
    """
    global _used_in
    if _used_in is None:
        _used_in = os.getpid()
    elif _used_in != os.getpid():
        raise NativeModuleMissing(
            "This process was forked from one that had already opened a Hudi table.",
            remedy="Use the multiprocessing start method 'spawn', or open tables only in the "
            "children.",
        )


class OwnedFolder:
    """A temporary folder, removed with this object, or by `close`, by the process that made it
    alone.

    Args:
        prefix: Of its name.

    Attributes:
        name: Its path.
    """

    def __init__(self, prefix: str) -> None:
        self.name = mkdtemp(prefix=prefix)
        self.close = weakref.finalize(self, _remove, self.name, os.getpid())


def _remove(name: str, owner: int) -> None:
    if owner == os.getpid():
        # Who cleaned up the temporary folder above it has removed this one too.
        with suppress(FileNotFoundError):
            shutil.rmtree(name)
