"""Builds the index of each table after every clustering or compaction of it.

Airflow watches the tables' timelines, so no writer has to call. ``HUDI_INDEX_TABLES`` names the
tables for the scheduler and the workers, with spaces between them, by their base paths, or with a
service by their names in its fleet; ``HUDI_INDEX_CONN_ID`` names another connection than
``hudi_index_default``. There is a DAG for each table; its build catches up what an earlier one has
missed.
"""

import os
import re

from airflow.sdk import DAG, Asset, AssetWatcher

from hudi_index_airflow.operators import HudiIndexBuildOperator
from hudi_index_airflow.trigger import HudiInstantTrigger

CONNECTION = os.environ.get("HUDI_INDEX_CONN_ID", "hudi_index_default")


def after_table_service(table: str) -> DAG:
    """The DAG of a table."""
    name = re.sub(r"[^\w.-]+", "_", table).strip("_")
    trigger = HudiInstantTrigger(
        table=table, hudi_index_conn_id=CONNECTION, actions=["clustering", "compaction"]
    )
    watcher = AssetWatcher(name=f"{name}_instants", trigger=trigger)
    served = Asset(f"hudi_table_service_{name}", watchers=[watcher])
    with DAG(
        dag_id=f"hudi_index_after_table_service_{name}",
        schedule=[served],
        catchup=False,
        max_active_runs=1,
        tags=["hudi", "index"],
    ) as dag:
        HudiIndexBuildOperator(
            task_id="build_index",
            table=table,
            hudi_index_conn_id=CONNECTION,
            outlets=[Asset(f"hudi_index_{name}")],
            deferrable=True,  # with a service, no worker waits
            retries=2,
        )
    return dag


for each in os.environ.get("HUDI_INDEX_TABLES", "").split():
    after_table_service(each)
