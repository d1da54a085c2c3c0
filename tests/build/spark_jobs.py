"""What a Spark session is doing now."""

from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def running_jobs(spark: "SparkSession") -> dict[str, int]:
    """Description and number of tasks of the jobs that run now, as far as Spark has noted it: its
    store learns of a job's end a little later than whoever waits for the job."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(number) for number in range(jobs.size())]
    return {
        job.description().get(): job.numTasks()
        for job in found
        if job.status().toString() == "RUNNING" and job.description().isDefined()
    }


def all_jobs_end(spark: "SparkSession", seconds: float = 60.0) -> bool:
    """Waits until no job runs; False if one still does after that time."""
    waiting, end = Event(), monotonic() + seconds
    while running_jobs(spark):
        if monotonic() > end:
            return False
        waiting.wait(0.02)
    return True
