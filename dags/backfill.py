"""Indexes all base files of a table, a partition at a time, as after its index was defined.

    airflow dags trigger hudi_index_backfill --conf '{"table": "/data/messages"}'

A partition is a task: one that fails is tried again by itself, and a run that was stopped goes on
where entries are missing. The builds of one table follow each other, for a table has one builder at
a time. It needs a connection to spark-submit or the worker: a service backfills by itself, as its
fleet file says.
"""

from datetime import timedelta

from airflow.sdk import Param, dag, task

from hudi_index_airflow.hook import HudiIndexHook
from hudi_index_airflow.operators import HudiIndexBuildOperator

TABLE = "{{ params.table }}"
CONNECTION = "{{ params.connection }}"


@dag(
    dag_id="hudi_index_backfill",
    schedule=None,
    catchup=False,
    is_paused_upon_creation=False,
    tags=["hudi", "index"],
    params={
        "table": Param(type="string", minLength=1, description="Base path"),
        "partitions": Param(
            "*", type="string", description="A partition, or a pattern of partitions"
        ),
        "connection": Param("hudi_index_default", type="string", description="What builds"),
    },
)
def backfill() -> None:
    @task
    def partitions(table: str, pattern: str, connection: str) -> list[list[str]]:
        """Each partition with base files; none names the whole of a table without partitions."""
        found = HudiIndexHook(connection).worker.partitions(table, pattern)
        return [[each] if each else [] for each in found]

    HudiIndexBuildOperator.partial(
        task_id="build_partition",
        table=TABLE,
        hudi_index_conn_id=CONNECTION,
        strategy="all",
        retries=2,
        retry_delay=timedelta(minutes=1),
        max_active_tis_per_dagrun=1,
        map_index_template="{{ task.partitions[0] if task.partitions else 'all' }}",
    ).expand(partitions=partitions(TABLE, "{{ params.partitions }}", CONNECTION))


backfill()
