"""The operators on Airflow 2.11, in an environment of its own without hudi-index-service: a DAG by
a running service; and what OpenLineage is told, whose provider is installed there."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dev.bootstrap import VENV
from dev.environment import generous
from dev.native import AIRFLOW
from dev.paths import CONSTRAINTS
from hudi_index_service.fleet.web.access import Role
from tests.fleet.served import SECRETS
from tests.indexed import covered
from tests.programs import output_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PINS = CONSTRAINTS / "airflow-2.txt"

PROGRAM = """
import json, sys
from datetime import datetime
from airflow import DAG, __version__
from hudi_index_airflow.operators import (
    HudiIndexBuildOperator, HudiIndexCleanOperator, HudiIndexVerifyOperator,
)

lineage = []

def note(context, result):
    facets = context["task"].get_openlineage_facets_on_complete(context["ti"])
    lineage.extend([each.namespace, each.name] for each in (*facets.inputs, *facets.outputs))

with DAG("indexes", start_date=datetime(2026, 1, 1), schedule=None) as dag:
    given = {"table": sys.argv[1], "deferrable": False}
    build = HudiIndexBuildOperator(task_id="build", post_execute=note, **given)
    build >> HudiIndexVerifyOperator(task_id="verify", **given) >> (
        HudiIndexCleanOperator(task_id="clean", **given)
    )

if __name__ == "__main__":
    run = dag.test()
    print(json.dumps({
        "version": __version__,
        "state": str(run.state),
        "values": {each.task_id: each.xcom_pull(task_ids=each.task_id)
                   for each in run.get_task_instances()},
        "page": build.operator_extra_links[0].get_link(
            build, ti_key=run.get_task_instance("build").key
        ),
        "lineage": lineage,
        "installed": [name for name in ("hudi_index_service", "pyspark") if name in sys.modules],
    }, default=str))
"""


@pytest.fixture
def older_airflow(tmp_path: Path) -> Iterator[Path]:
    """The Python of an environment with Airflow 2.11 and the provider."""
    folder, uv = tmp_path / "environment", VENV / "bin" / "uv"
    create = [uv, "venv", "--quiet", "--python", VENV / "bin" / "python", folder]
    subprocess.run(create, check=True)
    install = [uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python"]
    done = subprocess.run(
        [*install, "--requirement", PINS, AIRFLOW.folder],
        env=generous(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    yield folder / "bin" / "python"
    shutil.rmtree(folder)  # half a gigabyte, maybe in memory


def test_operators_by_a_service(
    older_airflow: Path,
    put_table: Callable[..., Path],
    serve: Callable[..., Any],
    tmp_path: Path,
) -> None:
    table = put_table(step="clustered")
    service = serve(table)
    connection = {"conn_type": "hudi_index", "host": service.url}
    program = tmp_path / "dags" / "indexes.py"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    inherited = {
        name: each
        for name, each in os.environ.items()
        if not name.startswith(("AIRFLOW", "PYTHON", "VIRTUAL_ENV"))
    }
    environment = {
        **inherited,
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__DAGS_FOLDER": str(program.parent),
        "AIRFLOW_CONN_HUDI_INDEX_DEFAULT": json.dumps(
            {**connection, "password": SECRETS[Role.OPERATE]}
        ),
    }
    output_of([older_airflow, "-m", "airflow", "db", "migrate"], environment, cwd=tmp_path)

    printed = output_of([older_airflow, program, table], environment, cwd=tmp_path)
    report = json.loads(printed.splitlines()[-1])

    assert report["version"].startswith("2.11.")
    assert report["state"] == "success", printed[-4000:]
    values = report["values"]
    assert values["build"]["built"] == covered(table) == 1
    assert values["build"]["build_id"] in service.requests(table.name)
    assert values["verify"]["summary"].startswith("1 entry read, 0 damaged")
    assert values["clean"]["summary"] == "0 files deleted."
    assert report["page"] == f"{service.url}/tables/{table.name}"
    assert report["lineage"] == [
        ["file", str(table)],
        ["file", f"{table}/.hoodie/.index"],
    ]
    assert report["installed"] == []
