"""Counts the rows that a build has indexed so far, also within unfinished base files."""

from threading import Lock


class RowCount:
    """Counts the rows that the tasks of a build index in this process. A task in another process
    has its own count, which is not reported here."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.rows = 0

    def __reduce__(self) -> tuple[object, ...]:
        return (RowCount, ())

    def add(self, rows: int) -> None:
        """Adds rows to the count. Safe to call from several threads."""
        with self._lock:
            self.rows += rows
