"""Builds by spark-submit, as far as no Spark is needed: what is submitted, how its end is told,
cancelling; and YARN's cluster mode against a ResourceManager of the test (no YARN has run here)."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hudi_index_service.submit import APPLICATION
from tests.programs import awaited

SCRIPT = f"""#!{sys.executable}
import json, os, sys, time
folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "calls"), "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
print(open(os.path.join(folder, "says")).read(), flush=True)
status = int(open(os.path.join(folder, "status")).read())
time.sleep(3600) if status < 0 else sys.exit(status)
"""


class Spark:
    """A spark-submit that says and does what a test wants."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ends()
        program = folder / "spark-submit"
        program.write_text(SCRIPT)
        program.chmod(0o755)

    def ends(self, says: str = "", status: int = 0) -> None:
        """How it ends; with a status below 0 it does not."""
        (self.folder / "says").write_text(says)
        (self.folder / "status").write_text(str(status))

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of each call."""
        path = self.folder / "calls"
        return [json.loads(each) for each in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def spark_submit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connected: Callable[..., None]
) -> Spark:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    connected(host="local[1]", extra={"run_by": "spark-submit"})
    return Spark(tmp_path)


@pytest.fixture
def build(provider: SimpleNamespace) -> Callable[..., Any]:
    """Makes an operator that builds."""

    def make(**options: Any) -> Any:
        return provider.operators.HudiIndexBuildOperator(task_id="task", table="/t", **options)

    return make


def test_what_is_submitted(spark_submit: Spark, build: Any, context: Any) -> None:
    spark_submit.ends("file:///t: built 3 entries in 1.2 s, removed 0 files (0 bytes)")
    task = build(
        strategy="all",
        hoodie_conf="hoodie.index.columns=a\nhoodie.index.wait=1",
        partitions=["p1", "p2"],
        budget={"files": 5, "requests_per_second": 2.0},
        spark_conf={"spark.executor.memory": "2g"},
    )
    assert task.execute(context) == {"table": "/t", "built": 3}
    (call,) = spark_submit.calls
    assert call == [
        *("--master", "local[1]", "--name", "adhoc_airflow.task"),
        *("--conf", "spark.executor.memory=2g", str(APPLICATION)),
        *("--table", "/t", "--strategy", "all", "--require-index"),
        *("--hoodie-conf", "hoodie.index.columns=a\nhoodie.index.wait=1"),
        *("--partition", "p1", "--partition", "p2"),
        *("--max-files", "5", "--requests-per-second", "2.0"),
    ]


@pytest.mark.parametrize(
    ("says", "final", "words"),
    [
        ("INDEX_NOT_FOUND: The table /t has no index. Define one.", True, "INDEX_NOT_FOUND: The"),
        ("WARN x\nBUILD_IN_PROGRESS: Another one builds.\nStopped.", False, "BUILD_IN_PROGRESS"),
        ("Exception: no cluster", False, "BUILD_FAILED: spark-submit ended with the status 1."),
    ],
)
def test_how_a_failure_is_told(
    spark_submit: Spark,
    build: Any,
    context: Any,
    provider: SimpleNamespace,
    says: str,
    final: bool,
    words: str,
) -> None:
    spark_submit.ends(says, 1)
    with pytest.raises(provider.errors.HudiIndexError, match=words) as raised:
        build().execute(context)
    assert isinstance(raised.value, provider.errors.HudiIndexFailed) == final


def test_who_ends_a_task_ends_spark(
    spark_submit: Spark, build: Any, context: Any, provider: SimpleNamespace
) -> None:
    spark_submit.ends("begins", -1)
    task = build()
    killer = Thread(target=lambda: awaited(lambda: spark_submit.calls) and task.on_kill())
    killer.start()
    with pytest.raises(provider.errors.HudiIndexError, match="the status -15"):
        task.execute(context)
    killer.join()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"host": "yarn"}, "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"),
        ({"extra": {"deploy_mode": "cluster"}}, "resource_manager in the connection"),
        ({"extra": {"spark_binary": "spark9"}}, "spark9 is not on this worker's PATH"),
    ],
)
def test_unusable_connection_fails_at_once_and_says_why(
    spark_submit: Spark,
    build: Any,
    context: Any,
    provider: SimpleNamespace,
    connected: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    words: str,
) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    extra = {"run_by": "spark-submit", **fields.pop("extra", {})}
    connected(**{"host": "local[1]", **fields, "extra": extra})
    with pytest.raises(provider.errors.HudiIndexFailed, match=words):
        build().execute(context)
    assert spark_submit.calls == []


def test_table_service_needs_spark(
    provider: SimpleNamespace, context: Any, spark_submit: Spark, connected: Callable[..., None]
) -> None:
    task = provider.operators.HudiTableServiceOperator
    task(task_id="task", table="/t", service_options="a=b").execute(context)
    assert spark_submit.calls[0][-4:] == [
        *("--table-service", "clustering", "--service-options", "a=b")
    ]
    connected()
    with pytest.raises(provider.errors.HudiIndexFailed, match="needs Spark, and the connection"):
        task(task_id="task", table="/t").execute(context)


class Manager(ThreadingHTTPServer):
    """What YARN's ResourceManager answers of applications: by id, their states; and their tags."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.states: dict[str, list[str]] = {}
        self.tags: dict[str, str] = {}
        self.killed: list[str] = []


class Answers(BaseHTTPRequestHandler):
    """Its requests: https://hadoop.apache.org/docs/stable/hadoop-yarn/hadoop-yarn-site/"""

    server: Manager

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/ws/v1/cluster/apps":
            tag = parse_qs(url.query)["applicationTags"][0]
            found = [{"id": app} for app, its in self.server.tags.items() if its == tag]
            self._answer(200, {"apps": {"app": found} if found else None})
            return
        app = url.path.rpartition("/")[2]
        states = self.server.states.get(app)
        if states is None:
            self._answer(404, {"RemoteException": {"exception": "NotFoundException"}})
            return
        state = states.pop(0) if len(states) > 1 else states[0]
        is_over = state not in ("ACCEPTED", "RUNNING")
        told = {"state": "FINISHED" if is_over else state, "diagnostics": "words of YARN"}
        self._answer(200, {"app": {**told, "finalStatus": state if is_over else "UNDEFINED"}})

    def do_PUT(self) -> None:
        app = self.path.split("/")[-2]
        assert json.loads(self.rfile.read(int(self.headers["Content-Length"]))) == {
            "state": "KILLED"
        }
        self.server.killed.append(app)
        self.server.states[app] = ["KILLED"]
        self._answer(202, {"state": "KILLED"})

    def _answer(self, status: int, content: object) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def yarn(
    spark_submit: Spark, connected: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Manager]:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    manager = Manager()
    serving = Thread(target=manager.serve_forever)
    serving.start()
    address = f"http://127.0.0.1:{manager.server_port}"
    extra = {"run_by": "spark-submit", "deploy_mode": "cluster", "resource_manager": address}
    connected(host="yarn", extra=extra)
    spark_submit.ends("INFO Client: Submitted application application_17_0001")
    yield manager
    manager.shutdown()
    serving.join()
    manager.server_close()


APP = "application_17_0001"


def test_application_on_yarn_is_found_by_later_tries(
    yarn: Manager, spark_submit: Spark, build: Any, context: Any
) -> None:
    yarn.states[APP] = ["RUNNING"]
    assert build().submit_job(context) == APP  # and then the worker is killed
    (call,) = spark_submit.calls
    (tag,) = (each.partition("spark.yarn.tags=")[2] for each in call if "yarn.tags" in each)
    assert "spark.yarn.submit.waitAppCompletion=false" in call
    assert call[call.index("--deploy-mode") + 1] == "cluster"

    yarn.tags[APP], yarn.states[APP] = tag, ["ACCEPTED", "SUCCEEDED"]
    task = build()
    assert task.execute(context) == {"table": "/t", "build_id": APP}
    assert build().execute(context) == {"table": "/t", "build_id": APP}
    assert len(spark_submit.calls) == 1


@pytest.mark.parametrize(("state", "final"), [("FAILED", False), ("KILLED", True)])
def test_application_that_failed_is_submitted_anew(
    yarn: Manager,
    spark_submit: Spark,
    build: Any,
    context: Any,
    provider: SimpleNamespace,
    state: str,
    final: bool,
) -> None:
    yarn.states[APP] = [state]
    with pytest.raises(provider.errors.HudiIndexError, match=APP) as raised:
        build().execute(context)
    assert isinstance(raised.value, provider.errors.HudiIndexFailed) == final
    yarn.states[APP] = ["SUCCEEDED"]
    del yarn.states[APP]  # forgotten by YARN
    yarn.states["application_17_0002"] = ["SUCCEEDED"]
    spark_submit.ends("Submitted application application_17_0002")
    assert build().execute(context)["build_id"] == "application_17_0002"
    assert len(spark_submit.calls) == 2


def test_who_ends_a_task_kills_its_application(
    yarn: Manager, build: Any, context: Any, provider: SimpleNamespace, spark_submit: Spark
) -> None:
    yarn.states[APP] = ["RUNNING"]
    task = build()
    store = context["task_state_store"]
    killer = Thread(target=lambda: awaited(lambda: store) and task.on_kill())
    killer.start()
    with pytest.raises(provider.errors.HudiIndexFailed, match="CANCELLED"):
        task.execute(context)
    killer.join()
    assert yarn.killed == [APP]
