"""A separate Airflow for each test."""

import json
import logging
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace
from typing import Any

import pytest

import hudi_index_airflow
from hudi_index_service import open_table
from hudi_index_service.config import HookSettings, Settings, WebSettings
from hudi_index_service.fleet.builds.process import Limits
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.policies.windows import Window, Windows
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.web.api import Machinery
from hudi_index_service.fleet.web.application import Application, WebServer
from tests.fleet.faulty_runner import RUNNER
from tests.fleet.served import token_file
from tests.golden.table import Golden
from tests.ports import free_port
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
def fresh_airflow(airflow_environment: dict[str, str]) -> dict[str, str]:
    """An environment with its own ports and without login, and otherwise Airflow's defaults."""
    port = str(free_port())
    return {
        **airflow_environment,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": port,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__PARALLELISM": "1",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "true",
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
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


@pytest.fixture
def put_table(golden: Golden, tmp_path: Path) -> Callable[..., Path]:
    """Makes a table, by default with an index that is not built, and nothing that is due."""

    def put(name: str = "orders", *, step: str = "written", index: bool = True) -> Path:
        path = golden("messages_of_users").put(tmp_path / "lake" / name, "written")
        if index:
            with open_table(path) as table:
                table.create_index("by_sender", ["sender"], using="btree")
        return golden("messages_of_users").put(path, step)

    return put


@pytest.fixture
def cluster_table(golden: Golden) -> Callable[[Path], None]:
    """Adds the files of Hudi's clustering to a table: base files are due from now on."""
    return lambda path: golden("messages_of_users").put(path, "clustered") and None


@pytest.fixture
def serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., "RunningService"]]:
    """Starts a service that builds what is asked for, and nothing else. By the first part of a
    table's name, its builds go wrong; see `tests.fleet.faulty_runner`."""
    monkeypatch.setenv("PYTHONPATH", os.fspath(ROOT))
    with ExitStack() as stack:

        def start(*tables: Path) -> RunningService:
            service = RunningService(tables, tmp_path)
            stack.callback(service.close)
            return service

        yield start


def never_now() -> Windows:
    """Windows that keep builds from beginning for which nobody has asked."""
    in_three_days = (datetime.now(UTC).weekday() + 3) % 7
    return Windows(windows=(Window(frozenset({in_three_days}), 0, 60),))


class RunningService:
    """A service with a page, in this process."""

    def __init__(self, tables: Sequence[Path], folder: Path) -> None:
        policies = [
            TablePolicy(each.name, str(each), poll=timedelta(hours=1), windows=never_now())
            for each in tables
        ]
        settings = Settings(
            state_folder=folder / "state",
            cache_folder=folder / "cache",
            hook={"backoff_seconds": 0.2, "backoff_max_seconds": 60},
        )
        limits = Limits(slots=2, memory_mb=600, grace_seconds=10, tick_seconds=0.05)
        self.supervisor = Supervisor(policies, settings=settings, limits=limits, runner=RUNNER)
        self.supervisor.start()
        self._web = WebSettings(tokens=token_file(folder), port=0)
        self._server = self._started()
        self.url = self._server.url

    def requests(self, table: str) -> list[str]:
        """The requests for a table, newest first, whether they have ended or not."""
        seen = self.supervisor.table(table)
        running = [] if seen.running is None else [seen.running]
        return [each.id for each in (*running, *seen.ended) if each.trigger == "request"]

    def shut(self) -> None:
        """Does not answer from now on."""
        self._server.close()

    def open(self) -> None:
        """Answers again at the same address."""
        port = int(self.url.rpartition(":")[2])
        self._web = self._web.model_copy(update={"port": port})
        self._server = self._started()

    def close(self) -> None:
        """Ends all."""
        self._server.close()
        self.supervisor.close(seconds=0)

    def _started(self) -> WebServer:
        application = Application(self.supervisor, lambda seen: (), Machinery(), self._web)
        server = WebServer(self._web, HookSettings(), lambda most: application)
        server.start()
        return server


@dataclass
class TaskInstance:
    """What an operator asks of its task instance."""

    dag_id: str = "dag"
    run_id: str = "run"
    task_id: str = "task"
    map_index: int = -1
    max_tries: int = 2
    stats_tags: dict[str, str] = field(default_factory=dict)
    xcom: dict[str, Any] = field(default_factory=dict)

    def xcom_push(self, key: str, value: Any) -> None:
        """Remembers it."""
        self.xcom[key] = value


class StateStore(dict[str, Any]):
    """The state of a task or an asset, which outlasts its process."""

    def set(self, key: str, value: Any) -> None:
        """Remembers it."""
        self[key] = value


@pytest.fixture
def context() -> dict[str, Any]:
    """The context of a task."""
    events: dict[Any, Any] = defaultdict(lambda: SimpleNamespace(extra={}))
    return {"ti": TaskInstance(), "task_state_store": StateStore(), "outlet_events": events}
