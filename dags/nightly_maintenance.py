"""Builds, cleans and verifies the index of each table every night, and repairs what is damaged.

``HUDI_INDEX_TABLES`` and ``HUDI_INDEX_CONN_ID`` are those of `after_table_service`. The tables are
done side by side, as many as ``max_active_tasks`` allows; a table that fails holds up no other.
"""

import os
from datetime import timedelta

from airflow.sdk import dag, task_group

from hudi_index_airflow.operators import (
    HudiIndexBuildOperator,
    HudiIndexCleanOperator,
    HudiIndexVerifyOperator,
)

TABLES = os.environ.get("HUDI_INDEX_TABLES", "").split()
CONNECTION = os.environ.get("HUDI_INDEX_CONN_ID", "hudi_index_default")


@dag(
    dag_id="hudi_index_nightly_maintenance",
    schedule="0 2 * * *",
    catchup=False,
    max_active_runs=1,
    max_active_tasks=4,
    tags=["hudi", "index"],
    default_args={
        "hudi_index_conn_id": CONNECTION,
        "retries": 2,
        "retry_delay": timedelta(minutes=5),
    },
)
def nightly_maintenance() -> None:
    @task_group
    def maintain(table: str) -> None:
        build = HudiIndexBuildOperator(task_id="build_index", table=table)
        clean = HudiIndexCleanOperator(task_id="clean_index", table=table)
        verify = HudiIndexVerifyOperator(task_id="verify_index", table=table, repair=True)
        build >> clean >> verify

    maintain.expand(table=TABLES)


nightly_maintenance()
