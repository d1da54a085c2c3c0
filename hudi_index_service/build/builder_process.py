"""Which process runs a build, so that others on the same machine can tell that it is gone.

Host name and process id alone prove nothing: containers share host names, every container has a
process 1, and ids are used again. A process counts as gone only if the record comes from this very
system, as its boot id and its namespace of process ids say, and if no process has that id there, or
one that was started at another time.
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
    """One process, as build records name it.

    Attributes:
        host: The host's name.
        pid: The process's id.
        boot_id: Of the running kernel; None where /proc does not tell, as for what follows.
        pid_namespace: The inode of the namespace in which `pid` holds.
        process_started: When the process was started, in the kernel's clock ticks since its start.
    """

    host: str
    pid: int
    boot_id: str | None = None
    pid_namespace: int | None = None
    process_started: int | None = None

    @classmethod
    def current(cls) -> Self:
        """The process that asks."""
        host, pid = socket.gethostname(), os.getpid()
        try:
            # A /proc of another namespace, as some containers have it, shows other processes.
            if (_PROC / "self").readlink() != Path(str(pid)):
                return cls(host, pid)
            boot_id = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
            namespace = re.fullmatch(r"pid:\[(\d+)\]", str((_PROC / "self/ns/pid").readlink()))
            started = _Stat.of(pid).started
        except (OSError, ValueError, IndexError):  # no Linux, or not all of its /proc
            return cls(host, pid)
        if not boot_id or namespace is None:
            return cls(host, pid)
        return cls(host, pid, boot_id, int(namespace[1]), started)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self | None:
        """The process that a build record names; None if it names none for certain, as records of
        older releases do."""
        host, boot_id = record.get("host"), record.get("boot_id")
        numbers = [record.get(key) for key in ("pid", "pid_namespace", "process_started")]
        if not isinstance(host, str) or not isinstance(boot_id, str):
            return None
        pid, namespace, started = (each if isinstance(each, int) else None for each in numbers)
        if pid is None or namespace is None or started is None or pid <= 0:
            return None
        return cls(host, pid, boot_id, namespace, started)

    def to_dict(self) -> dict[str, Any]:
        """As build records have it, with the attributes' names; what is not known is left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def is_gone(self) -> bool:
        """Whether the process has certainly ended: False where that cannot be told from here."""
        here = BuilderProcess.current()
        if here.boot_id is None or self._system() != here._system():
            return False
        if self.pid == here.pid:
            return self.process_started != here.process_started
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            pass  # another user's, or no process id at all
        try:
            stat = _Stat.of(self.pid)
        except (OSError, ValueError, IndexError):  # hidden from this user, or ended just now
            return False
        return stat.started != self.process_started or stat.is_zombie

    def _system(self) -> tuple[str, str | None, int | None]:
        return self.host, self.boot_id, self.pid_namespace


@dataclass(frozen=True, slots=True)
class _Stat:
    """What /proc/<pid>/stat says of a process.

    Attributes:
        started: As `BuilderProcess.process_started`.
        is_zombie: It is dead, and its parent has not looked yet.
    """

    started: int
    is_zombie: bool

    @classmethod
    def of(cls, pid: int) -> Self:
        """Reads it.

        Raises:
            OSError: it cannot be read.
            ValueError, IndexError: it is not as proc(5) describes it.
        """
        # The second field, the command in parentheses, may hold anything; the third is the state.
        fields = (_PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
        state, threads, started = fields[0], int(fields[20 - 3]), int(fields[22 - 3])
        # A main thread that has ended before the others looks like a zombie, too.
        return cls(started, state == "Z" and threads <= 1)
