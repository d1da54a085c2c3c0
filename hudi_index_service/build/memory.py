"""Whether a worker has the memory that its tasks need, asked before the first of them.

What ends a process for lack of memory names no setting: the kernel kills it without a word, and a
Java machine that cannot reserve its heap takes its process along. A worker process holds the Java
heap (``lucene.heap_mb``, in which the index writer's ``build.memory_mb`` lie), and besides it
Python, Arrow's batches and what the Java machine has outside its heap.

Spark limits the *address space* of its Python workers (``RLIMIT_AS``) by
``spark.executor.pyspark.memory``, divided by the executor's cores. There all that is reserved
counts, touched or not, which is much more than what is held.
"""

import ctypes
import resource
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa

from hudi_index_service.config import settings
from hudi_index_service.errors import WorkerMemoryTooSmall

RESIDENT_MB = 300
"""What a worker holds besides the Java heap, in MiB: measured 254 to 300."""

RESERVED_MB = 1280
"""What a worker reserves besides the Java heap where its address space is limited, in MiB: builds
ran with 930, and did not start with 730."""

_MIB = 2**20
_M_ARENA_MAX = -8


@cache
def prepare_worker() -> None:
    """Checks the limits of this process, once; under one of the address space, lets this process
    reserve less.

    Raises:
        WorkerMemoryTooSmall: a limit is too low for a task; the message names it and the settings.
    """
    heap_mb = settings().lucene.heap_mb
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        check_address_space(limit // _MIB, heap_mb)
        # Each thread would reserve 64 MiB to allocate from, and Arrow's own allocator 1 GiB.
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)
        pa.set_memory_pool(pa.system_memory_pool())
    held = min(_control_group_limits(), default=None)
    if held is not None:
        check_held(held // _MIB, heap_mb)


def check_address_space(limit_mb: int, heap_mb: int) -> None:
    """Raises WorkerMemoryTooSmall if a worker's address space (in MiB) is too small."""
    needed = heap_mb + RESERVED_MB
    if limit_mb < needed:
        raise WorkerMemoryTooSmall(
            f"A Python worker may reserve {limit_mb} MiB (RLIMIT_AS; Spark sets it to "
            "spark.executor.pyspark.memory divided by spark.executor.cores), and needs "
            f"{needed}: lucene.heap_mb of {heap_mb} and {RESERVED_MB} besides.",
            remedy=f"Set spark.executor.pyspark.memory to {needed}m or more for each core, leave "
            "it out, or set lucene.heap_mb lower (HUDI_INDEX_LUCENE__HEAP_MB for the workers too).",
        )


def check_held(limit_mb: int, heap_mb: int) -> None:
    """Raises WorkerMemoryTooSmall if a container's memory (in MiB) does not hold one worker."""
    needed = heap_mb + RESIDENT_MB
    if limit_mb < needed:
        raise WorkerMemoryTooSmall(
            f"The container of this process may hold {limit_mb} MiB, and a worker alone needs "
            f"{needed}: lucene.heap_mb of {heap_mb} and {RESIDENT_MB} besides.",
            remedy="Give the container more memory (spark.executor.memoryOverhead, for each core), "
            "or set lucene.heap_mb lower (HUDI_INDEX_LUCENE__HEAP_MB for the workers too).",
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
