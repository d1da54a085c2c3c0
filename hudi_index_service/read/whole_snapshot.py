"""Reads of files that Hudi's cleaner may take away meanwhile."""

import logging
from collections.abc import Callable
from typing import TypeVar

from hudi_index_service.errors import SnapshotChanged

log = logging.getLogger(__name__)

T = TypeVar("T")


def on_a_whole_snapshot(read: Callable[[], T]) -> T:
    """The result of planning and reading, which is done anew once if a file of the snapshot goes.

    Raises:
        SnapshotChanged: files went the second time, too.
    """
    try:
        return read()
    except FileNotFoundError as error:
        log.info("Planning again, since a file is gone: %s", error)
    try:
        return read()
    except FileNotFoundError as error:
        raise SnapshotChanged(f"A file went while it was read: {error}.") from error
