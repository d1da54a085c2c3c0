"""Storage that blocks a Spark task, or kills its worker, at the task's first listing."""

import fcntl
import os
import signal
from pathlib import Path

from hudi_index_service.storage.store import Storage, StoredFile


class WaitingStorage(Storage):
    """Lists only while it can take a shared lock on the file `gate` at the root: never while a test
    holds an exclusive one."""

    def files(self, prefix: str = "") -> list[StoredFile]:
        with Path(self.uri, "gate").open("rb") as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
        return super().files(prefix)


class DeadlyStorage(Storage):
    """Kills the process that lists it while a file `deadly` exists at the root."""

    def files(self, prefix: str = "") -> list[StoredFile]:
        if Path(self.uri, "deadly").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return super().files(prefix)
