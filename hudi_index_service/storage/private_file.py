"""Files that only this user may read, such as those in the state folder."""

import os
import tempfile
from pathlib import Path


def write_private_file(path: Path, content: bytes) -> None:
    """Writes the file atomically, with mode 0600; missing folders are created with mode 0700.

    Raises:
        OSError: the file cannot be written.
    """
    # `mkdir` with parents applies its mode to the last folder only.
    for folder in reversed((path.parent, *path.parent.parents)):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    # `mkstemp` creates it with mode 0600.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
