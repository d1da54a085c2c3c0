"""Runs a build's tasks as one Spark job, a base file a task.

Executors need this package and both native distributions installed, and JAVA_HOME (the Lucene index
type starts a small JVM inside the Python worker, inside the task: never before the fork).
"""

from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.util import inheritable_thread_target

from hudi_index_service.build.task import BuildTask, TaskOutcome, run_task
from hudi_index_service.errors import BuildFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkExecutor:
    """See `hudi_index_service.build.executor.Executor`.

    Args:
        spark: The session whose executors do the work.
        patience: Seconds without news after which None is yielded.
    """

    def __init__(self, spark: "SparkSession", *, patience: float = 1.0) -> None:
        self._spark = spark
        self._patience = patience

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        """Runs the job in a thread of its own, so that the caller keeps beating its heart.

        Outcomes arrive when the job ends: Spark hands results of a job over together.
        """
        context = self._spark.sparkContext
        group = f"hudi-index-build-{uuid4().hex[:8]}"

        def job() -> list[TaskOutcome]:
            context.setJobGroup(group, f"build {len(tasks)} index entries", True)
            return context.parallelize(tasks, len(tasks)).map(run_task).collect()

        with ThreadPoolExecutor(1, thread_name_prefix="spark-build") as pool:
            future: Future[list[TaskOutcome]] = pool.submit(inheritable_thread_target(job))
            try:
                while not future.done():
                    try:
                        future.result(timeout=self._patience)
                    except FutureTimeout:
                        yield None
                yield from future.result()
            except Py4JJavaError as error:
                # One lost executor or worker fails the job; entries published by then are there.
                cause = str(error.java_exception).split("\n", 1)[0]
                raise BuildFailed(
                    f"The Spark job {group} failed: {cause}.",
                    remedy="See Spark's log; the next build goes on with what is missing.",
                ) from error
            finally:
                if not future.done():
                    context.cancelJobGroup(group)
