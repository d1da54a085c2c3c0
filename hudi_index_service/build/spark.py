"""Runs a build's tasks as Spark tasks: base files, large ones in parts.

Executors need this package and both native distributions installed, and JAVA_HOME (the Lucene index
type starts a small JVM inside the Python worker, inside the task: never before the fork).

Spark hands the results of a job over together, at its end. What a task reports as it ends comes by
an accumulator, which counts a task once however often it was tried.
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

from hudi_index_service.build.executor import Executor
from hudi_index_service.build.memory import Needs, check_address_space, runs_jvm
from hudi_index_service.build.schedule import Schedule
from hudi_index_service.build.task import BuildTask, TaskOutcome, TaskStatus, run_task
from hudi_index_service.config import settings
from hudi_index_service.errors import BuildFailed, NativeModuleMissing
from hudi_index_service.index.factory import check_runtime, index_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

Ended = tuple[int, TaskOutcome]
"""A task's position in the schedule, and how it ended."""


class SparkExecutor(Executor):
    """See `hudi_index_service.build.executor.Executor`.

    Args:
        spark: The session whose executors do the work.
        patience: Seconds without news after which None is yielded.
    """

    def __init__(self, spark: "SparkSession", *, patience: float = 1.0) -> None:
        self._spark = spark
        self._patience = patience
        # A core, a Python worker.
        self.parallelism = self.processes = spark.sparkContext.defaultParallelism

    def check_runtime(self, index_types: Collection[str]) -> None:
        """See `Executor.check_runtime`. The driver may lack what its executors have: a task of
        Spark's looks, on one of them. If Spark cannot run it, the build says so itself.

        Raises:
            BuildFailed: Spark has stopped.
        """
        names = list(index_types)
        try:
            with _connected("The build was not begun"):
                context = self._spark.sparkContext
                found = context.parallelize([names], 1).map(_missing_runtime).collect()
        except Py4JJavaError as error:
            cause = str(error.java_exception).split("\n", 1)[0]
            log.warning("Spark's executors could not be asked for what %s needs: %s", names, cause)
            return
        for missing in filter(None, found):
            raise missing

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        """See `Executor.run`. A task whose worker dies is tried again as Spark is set up for it; if
        Spark then gives the whole job up, the tasks that are left are run one job each, so that
        none fails for another's sake.

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
        allowed = conf.get("spark.executor.pyspark.memory")
        if allowed is not None and tasks:
            jvm = self._spark.sparkContext._jvm
            assert jvm is not None, "a running session has one"
            whole_mb = jvm.org.apache.spark.network.util.JavaUtils.byteStringAsMb(allowed)
            heap_mb = conf.get("spark.executorEnv.HUDI_INDEX_LUCENE__HEAP_MB")
            needs = (
                Needs.of_heap(int(heap_mb or settings().lucene.heap_mb))
                if any(runs_jvm(task.due.index_type) for task in tasks)
                else Needs.of_writer(max(task.memory_mb for task in tasks))
            )
            check_address_space(whole_mb // int(conf.get("spark.executor.cores") or 1), needs)

    def _run(self, schedule: Schedule) -> Generator[TaskOutcome | None, None, None]:
        if not schedule.tasks:
            return
        everything = range(len(schedule.tasks))
        with _Jobs(self._spark, schedule.tasks, self.parallelism, self._patience) as jobs:
            for ended in jobs.run([everything], tried_before=False):
                yield None if ended is None else schedule.ended(*ended)
            left = [(position,) for position in everything if not schedule.has_ended(position)]
            for ended in jobs.run(left, tried_before=True):
                yield None if ended is None else schedule.ended(*ended)


@contextmanager
def _connected(failed: str) -> Iterator[None]:
    """Turns a lost connection to Spark into BuildFailed. What Java itself raises passes.

    Args:
        failed: What has failed then, for the message.
    """
    try:
        yield
    except Py4JJavaError:
        raise
    except (Py4JError, OSError) as error:
        raise BuildFailed(
            f"{failed}: the connection to Spark is lost ({type(error).__name__}).",
            remedy="See why Spark's driver ended; the next build goes on with what is missing.",
        ) from error


def _missing_runtime(index_types: Sequence[str]) -> NativeModuleMissing | None:
    """What an index type lacks in a worker of an executor; None if there is everything."""
    for name in index_types:
        try:
            check_runtime(index_type(name))
        except NativeModuleMissing as error:
            return NativeModuleMissing(
                f"On Spark's executor {gethostname()}: {error.message}",
                remedy=f"{error.remedy} Executors get variables by spark.executorEnv.<NAME>, and "
                "packages by `hudi-index pack`.",
            )
    return None


class _Jobs:
    """Spark jobs for tasks, all in one job group, which is cancelled if it is left early."""

    def __init__(
        self,
        spark: "SparkSession",
        tasks: Sequence[BuildTask],
        parallelism: int,
        patience: float,
    ) -> None:
        self._context = spark.sparkContext
        self._tasks = tasks
        self._patience = patience
        self._group = f"hudi-index-build-{uuid4().hex[:8]}"
        self._live = self._context.accumulator([], _Appended())
        self._told = 0
        self._known: set[int] = set()
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
        """Runs the tasks at the given positions, a job for each sequence of them. Yields what is
        known, None when nothing is. Of a job that Spark gave up, the tasks that did not end are
        left out, unless they were tried before: then they failed.

        Raises:
            BuildFailed: a job was cancelled, or Spark itself has stopped.
        """
        positions = {self._pool.submit(self._target(job)): job for job in jobs}
        self._running = set(positions)
        while self._running:
            done, _ = wait(self._running, self._patience, FIRST_COMPLETED)
            news = list(self._news())
            for future in done:
                self._running.discard(future)
                news += self._results(future, positions[future], tried_before)
            yield from news
            if not news:
                yield None

    def _target(self, job: Sequence[int]):  # type: ignore[no-untyped-def]  # PySpark's is untyped
        tasks = [(position, self._tasks[position]) for position in job]
        live = self._live

        def run(numbered: tuple[int, BuildTask]) -> Ended:
            position, task = numbered
            ended = (position, run_task(task))
            live.add([ended])
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
            f"{len(entries)} entries in {len(tasks)} tasks"
        )

    def _news(self) -> Iterator[Ended]:
        """What tasks have told since it was asked for last."""
        told = self._live.value
        end = len(told)  # once: Spark's own thread appends to it
        fresh, self._told = told[self._told : end], end
        yield from self._unknown(fresh)

    def _unknown(self, ended: Sequence[Ended]) -> Iterator[Ended]:
        for position, outcome in ended:
            if position not in self._known:
                self._known.add(position)
                yield position, outcome

    def _results(
        self, future: Future[list[Ended]], job: Sequence[int], tried_before: bool
    ) -> list[Ended]:
        with _connected(f"The Spark job {self._group} failed"):
            return self._results_of(future, job, tried_before)

    def _results_of(
        self, future: Future[list[Ended]], job: Sequence[int], tried_before: bool
    ) -> list[Ended]:
        try:
            return list(self._unknown(future.result()))
        except Py4JJavaError as error:
            cause = str(error.java_exception).split("\n", 1)[0]
            if "Job aborted due to stage failure" not in cause:
                raise BuildFailed(
                    f"The Spark job {self._group} failed: {cause}.",
                    remedy="See Spark's log; the next build goes on with what is missing.",
                ) from error
            lost = [(position, self._lost(position, cause)) for position in job]
            return list(self._unknown(lost)) if tried_before else []

    def _lost(self, position: int, cause: str) -> TaskOutcome:
        due = self._tasks[position].due
        return TaskOutcome(due.base_file.path, due.index_type, TaskStatus.FAILED, error=cause)


class _Appended(AccumulatorParam[list[Ended]]):
    def zero(self, value: list[Ended]) -> list[Ended]:
        return []

    def addInPlace(self, value1: list[Ended], value2: list[Ended]) -> list[Ended]:
        value1.extend(value2)
        return value1
