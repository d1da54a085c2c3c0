"""Storage that makes a Spark task wait, or its worker die, at the task's first listing."""

import fcntl
import os
import signal
from pathlib import Path

from hudi_index_service.storage import Storage, StoredFile


class WaitingStorage(Storage):
    """Lists only once it can lock the file `gate` at the root, shared: never while a test holds it
    exclusively."""

    def files(self, prefix: str = "") -> list[StoredFile]:
        with Path(self.uri, "gate").open("rb") as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
        return super().files(prefix)


class DeadlyStorage(Storage):
    """Kills the process that lists it, while there is a file `deadly` at the root; with a file
    `once` beside it, only the first."""

    def files(self, prefix: str = "") -> list[StoredFile]:
        root = Path(self.uri)
        if (root / "deadly").exists():
            if (root / "once").exists():
                (root / "deadly").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().files(prefix)
