"""Tables that Hudi takes long to write, kept in the user's cache."""

import tempfile
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from pathlib import Path

from dev.paths import cache_folder


def kept(name: str, key: str, write: Callable[[Path], None]) -> Path:
    """The folder of some tables, which are written if they are not there yet. It must not be
    changed.

    Args:
        name: Of what is kept.
        key: A digest of all that decides what is written.
        write: Writes the tables to a new folder.
    """
    folder = cache_folder() / "tables" / f"{name}-{key[:16]}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("w") as lock:
        flock(lock, LOCK_EX)  # other test processes wait for what this one writes
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".writing-") as scratch:
                write(Path(scratch, "tables"))
                Path(scratch, "tables").rename(folder)
    return folder
