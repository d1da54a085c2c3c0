"""Whether a worker has the memory that its tasks need, asked before the first of them.

What ends a process for lack of memory names no setting: the kernel kills it without a word, and a
Java machine that cannot reserve its heap takes its process along. A worker process holds the Java
heap (``lucene.heap_mb``, in which the index writer's ``build.memory_mb`` lie), and besides it
Python, Arrow's batches and what the Java machine has outside its heap. Index types that need no
Java machine hold ``build.memory_mb`` themselves.

Spark limits the *address space* of its Python workers (``RLIMIT_AS``) by
``spark.executor.pyspark.memory``, divided by the executor's cores. There all that is reserved
counts, touched or not, which is much more than what is held.
"""

import ctypes
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa

from hudi_index_service.config import settings
from hudi_index_service.errors import WorkerMemoryTooSmall
from hudi_index_service.index.factory import index_type

RESIDENT_MB = 300
"""What a worker holds besides the heap, or the writer's memory, in MiB: measured 254 to 300."""

RESERVED_MB = 1280
"""What a worker reserves besides the Java heap where its address space is limited, in MiB: builds
ran with 930, and did not start with 730."""

RESERVED_WITHOUT_JVM_MB = 640
"""The same of a worker without a Java machine, besides the writer's memory."""

_MIB = 2**20
_M_ARENA_MAX = -8


@dataclass(frozen=True, slots=True)
class Needs:
    """What a worker's tasks hold by a setting, and what the worker takes besides, in MiB."""

    setting: str
    set_mb: int
    reserved_mb: int

    @classmethod
    def of_heap(cls, heap_mb: int) -> "Needs":
        """Of a worker with a Java machine."""
        return cls("lucene.heap_mb", heap_mb, RESERVED_MB)

    @classmethod
    def of_writer(cls, memory_mb: int) -> "Needs":
        """Of a worker without one."""
        return cls("build.memory_mb", memory_mb, RESERVED_WITHOUT_JVM_MB)

    @property
    def remedy(self) -> str:
        """How it comes to need less."""
        variable = "HUDI_INDEX_" + self.setting.upper().replace(".", "__")
        return f"or set {self.setting} lower ({variable} for the workers too)."


def runs_jvm(index_type_name: str) -> bool:
    """Whether indexes of that type are built in a Java machine of the worker's process. Raises
    IndexTypeUnknown."""
    return bool(getattr(index_type(index_type_name), "runs_jvm", False))


@cache
def prepare_worker(memory_mb: int, *, runs_jvm: bool) -> None:
    """Checks the limits of this process, once for each kind of task; under one of the address
    space, lets this process reserve less.

    Args:
        memory_mb: What the task's index writer may hold.
        runs_jvm: Whether it does so in a Java machine of this process.

    Raises:
        WorkerMemoryTooSmall: a limit is too low for a task; the message names it and the settings.
    """
    needs = Needs.of_heap(settings().lucene.heap_mb) if runs_jvm else Needs.of_writer(memory_mb)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        check_address_space(limit // _MIB, needs)
        # Each thread would reserve 64 MiB to allocate from, and Arrow's own allocator 1 GiB.
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)
        pa.set_memory_pool(pa.system_memory_pool())
    held = min(_control_group_limits(), default=None)
    if held is not None:
        check_held(held // _MIB, needs)


def check_address_space(limit_mb: int, needs: Needs) -> None:
    """Raises WorkerMemoryTooSmall if a worker's address space (in MiB) is too small."""
    needed = needs.set_mb + needs.reserved_mb
    if limit_mb < needed:
        raise WorkerMemoryTooSmall(
            f"A Python worker may reserve {limit_mb} MiB (RLIMIT_AS; Spark sets it to "
            "spark.executor.pyspark.memory divided by spark.executor.cores), and needs "
            f"{needed}: {needs.setting} of {needs.set_mb} and {needs.reserved_mb} besides.",
            remedy=f"Set spark.executor.pyspark.memory to {needed}m or more for each core, leave "
            f"it out, {needs.remedy}",
        )


def check_held(limit_mb: int, needs: Needs) -> None:
    """Raises WorkerMemoryTooSmall if a container's memory (in MiB) does not hold one worker."""
    needed = needs.set_mb + RESIDENT_MB
    if limit_mb < needed:
        raise WorkerMemoryTooSmall(
            f"The container of this process may hold {limit_mb} MiB, and a worker alone needs "
            f"{needed}: {needs.setting} of {needs.set_mb} and {RESIDENT_MB} besides.",
            remedy="Give the container more memory (spark.executor.memoryOverhead, for each core), "
            f"{needs.remedy}",
        )


def _control_group_limits(
    groups: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> Iterator[int]:
    """Limits of the control groups that this process is in, in bytes; of both versions."""
    for line in _lines(groups):
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, file = (
            (mount / "memory", "memory.limit_in_bytes") if controllers else (mount, "memory.max")
        )
        inner = root / name.lstrip("/")
        for folder in (inner, *inner.parents):
            if folder.is_relative_to(root):
                # "max", and version 1's largest number, are no limit.
                yield from (int(text) for text in _lines(folder / file) if text.isdigit())


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:  # no such group, or none that this process may look at
        return []
