"""Runs a build's tasks as Spark tasks, with large base files in parts.

Executors need this package, both native distributions, and JAVA_HOME. The Lucene index type starts
a small JVM inside the Python worker during the task, never before the fork.

Spark returns all results of a job together, at its end. Each task's outcome arrives earlier through
an accumulator, which counts a task once, however often it was retried.
"""

import logging
from collections.abc import Collection, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from socket import gethostname
from typing import TYPE_CHECKING
from uuid import uuid4

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import AccumulatorParam
from pyspark.util import inheritable_thread_target

from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, TaskStatus, run_task
from hudi_index_service.build.entry.worker import Needs, check_address_space
from hudi_index_service.build.executor import Executor, Schedule, missing_runtimes
from hudi_index_service.config import settings
from hudi_index_service.errors import BuildFailed, NativeModuleMissing
from hudi_index_service.index.factory import index_type
from hudi_index_service.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

Ended = tuple[int, TaskOutcome]
"""A task's position in the schedule, and its outcome."""


class SparkExecutor(Executor):
    """See `hudi_index_service.build.executor.Executor`.

    Args:
        spark: The session whose executors do the work.

    Raises:
        BuildFailed: Spark has stopped.
    """

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        # One Python worker per core.
        with _connected("The build was not begun"):
            self.parallelism = self.processes = spark.sparkContext.defaultParallelism

    def missing_runtimes(self, index_types: Collection[str]) -> dict[str, NativeModuleMissing]:
        """See `Executor.missing_runtimes`. Runs the check as a Spark task on one executor, since
        the driver may lack what executors have. If Spark cannot run it, the build itself will fail.

        Raises:
            BuildFailed: Spark has stopped.
        """
        names = list(index_types)
        try:
            with _connected("The build was not begun"):
                context = self._spark.sparkContext
                (missing,) = context.parallelize([names], 1).map(_missing_runtimes).collect()
        except Py4JJavaError as error:
            cause = str(error.java_exception).split("\n", 1)[0]
            log.warning("Spark's executors could not be checked for %s: %s", names, cause)
            return {}
        return missing

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        """See `Executor.run`. Spark retries a task whose worker dies, as configured. If it then
        aborts the whole job, each remaining task runs in a job of its own, so that one failing task
        does not fail the others.

        Raises:
            BuildFailed: Spark has stopped.
            WorkerMemoryTooSmall: Spark would give its workers less than they need.
        """
        with _connected("The build failed"):
            self._check_memory(tasks)
        schedule = Schedule(tasks, slots=self.parallelism)
        try:
            yield from self._run(schedule)
            yield from self._run(schedule.undecided())
        finally:
            schedule.give_up()

    def _check_memory(self, tasks: Sequence[BuildTask]) -> None:
        conf = self._spark.sparkContext.getConf()
        limit = conf.get("spark.executor.pyspark.memory")
        if limit is not None and tasks:
            jvm = self._spark.sparkContext._jvm
            assert jvm is not None, "a running session has one"
            whole_mb = jvm.org.apache.spark.network.util.JavaUtils.byteStringAsMb(limit)
            heap_mb = conf.get("spark.executorEnv.HUDI_INDEX_LUCENE__HEAP_MB")
            needs = (
                Needs.of_heap(int(heap_mb or settings().lucene.heap_mb))
                if any(index_type(task.due.index_type).runs_jvm for task in tasks)
                else Needs.of_writer(max(task.memory_mb for task in tasks))
            )
            check_address_space(whole_mb // int(conf.get("spark.executor.cores") or 1), needs)

    def _run(self, schedule: Schedule) -> Generator[TaskOutcome | None, None, None]:
        if not schedule.tasks:
            return
        positions = range(len(schedule.tasks))
        with _Jobs(self._spark, schedule.tasks, self.parallelism, self.patience) as jobs:
            for ended in jobs.run([positions], tried_before=False):
                yield None if ended is None else schedule.ended(*ended)
            remaining = [(position,) for position in positions if not schedule.has_ended(position)]
            for ended in jobs.run(remaining, tried_before=True):
                yield None if ended is None else schedule.ended(*ended)


@contextmanager
def _connected(failure: str) -> Iterator[None]:
    """Turns a lost connection to Spark into BuildFailed. Exceptions raised in Java pass through.

    Args:
        failure: The beginning of the message: what failed.
    """
    try:
        yield
    except Py4JJavaError:
        raise
    except (Py4JError, OSError) as error:
        raise BuildFailed(
            f"{failure}: the connection to Spark is lost ({type(error).__name__}).",
            remedy="See why Spark's driver ended; the next build continues with what is missing.",
        ) from error


def _missing_runtimes(index_types: Sequence[str]) -> dict[str, NativeModuleMissing]:
    """The index types that cannot work on this executor."""
    return {
        name: NativeModuleMissing(
            f"On Spark's executor {gethostname()}: {error.message}",
            remedy=error.remedies
            + "Set executors' variables with spark.executorEnv.<NAME>, and ship packages with "
            "`hudi-index pack`.",
        )
        for name, error in missing_runtimes(index_types).items()
    }


class _Jobs:
    """Spark jobs for tasks, all in one job group, which is cancelled if the context ends early."""

    def __init__(
        self, spark: "SparkSession", tasks: Sequence[BuildTask], parallelism: int, patience: float
    ) -> None:
        self._context = spark.sparkContext
        self._tasks = tasks
        self._patience = patience
        self._group = f"hudi-index-build-{uuid4().hex[:8]}"
        self._accumulator = self._context.accumulator([], _Appended())
        self._seen_count = 0
        self._reported: set[int] = set()
        self._pool = ThreadPoolExecutor(parallelism, thread_name_prefix="spark-build")
        self._running: set[Future[list[Ended]]] = set()

    def __enter__(self) -> "_Jobs":
        return self

    def __exit__(self, *_: object) -> None:
        if self._running:
            self._pool.shutdown(wait=False, cancel_futures=True)
            with suppress(Py4JError, OSError):  # Spark is gone, and its jobs with it
                self._context.cancelJobGroup(self._group)
        self._pool.shutdown()

    def run(self, jobs: Sequence[Sequence[int]], *, tried_before: bool) -> Iterator[Ended | None]:
        """Runs the tasks at the given positions, one job per sequence. Yields outcomes as they are
        known, and None in between. If Spark aborts a job, its unfinished tasks are left out, or
        reported as failed if they were tried before.

        Raises:
            BuildFailed: a job was cancelled, or Spark itself has stopped.
        """
        with _connected("The build failed"):
            positions = {self._pool.submit(self._target(job)): job for job in jobs}
        self._running = set(positions)
        while self._running:
            done, _ = wait(self._running, self._patience, FIRST_COMPLETED)
            outcomes = list(self._new_outcomes())
            for future in done:
                self._running.discard(future)
                outcomes += self._results(future, positions[future], tried_before)
            yield from outcomes
            if not outcomes:
                yield None

    def _target(self, job: Sequence[int]):  # type: ignore[no-untyped-def]  # PySpark's is untyped
        tasks = [(position, self._tasks[position]) for position in job]
        accumulator = self._accumulator

        def run(item: tuple[int, BuildTask]) -> Ended:
            position, task = item
            ended = (position, run_task(task))
            accumulator.add([ended])
            return ended

        def submit() -> list[Ended]:
            self._context.setJobGroup(self._group, self._description(job), True)
            return self._context.parallelize(tasks, len(tasks)).map(run).collect()

        return inheritable_thread_target(submit)

    def _description(self, job: Sequence[int]) -> str:
        tasks = [self._tasks[position] for position in job]
        entries = {(task.due.base_file.path, task.due.index_type) for task in tasks}
        first = tasks[0]
        return (
            f"build {first.build_id} of {first.storage.uri}: "
            f"{counted(len(entries), 'entry')} in {counted(len(tasks), 'task')}"
        )

    def _new_outcomes(self) -> Iterator[Ended]:
        """The outcomes that arrived since the last call."""
        outcomes = self._accumulator.value
        end = len(outcomes)  # once: Spark's own thread appends to it
        new, self._seen_count = outcomes[self._seen_count : end], end
        yield from self._unreported(new)

    def _unreported(self, ended: Sequence[Ended]) -> Iterator[Ended]:
        for position, outcome in ended:
            if position not in self._reported:
                self._reported.add(position)
                yield position, outcome

    def _results(
        self, future: Future[list[Ended]], job: Sequence[int], tried_before: bool
    ) -> list[Ended]:
        try:
            with _connected(f"The Spark job {self._group} failed"):
                return list(self._unreported(future.result()))
        except Py4JJavaError as error:
            cause = str(error.java_exception).split("\n", 1)[0]
            if "Job aborted due to stage failure" not in cause:
                raise BuildFailed(
                    f"The Spark job {self._group} failed: {cause}.",
                    remedy="See Spark's log; the next build continues with what is missing.",
                ) from error
            failures = [(position, self._failed_outcome(position, cause)) for position in job]
            return list(self._unreported(failures)) if tried_before else []

    def _failed_outcome(self, position: int, cause: str) -> TaskOutcome:
        due = self._tasks[position].due
        return TaskOutcome(due.base_file.path, due.index_type, TaskStatus.FAILED, error=cause)


class _Appended(AccumulatorParam[list[Ended]]):
    def zero(self, value: list[Ended]) -> list[Ended]:
        return []

    def addInPlace(self, value1: list[Ended], value2: list[Ended]) -> list[Ended]:
        value1.extend(value2)
        return value1
