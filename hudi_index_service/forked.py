"""What a process forked from one that has used the service may not use: a library whose threads
stayed in the parent."""

import os

from hudi_index_service.errors import NativeModuleMissing


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
