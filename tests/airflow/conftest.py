"""An Airflow of each test's own, and real tables."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import open_table
from tests.hudi_tables import hudi_options, run_clustering, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def airflow_environment(tmp_path: Path) -> dict[str, str]:
    """A fresh Airflow of its own: no database yet, no connection."""
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
def indexed_table(spark: "SparkSession", tmp_path: Path) -> Path:
    """A table with one commit and an index definition."""
    path = tmp_path / "messages"
    rows = spark.range(300).selectExpr(
        "cast(id AS string) AS id", "id AS ts", "concat('User', id % 10) AS sender"
    )
    write(rows, path, hudi_options("messages"))
    open_table(path).create_index("by_sender", ["sender"])
    return path


@pytest.fixture
def clustered_table(spark: "SparkSession", indexed_table: Path) -> Path:
    """The same, clustered since."""
    run_clustering(spark, indexed_table)
    return indexed_table
