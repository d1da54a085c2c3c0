"""The jobs and stages that a Spark session ran, and the rows they shuffled."""

from typing import Any

from pyspark.sql import SparkSession


def jobs_so_far(spark: SparkSession) -> int:
    """Number of jobs started so far, counted by the scheduler: Spark's own list keeps only about
    the last thousand."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def last_stage(spark: SparkSession) -> int:
    """Id of the last stage that started; -1 if none did."""
    return max((stage.stageId() for stage in _stages(spark)), default=-1)


def rows_shuffled_since(spark: SparkSession, stage: int) -> int:
    """Shuffle rows written by the stages after this one."""
    return sum(each.shuffleWriteRecords() for each in _stages(spark) if each.stageId() > stage)


def tasks_since(spark: SparkSession, stage: int) -> list[int]:
    """Numbers of tasks of the stages after this one."""
    return [each.numTasks() for each in _stages(spark) if each.stageId() > stage]


def _stages(spark: SparkSession) -> list[Any]:
    """Spark's metrics of the stages it still keeps, about the last thousand."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    defaults = (getattr(store, f"stageList$default${n}")() for n in range(2, 6))
    stages = store.stageList(None, *defaults)
    return [stages.apply(number) for number in range(stages.size())]
