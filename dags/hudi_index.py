"""Keeps the index of one Hudi table up to date: wait for a table service, build, clean.

Trigger it with the table's base path, for example after the job that writes the table:

    airflow dags trigger hudi_index --conf '{"table": "/data/messages"}'

The index need not exist: it is defined by the hoodie.index.* keys that the table's writers stored
with their commits, or by those given here:

    … --conf '{"table": "/data/messages", "hoodie_conf": {"hoodie.index.columns": "msg;sender"}}'

With the Spark connection ``spark_default`` the build is a Spark job: the Airflow worker needs
spark-submit on its PATH, and the executors need this package. Without that connection the build
runs in the Airflow worker, which needs no Spark, but a JDK 17 that ``JAVA_HOME`` names.
"""

import os
import sys
from datetime import timedelta

from airflow.sdk import Param, dag

from hudi_index_service.airflow.build_operator import BuildIndexOperator
from hudi_index_service.airflow.sensor import TableServiceSensor
from hudi_index_service.airflow.tasks import clean_index

TABLE = "{{ params.table }}"
STRATEGY = "{{ params.strategy }}"
# In the format of a properties file: one key per line.
HOODIE_CONF = (
    "{% for key, value in params.hoodie_conf.items() %}{{ key }}={{ value }}\n{% endfor %}"
)


@dag(
    dag_id="hudi_index",
    schedule=None,
    catchup=False,
    # It runs only when triggered, and then it should not wait for an unpause.
    is_paused_upon_creation=False,
    max_active_runs=4,
    tags=["hudi", "index"],
    params={
        "table": Param(
            type="string", minLength=1, description="Base path: the folder that holds .hoodie"
        ),
        "strategy": Param(
            "auto",
            enum=["auto", "incremental", "all", "refresh"],
            description="incremental: base files that clustering or compaction wrote; all: every "
            "base file; auto: the strategy in hoodie.index.strategy, or incremental",
        ),
        "hoodie_conf": Param(
            {},
            type="object",
            description="Keys hoodie.index.*, which override those in the table's commits",
        ),
        "when_idle": Param(
            "fail",
            enum=["fail", "wait"],
            description="If the table has no index, or no base file is indexed or due: fail at "
            "once, or wait for a table service",
        ),
    },
)
def hudi_index() -> None:
    wait = TableServiceSensor(
        task_id="wait_for_table_service",
        table=TABLE,
        strategy=STRATEGY,
        hoodie_conf=HOODIE_CONF,
        when_idle="{{ params.when_idle }}",
        mode="reschedule",
        poke_interval=timedelta(minutes=1),
        timeout=timedelta(hours=6),
        # With nothing to build within that time, the run is skipped and does not fail.
        soft_fail=True,
        retries=2,
        retry_delay=timedelta(minutes=1),
    )
    build = BuildIndexOperator(
        task_id="build_index",
        table=TABLE,
        strategy=STRATEGY,
        hoodie_conf=HOODIE_CONF,
        name="hudi-index-build",
        # Driver and executors must run the same Python.
        env_vars={"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)},
        retries=2,
        retry_delay=timedelta(minutes=1),
    )
    wait >> build >> clean_index(TABLE)


hudi_index()
