"""Keeps the index of one Hudi table up to date: wait for a table service, build, clean.

Trigger it with the table's base path, for example after the job that writes the table:

    airflow dags trigger hudi_index --conf '{"table": "/data/messages"}'

The build is a Spark job on the Spark connection ``spark_default``; the Airflow worker needs
spark-submit on its PATH, and Spark's executors this package.
"""

import os
import sys
from datetime import timedelta

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Param, dag

from hudi_index_service.airflow.sensor import TableServiceSensor
from hudi_index_service.airflow.tasks import clean_index
from hudi_index_service.submit import APPLICATION

TABLE = "{{ params.table }}"
STRATEGY = "{{ params.strategy }}"


@dag(
    dag_id="hudi_index",
    schedule=None,
    catchup=False,
    max_active_runs=4,
    tags=["hudi", "index"],
    params={
        "table": Param(
            type="string", minLength=1, description="Base path: the folder that holds .hoodie"
        ),
        "strategy": Param(
            "incremental",
            enum=["incremental", "all"],
            description="incremental: what clustering or compaction wrote; all: every base file",
        ),
    },
)
def hudi_index() -> None:
    wait = TableServiceSensor(
        task_id="wait_for_table_service",
        table=TABLE,
        strategy=STRATEGY,
        mode="reschedule",
        poke_interval=timedelta(minutes=1),
        timeout=timedelta(hours=6),
        # Nothing to build within that time is no failure: the run ends as skipped.
        soft_fail=True,
    )
    build = SparkSubmitOperator(
        task_id="build_index",
        application=str(APPLICATION),
        application_args=["--table", TABLE, "--strategy", STRATEGY],
        name="hudi-index-build",
        # Driver and executors have to run the same Python.
        env_vars={"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)},
        retries=2,
        retry_delay=timedelta(minutes=1),
    )
    wait >> build >> clean_index(TABLE)


hudi_index()
