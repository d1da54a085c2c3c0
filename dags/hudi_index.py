"""Keeps the index of one Hudi table up to date: wait for a table service, build, clean.

Trigger it with the table's base path, for example after the job that writes the table:

    airflow dags trigger hudi_index --conf '{"table": "/data/messages"}'

The index need not exist: it is defined by the hoodie.index.* keys that the table's writers stored
with their commits, or by those given here:

    … --conf '{"table": "/data/messages", "hoodie_conf": {"hoodie.index.columns": "msg;sender"}}'

The connection ``hudi_index_default`` says what builds: a running service, spark-submit or, as
without that connection, the Airflow worker, which needs no Spark, but the extra ``local`` of the
provider and a JDK 17 that ``JAVA_HOME`` names.
"""

from datetime import timedelta

from airflow.sdk import Param, dag

from hudi_index_airflow.operators import HudiIndexBuildOperator, HudiIndexCleanOperator
from hudi_index_airflow.sensor import HudiIndexDueSensor

TABLE = "{{ params.table }}"
STRATEGY = "{{ params.strategy }}"
CONNECTION = "{{ params.connection }}"
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
    default_args={
        "hudi_index_conn_id": CONNECTION,
        "retries": 2,
        "retry_delay": timedelta(minutes=1),
    },
    params={
        "table": Param(
            type="string",
            minLength=1,
            description="Base path: the folder that holds .hoodie; or its name in the fleet",
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
        "connection": Param("hudi_index_default", type="string", description="What builds"),
    },
)
def hudi_index() -> None:
    wait = HudiIndexDueSensor(
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
    )
    build = HudiIndexBuildOperator(
        task_id="build_index", table=TABLE, strategy=STRATEGY, hoodie_conf=HOODIE_CONF
    )
    wait >> build >> HudiIndexCleanOperator(task_id="clean_index", table=TABLE)


hudi_index()
