"""Local folders for a task's unpublished files. A folder is deleted when its task ends or, if the
process was killed, when the next task begins on the same machine.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Self

from hudi_index_service.storage.temporary_folder import (
    BUILDING,
    remove_abandoned,
    temporary_folder,
)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder below the system's folder for temporary files (``TMPDIR``), deleted at the end
    of the block. First removes the folders that this user's killed processes left there.

    Raises:
        OSError: no folder can be created.
    """
    remove_abandoned()
    with temporary_folder(BUILDING) as folder:
        yield folder


class Scratch:
    """A task's scratch folder, made when it is first needed. Used as a context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @cached_property
    def folder(self) -> Path:
        """The folder. Raises OSError if it cannot be created."""
        return self._stack.enter_context(scratch_folder())
