"""The jobs that a Spark session is running."""

from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def running_jobs(spark: "SparkSession") -> dict[str, int]:
    """Description and number of tasks of each running job, according to Spark's status store, which
    learns of a job's end slightly later than the caller that waits for the job."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(number) for number in range(jobs.size())]
    return {
        job.description().get(): job.numTasks()
        for job in found
        if job.status().toString() == "RUNNING" and job.description().isDefined()
    }


def all_jobs_end(spark: "SparkSession", seconds: float = 60.0) -> bool:
    """Waits until no job is running; False if one still is after that time."""
    waiting, end = Event(), monotonic() + seconds
    while running_jobs(spark):
        if monotonic() > end:
            return False
        waiting.wait(0.02)
    return True
