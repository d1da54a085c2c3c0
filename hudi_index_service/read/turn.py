"""Lets threads take turns at short queries.

Such a query is mostly Python. Threads that run it at once take the interpreter's lock from each
other wherever Arrow, Lucene or the row reader gives it away, 22 times a look-up of one key: by two
to eight threads it took 1.5 times the processor time that it took by one, and little more than one
processor was busy.
"""

import os
from threading import Lock, get_ident


class Turn:
    """What one thread has at a time, to plan queries on a table and run short ones.

    A context manager; a thread that has the turn may enter it again. A fork begins with a new one.

    Args:
        is_needed: If not, any thread has it at any time.
    """

    def __init__(self, *, is_needed: bool) -> None:
        self._is_needed = is_needed
        self._process = self._owner = self._depth = 0
        self._lock = Lock()

    def __enter__(self) -> None:
        if not self._is_needed:
            return
        if self._process != os.getpid():
            self._process, self._owner, self._lock = os.getpid(), 0, Lock()
        if self._owner != get_ident():
            self._lock.acquire()
            self._owner, self._depth = get_ident(), 0
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        if self._owner == get_ident():
            self._depth -= 1
            if not self._depth:
                self.end()

    def end(self) -> None:
        """Gives the turn away before the end of the block, if this thread has it."""
        if self._owner == get_ident():
            self._owner = 0
            self._lock.release()
