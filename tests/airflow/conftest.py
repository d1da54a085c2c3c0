"""A separate Airflow for each test."""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace
from typing import Any

import pytest

import hudi_index_airflow
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


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """The provider's modules, by name, in this process, whose Airflow has a folder of its own. It
    takes seconds to import, and changes how this process logs: that is put back."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
        names = [each.name for each in iter_modules(hudi_index_airflow.__path__)]
        modules = {name: import_module(f"hudi_index_airflow.{name}") for name in names}
        root.handlers[:], root.level = before
        yield SimpleNamespace(**modules)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the connection ``hudi_index_default``."""

    def connect(**fields: Any) -> None:
        given = json.dumps({"conn_type": "hudi_index", **fields})
        monkeypatch.setenv("AIRFLOW_CONN_HUDI_INDEX_DEFAULT", given)

    return connect
