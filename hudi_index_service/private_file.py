"""Files for this user alone, such as those in the state folder."""

import os
import tempfile
from pathlib import Path


def write_private_file(path: Path, content: bytes) -> None:
    """Writes the file at once or not at all, with mode 0600; folders that are missing on its way
    are made with mode 0700.

    Raises:
        OSError: it cannot be written.
    """
    # By itself, `mkdir` gives its mode to the last folder only.
    for folder in reversed((path.parent, *path.parent.parents)):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    # Made with mode 0600.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
