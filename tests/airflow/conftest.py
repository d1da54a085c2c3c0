"""A separate Airflow for each test, and real tables."""

import os
import sys
from pathlib import Path

import pytest

from hudi_index_service import open_table
from tests.golden.table import Golden
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


@pytest.fixture
def indexed_table(golden: Golden, tmp_path: Path) -> Path:
    """A table with one commit and an index definition."""
    path = golden("messages_of_users").put(tmp_path / "messages", "written")
    open_table(path).create_index("by_sender", ["sender"])
    return path


@pytest.fixture
def clustered_table(golden: Golden, indexed_table: Path) -> Path:
    """The same table, clustered afterwards."""
    return golden("messages_of_users").put(indexed_table, "clustered")
