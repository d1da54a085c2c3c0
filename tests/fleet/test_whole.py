"""The whole: Hudi's writers of four tables call one service, which indexes what they write; what
Prometheus reads is what `hudi-index status` says, and the page shows it."""

import json
import re
import signal
from collections.abc import Callable, Mapping
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from hudi_index_service import open_table
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.hook.write_options import callback_options
from tests.fleet.served import SECRETS, token_file
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    read_rows,
    run_compaction,
    write,
)
from tests.programs import Command, Running, awaited

PROGRAM = "from hudi_index_service.cli import main; main()"

TABLES: Mapping[str, tuple[str, str | None]] = {
    "copied": ("COPY_ON_WRITE", None),
    "copied_by_day": ("COPY_ON_WRITE", "dt"),
    "merged": ("MERGE_ON_READ", None),
    "merged_by_day": ("MERGE_ON_READ", "dt"),
}

FILE = """\
version: 1
defaults:
  poll: {poll}
  strategy: all
  apply: auto
  backfill: all
  definitions:
  - {{name: by_text, columns: [msg, id]}}
groups:
- name: shop
  include: ["{lake}/*"]
  owner: shop-team
"""

WHERE = "msg LIKE 'Buying car 3%' AND amount > 60"


class Writers:
    """Spark's writers of the four tables.

    Args:
        options: Of all of them, such as those of a callback.
    """

    def __init__(self, spark: SparkSession, lake: Path) -> None:
        self._spark, self._lake = spark, lake
        self.options: Mapping[str, str] = {}

    def write(self, start: int, stop: int, version: int = 0) -> None:
        """Writes rows to each table."""
        rows = numbered_rows(self._spark, start, stop, version).coalesce(1)
        for name, (table_type, partition) in TABLES.items():
            options = hudi_options(name, table_type, partition_column=partition)
            write(rows, self._lake / name, options | NO_METADATA_TABLE | dict(self.options))

    def compact(self) -> None:
        """Compacts the tables that have log files."""
        for name, (table_type, _) in TABLES.items():
            if table_type == "MERGE_ON_READ":
                run_compaction(self._spark, self._lake / name)

    def ids(self, name: str) -> list[str]:
        """The rows of a table for which `WHERE` holds, by Spark."""
        found = read_rows(self._spark, self._lake / name).where(WHERE).select("id").collect()
        return sorted(row.id for row in found)


class Service:
    """The service's process, as its clients see it."""

    def __init__(self, process: Any) -> None:
        self._process = process
        process.stdout.readline()
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        self.url = found[0]

    def get(self, path: str, role: Role = Role.READ) -> httpx.Response:
        """What it answers to a token."""
        headers = {"Authorization": f"Bearer {SECRETS[role]}"}
        return httpx.get(self.url + path, headers=headers).raise_for_status()

    def has_indexed(self, instants: Mapping[str, str]) -> bool:
        """Whether it has seen that all is indexed as of these instants, and builds no more."""
        seen = [self.get(f"/api/v1/tables/lake.{name}").json() for name in instants]
        return all(
            (each["coverage"], each["state"], each["due"]) == (1, "idle", 0)
            and each["status"]["instant"] == instant
            for each, instant in zip(seen, instants.values(), strict=True)
        )

    def series(self) -> dict[str, dict[str, dict[tuple[str, ...], float]]]:
        """Of each table, by its path's last part: each metric, by its further labels."""
        found: dict[str, dict[str, dict[tuple[str, ...], float]]] = {}
        text = self.get("/metrics", Role.METRICS).text
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = dict(sample.labels)
                table = labels.pop("table", "").rpartition(".")[2]
                metrics = found.setdefault(table, {})
                metrics.setdefault(sample.name.removeprefix("hudi_index_"), {})[
                    tuple(value for name, value in labels.items() if name in ("index", "state"))
                ] = sample.value
        return found

    def page(self, path: str) -> str:
        """A page, as who is signed in sees it."""
        with httpx.Client(base_url=self.url, headers={"Origin": self.url}) as browser:
            form = re.search(r'name="form_token" value="(\w+)"', browser.get("/login").text)
            assert form is not None
            data = {"form_token": form[1], "token": SECRETS[Role.READ]}
            assert browser.post("/login", data=data).status_code == 303
            return unescape(browser.get(path).raise_for_status().text)

    def end(self) -> int:
        """Ends the process; returns its status."""
        self._process.send_signal(signal.SIGTERM)
        return int(self._process.wait(60))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def serve(
    running: Running, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Service]:
    """Starts a service that polls as often as said."""
    monkeypatch.setenv("HUDI_INDEX_WEB__TOKENS", str(token_file(tmp_path)))
    monkeypatch.setenv("HUDI_INDEX_STATE_FOLDER", str(tmp_path / "state"))
    file = tmp_path / "fleet.yaml"

    def start(poll: str) -> Service:
        file.write_text(FILE.format(lake=lake, poll=poll))
        return Service(running(PROGRAM, "serve", "--config", file, "--port", 0))

    return start


def test_writers_service_metrics_and_page(
    spark: SparkSession, lake: Path, serve: Callable[[str], Service], command: Command
) -> None:
    def instants() -> dict[str, str]:
        return {name: status(command, lake / name)["instant"] for name in TABLES}

    writers = Writers(spark, lake)
    writers.write(0, 60)
    service = serve("1h")  # so that callbacks alone tell of later commits
    first = instants()
    awaited(lambda: service.has_indexed(first), 120, 0.1)

    secret = SECRETS[Role.NOTIFY]
    writers.options = callback_options(f"{service.url}/hudi/commit", secret, wait=0)
    writers.write(30, 90, version=1)
    assert service.series()[""]["callbacks_total"][()] == len(TABLES)
    writers.compact()
    for name in TABLES:  # of a compaction that nobody told of
        callback(service, lake / name)
    last = instants()
    assert all(last[name] > first[name] for name in TABLES)
    awaited(lambda: service.has_indexed(last), 120, 0.1)

    series = service.series()
    for name in TABLES:
        compared(series[name], status(command, lake / name))
        with open_table(lake / name) as table:
            found = table.scan(WHERE, columns=["id"], use_index="require").to_arrow()
        assert sorted(found["id"].to_pylist()) == writers.ids(name)
        page = service.page(f"/tables/lake.{name}")
        assert "by_text" in page
        assert "100" in page
    page = service.page("/")
    assert all(f"lake.{name}" in page for name in TABLES)
    assert service.end() == 0


def callback(service: Service, table: Path) -> None:
    """Says that a table has a commit, as Hudi does."""
    httpx.post(
        f"{service.url}/hudi/commit",
        json={"commitTime": "1", "tableName": table.name, "basePath": f"file:{table}"},
        headers={"Authorization": f"Bearer {SECRETS[Role.NOTIFY]}"},
    ).raise_for_status()


def status(command: Command, table: Path) -> dict[str, Any]:
    """What `hudi-index status` says of a table."""
    found: dict[str, Any] = json.loads(command("status", table, "--output", "json"))
    return found


def compared(
    series: Mapping[str, Mapping[tuple[str, ...], float]], said: Mapping[str, Any]
) -> None:
    """What Prometheus reads of a table is what its status says."""
    (index,) = said["indexes"]
    assert series["table_up"] == {(): 1}
    assert series["attention_severity"] == {(): 0}
    assert series["coverage_ratio"] == {("by_text",): index["coverage"]}
    states = {state[0]: number for state, number in series["files"].items()}
    assert states["covered"] == index["covered"] == index["base_files"] > 0
    assert {states[each] for each in ("due", "outdated", "newer", "damaged")} == {0}
    assert series["lag_instants"] == {(): said["lag_instants"]}
    assert series["bytes"] == {(): said["index_bytes"]}
    assert series["orphaned_bytes"] == {(): said["outliving"]["bytes"]}
