"""What processes take, as Linux tells it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """A process and all below it; none of those that have ended."""
    found = [pid] if _state(pid) not in ("", "Z") else []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += tree(int(child))
    return found


def _state(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def pss_mib(*pids: int) -> float:
    """Their proportional set sizes in MiB: memory that several share counts once in all."""
    return round(sum(map(_pss_kib, pids)) / 1024, 1)


def _pss_kib(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def cpu_seconds(pid: int) -> float:
    """The processor time of a process with all its children, also those that have ended."""
    return sum(_times(pid)) / _TICKS + sum(sum(_times(each)[:2]) for each in tree(pid)[1:]) / _TICKS


def _times(pid: int) -> tuple[int, ...]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return (0, 0, 0, 0)
    return tuple(map(int, text.rpartition(")")[2].split()[11:15]))


def with_jvm(pids: list[int]) -> Iterator[int]:
    """Those that have a JVM."""
    for pid in pids:
        with suppress(OSError):
            if "libjvm" in Path(f"/proc/{pid}/maps").read_text():
                yield pid
