"""Identifies the process of a build, so that others on the same machine can detect its end.

Host name and process id alone prove nothing: containers share host names, every container has a
process 1, and ids are reused. A process counts as gone only on two conditions. The record must come
from this same system, by boot id and process id namespace. And the system must have no process with
that id, or one with another start time.
"""

import os
import re
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class BuilderProcess:
    """One process, as stored in build records.

    Attributes:
        host: The host's name.
        pid: The process's id.
        boot_id: The boot id of the running kernel. This and the following attributes are None if
            /proc does not provide them.
        pid_namespace: The inode of the namespace of `pid`.
        process_started: The start time of the process, in clock ticks since the kernel's boot.
    """

    host: str
    pid: int
    boot_id: str | None = None
    pid_namespace: int | None = None
    process_started: int | None = None

    @classmethod
    def current(cls) -> Self:
        """The process that runs this code."""
        host, pid = socket.gethostname(), os.getpid()
        try:
            # In some containers, /proc belongs to another namespace and shows other processes.
            if (_PROC / "self").readlink() != Path(str(pid)):
                return cls(host, pid)
            boot_id = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
            namespace = re.fullmatch(r"pid:\[(\d+)\]", str((_PROC / "self/ns/pid").readlink()))
            started, _ = _status(pid)
        except (OSError, ValueError, IndexError):  # not Linux, or an incomplete /proc
            return cls(host, pid)
        if not boot_id or namespace is None:
            return cls(host, pid)
        return cls(host, pid, boot_id, int(namespace[1]), started)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self | None:
        """The process in a build record; None if the record does not identify it fully, as in older
        releases."""
        host, boot_id = record.get("host"), record.get("boot_id")
        numbers = [record.get(key) for key in ("pid", "pid_namespace", "process_started")]
        if not isinstance(host, str) or not isinstance(boot_id, str):
            return None
        pid, namespace, started = (each if isinstance(each, int) else None for each in numbers)
        if pid is None or namespace is None or started is None or pid <= 0:
            return None
        return cls(host, pid, boot_id, namespace, started)

    def to_dict(self) -> dict[str, Any]:
        """The form stored in build records, with the attributes' names, without unknown values."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def is_gone(self) -> bool:
        """Whether the process has certainly ended; False if this cannot be determined here."""
        current = BuilderProcess.current()
        if current.boot_id is None or self._system() != current._system():
            return False
        if self.pid == current.pid:
            return self.process_started != current.process_started
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            pass  # another user's process, or not a valid process id
        try:
            started, is_zombie = _status(self.pid)
        except (OSError, ValueError, IndexError):  # hidden from this user, or it just ended
            return False
        return started != self.process_started or is_zombie

    def _system(self) -> tuple[str, str | None, int | None]:
        return self.host, self.boot_id, self.pid_namespace


def _status(pid: int) -> tuple[int, bool]:
    """When a process started, see `BuilderProcess.process_started`; and whether it is dead and its
    parent has not waited for it yet.

    Raises:
        OSError: /proc/<pid>/stat cannot be read.
        ValueError, IndexError: it does not have the format described in proc(5).
    """
    # The second field, the command in parentheses, may contain any text; the third is the state.
    fields = (_PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
    state, threads, started = fields[0], int(fields[20 - 3]), int(fields[22 - 3])
    # A main thread that ended before the others also looks like a zombie.
    return started, state == "Z" and threads <= 1
