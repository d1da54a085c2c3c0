"""Runs the project's whole DAG, as a separate program because Airflow reads its environment when it
is imported. Its last line of output is a JSON object with the results."""

import json
import sys
from pathlib import Path

from airflow.dag_processing.dagbag import DagBag


def main(dags: Path, table: str) -> None:
    bag = DagBag(str(dags))
    spark_at_parsing = "pyspark" in sys.modules
    dag = bag.dags["hudi_index"]
    keys = {"hoodie.index.columns": "ts;id", "hoodie.index.wait": "1"}
    run = dag.test(run_conf={"table": table, "hoodie_conf": keys})
    waited = run.get_task_instance("wait_for_table_service")
    report = {
        "import_errors": bag.import_errors,
        "spark_at_parsing": spark_at_parsing,
        "state": str(run.state),
        "tasks": {each.task_id: str(each.state) for each in run.get_task_instances()},
        # Read outside a task, a value of digits only comes back as a number.
        "instant": str(waited.xcom_pull(task_ids="wait_for_table_service")),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
