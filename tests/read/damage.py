"""What can happen to the data file of an entry."""

import os
import shutil
from pathlib import Path


def overwrite(data: Path) -> None:
    """Overwrites the file with zeros."""
    with data.open("r+b") as file:
        file.write(bytes(data.stat().st_size))


def overwrite_keeping_mtime(data: Path) -> None:
    """Overwrites the file and restores its modification time."""
    before = data.stat()
    overwrite(data)
    os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))


def truncate(data: Path) -> None:
    """Cuts off the end of the file."""
    os.truncate(data, data.stat().st_size - 10)


def replace_file(data: Path) -> None:
    """Replaces the file by another of the same length and time."""
    other = Path(shutil.copy2(data, data.with_suffix(".new")))
    other.replace(data)


def touch(data: Path) -> None:
    """Changes the state of the file, but neither its content nor its times."""
    data.chmod(0o600)
    data.chmod(0o644)


def delete_entry(data: Path) -> None:
    """Deletes the entry's folder."""
    shutil.rmtree(data.parent)


CHANGES = [overwrite, overwrite_keeping_mtime, truncate, replace_file]
