"""Rows that a build has taken in so far, within base files too."""

from threading import Lock


class RowCount:
    """Counts the rows that the tasks of a build take in. A task in another process has a count of
    its own, of which nobody is told here."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.rows = 0

    def __reduce__(self) -> tuple[object, ...]:
        return (RowCount, ())

    def add(self, rows: int) -> None:
        """Counts further rows, from any thread."""
        with self._lock:
            self.rows += rows
