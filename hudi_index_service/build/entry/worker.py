"""What a task takes of the machine that it runs on: memory, and a folder for unpublished files.

A process that runs out of memory ends without naming a setting: the kernel kills it silently, and a
JVM that cannot reserve its heap ends the whole process. So the memory is checked before the first
task. A worker process holds the JVM's heap (``lucene.heap_mb``, which includes the index writer's
``build.memory_mb``), and also Python, Arrow's batches and the JVM's memory outside the heap. Index
types without a JVM hold ``build.memory_mb`` themselves.

Spark limits the *address space* of its Python workers (``RLIMIT_AS``) to
``spark.executor.pyspark.memory`` divided by the executor's cores. All reserved memory counts
towards this limit, used or not, which is much more than the memory held.

A folder is deleted when its task ends or, if the process was killed, when the next task begins on
the same machine."""

import ctypes
import resource
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pyarrow as pa

from hudi_index_service.config import settings
from hudi_index_service.errors import WorkerMemoryTooSmall
from hudi_index_service.process import control_group_limits
from hudi_index_service.storage.temporary_folder import BUILDING, remove_abandoned, temporary_folder

RESIDENT_MB = 300
"""MiB that a worker holds in addition to the heap or the writer's memory; measured: 254 to 300."""

RESERVED_MB = 1280
"""MiB that a worker reserves in addition to the JVM's heap if its address space is limited; builds
ran with 930, and did not start with 730."""

RESERVED_WITHOUT_JVM_MB = 640
"""The same for a worker without a JVM, in addition to the writer's memory."""

_MIB = 2**20
_M_ARENA_MAX = -8


@dataclass(frozen=True, slots=True)
class Needs:
    """The memory that a setting gives a worker's tasks, and the worker's other memory, in MiB."""

    setting: str
    set_mb: int
    reserved_mb: int

    @classmethod
    def of_heap(cls, heap_mb: int) -> "Needs":
        """The needs of a worker with a JVM."""
        return cls("lucene.heap_mb", heap_mb, RESERVED_MB)

    @classmethod
    def of_writer(cls, memory_mb: int) -> "Needs":
        """The needs of a worker without a JVM."""
        return cls("build.memory_mb", memory_mb, RESERVED_WITHOUT_JVM_MB)

    @property
    def remedy(self) -> str:
        """The end of a remedy: how to reduce the needs."""
        variable = "HUDI_INDEX_" + self.setting.upper().replace(".", "__")
        return f"or lower {self.setting} (for the workers too: {variable})."


@cache
def prepare_worker(memory_mb: int, *, runs_jvm: bool) -> None:
    """Checks the memory limits of this process, once per kind of task. If the address space is
    limited, makes this process reserve less.

    Args:
        memory_mb: The MiB that the task's index writer may hold.
        runs_jvm: Whether the writer runs in a JVM inside this process.

    Raises:
        WorkerMemoryTooSmall: a limit is too low for a task; the message names it and the settings.
    """
    needs = Needs.of_heap(settings().lucene.heap_mb) if runs_jvm else Needs.of_writer(memory_mb)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        check_address_space(limit // _MIB, needs)
        # By default, each thread reserves 64 MiB for its allocations, and Arrow's allocator 1 GiB.
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)
        pa.set_memory_pool(pa.system_memory_pool())
    memory_limit = min(control_group_limits(), default=None)
    if memory_limit is not None:
        check_held(memory_limit // _MIB, needs)


def check_address_space(limit_mb: int, needs: Needs) -> None:
    """Raises WorkerMemoryTooSmall if a worker's address space (in MiB) is too small."""
    needed_mb = needs.set_mb + needs.reserved_mb
    if limit_mb < needed_mb:
        raise WorkerMemoryTooSmall(
            f"A Python worker may reserve {limit_mb} MiB (RLIMIT_AS; Spark sets it to "
            "spark.executor.pyspark.memory divided by spark.executor.cores), but needs "
            f"{needed_mb} MiB: {needs.setting} of {needs.set_mb} and {needs.reserved_mb} more.",
            remedy=f"Set spark.executor.pyspark.memory to {needed_mb}m or more for each core, "
            f"leave it out, {needs.remedy}",
        )


def check_held(limit_mb: int, needs: Needs) -> None:
    """Raises WorkerMemoryTooSmall if a container's memory (in MiB) is too small for one worker."""
    needed_mb = needs.set_mb + RESIDENT_MB
    if limit_mb < needed_mb:
        raise WorkerMemoryTooSmall(
            f"The container of this process has a limit of {limit_mb} MiB, but one worker needs "
            f"{needed_mb} MiB: {needs.setting} of {needs.set_mb} and {RESIDENT_MB} more.",
            remedy="Give the container more memory (spark.executor.memoryOverhead, for each core), "
            f"{needs.remedy}",
        )


class Scratch(ExitStack[None]):
    """A scratch folder below the system's folder for temporary files (``TMPDIR``), made when it is
    first needed, and deleted at the end of the block: a context manager."""

    @cached_property
    def folder(self) -> Path:
        """The folder. First removes those that this user's killed processes left there. Raises
        OSError if it cannot be created."""
        remove_abandoned()
        # It swallows no error, which its type does not say.
        return self.enter_context(temporary_folder(BUILDING))  # type: ignore[arg-type]
