"""A separate Airflow for each test."""

import os
import sys
from pathlib import Path

import pytest

from tests.programs import ROOT


@pytest.fixture
def airflow_environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a new Airflow, without database and without connections."""
    inherited = {name: v for name, v in os.environ.items() if not name.startswith("AIRFLOW")}
    return {
        **inherited,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "HUDI_INDEX_CLEAN__GRACE_SECONDS": "0",
    }
