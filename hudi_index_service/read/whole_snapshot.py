"""Repeats a read once if Hudi's cleaner deleted files during it."""

import logging
from collections.abc import Callable
from typing import TypeVar

from hudi_index_service.errors import SnapshotChanged

log = logging.getLogger(__name__)

T = TypeVar("T")


def on_a_whole_snapshot(read: Callable[[], T]) -> T:
    """The result of planning and reading, repeated once if a file of the snapshot is deleted.

    Raises:
        SnapshotChanged: a file was deleted during the second read, too.
    """
    try:
        return read()
    except FileNotFoundError as error:
        log.info("Planning again, since a file is gone: %s", error)
    try:
        return read()
    except FileNotFoundError as error:
        raise SnapshotChanged(f"A file was deleted during a read: {error}.") from error
