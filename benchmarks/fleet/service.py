"""The service that is measured: a process, and clients of it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.bench_table import ROOT
from benchmarks.fleet.faults import FOLDER
from benchmarks.fleet.hudi_writer import Table
from benchmarks.fleet.processes import tree

ROLES = ("read", "operate", "notify", "metrics")
ILL_TIMEOUT_SECONDS = 5
"""How long a build of a table of the folder `ill` may make no progress."""

_IMPATIENT = {"build": {"timeout": f"{ILL_TIMEOUT_SECONDS}s"}}

_DEFINITIONS = [{"name": "by_id", "columns": ["id", "customer"], "types": ["btree"]}]


class Service:
    """`hudi-index serve --config` on the tables below some folders, with a state of its own.

    Args:
        folder: For its file, state and log.
        tables: Folders of tables. In one that is named ``ill``, builds have little time.
        rules: Further rules for the tables of a folder, by its name.
        command: The module that is run in place of ``hudi_index_service``.
    """

    def __init__(
        self,
        folder: Path,
        *tables: Path,
        paused: bool = False,
        rules: Mapping[str, Mapping[str, Any]] | None = None,
        command: str = "benchmarks.fleet.command",
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._tables, self._paused = folder, tables, paused
        self._rules = {"ill": _IMPATIENT, **(rules or {})}
        self._command = command
        self.faults = folder / "faults"
        self.faults.mkdir(exist_ok=True)
        lines = [f"{role} {role} {sha256(role.encode()).hexdigest()}\n" for role in ROLES]
        tokens = folder / "tokens"
        tokens.write_text("".join(lines))
        tokens.chmod(0o600)
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HUDI_INDEX_STATE_FOLDER": str(folder / "state"),
            "HUDI_INDEX_CACHE_FOLDER": str(folder / "cache"),
            "HUDI_INDEX_WEB__TOKENS": str(tokens),
            FOLDER: str(self.faults),
        }
        self._process: subprocess.Popen[str] | None = None
        self.url = ""
        self._client = httpx.Client()

    def poll_every(self, seconds: float) -> None:
        """Writes the fleet file, and has a running service read it at once."""
        rules = {
            "poll": f"{round(seconds * 1000)}ms",
            "strategy": "all",
            "apply": "auto",
            "backfill": "all",
            "enabled": not self._paused,
            "definitions": _DEFINITIONS,
        }
        groups = [
            {"name": each.name, "include": [f"{each}/*"], **self._rules.get(each.name, {})}
            for each in self._tables
        ]
        # JSON is YAML, too.
        content = json.dumps({"version": 1, "defaults": rules, "groups": groups})
        (self._folder / "fleet.yaml").write_text(content)
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    @property
    def pid(self) -> int:
        """Of the service's own process."""
        assert self._process is not None
        return self._process.pid

    def children(self) -> list[int]:
        """The processes below it."""
        return tree(self.pid)[1:]

    def start(self) -> float:
        """Starts the process; returns the seconds until it listens."""
        began = perf_counter()
        with (self._folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-u", "-m", self._command),
                    *("--log-level", "info", "serve"),
                    *("--config", str(self._folder / "fleet.yaml"), "--port", "0"),
                ],
                cwd=ROOT,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        found = re.search(r"http://\S+", self._process.stdout.readline())
        if found is None:
            raise SystemExit(f"The service did not start: see {self._folder / 'log'}.")
        self.url = found[0]
        return perf_counter() - began

    def kill(self) -> None:
        """Ends the process by SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Ends the process, if there is one."""
        self._client.close()
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(30)
            self._process.kill()

    def get(self, path: str, role: str = "read") -> httpx.Response:
        """Asks something."""
        headers = {"Authorization": f"Bearer {role}"}
        answer = self._client.get(self.url + path, headers=headers, timeout=60)
        answer.raise_for_status()
        return answer

    def browser(self) -> httpx.Client:
        """A client that is signed in to the pages."""
        client = httpx.Client(base_url=self.url, headers={"Origin": self.url}, timeout=60)
        form = client.get("/login").text
        token = re.search(r'name="form_token" value="(\w+)"', form)
        assert token is not None
        client.post("/login", data={"form_token": token[1], "token": "operate"})
        return client

    def tables(self) -> list[dict[str, Any]]:
        """The tables, as the API shows them."""
        found: list[dict[str, Any]] = self.get("/api/v1/tables").json()["tables"]
        return found

    def name_of(self, uri: str) -> str:
        """The name of a table in the fleet."""
        return next(each["name"] for each in self.tables() if each["uri"] == uri)

    def table(self, name: str) -> dict[str, Any]:
        """One table, by its name in the fleet."""
        found: dict[str, Any] = self.get(f"/api/v1/tables/{name}").json()
        return found

    def post(self, path: str, body: str = "", *, role: str) -> httpx.Response:
        """Asks for something."""
        headers = {"Authorization": f"Bearer {role}"}
        answer = self._client.post(self.url + path, headers=headers, content=body, timeout=60)
        answer.raise_for_status()
        return answer

    def build(self, name: str) -> None:
        """Asks for a build, as an operator does."""
        self.post(f"/api/v1/tables/{name}/builds", role="operate")

    def callback(self, uri: str) -> None:
        """Says that a table has a commit, as a writer does."""
        body = {"commitTime": "1", "tableName": "bench", "basePath": uri}
        self.post("/hudi/commit", json.dumps(body), role="notify")

    def metric(self, name: str) -> float:
        """The sum of all series of a metric."""
        text = self.get("/metrics", "metrics").text
        families = text_string_to_metric_families(text)
        samples = (each for family in families for each in family.samples)
        return sum(each.value for each in samples if each.name == f"hudi_index_{name}")

    def is_built(self) -> bool:
        """Whether all tables are covered as far as their builds are not told to fail, and none
        waits or runs."""
        ill = {each.name for each in self.faults.iterdir()}
        return all(
            (each["state"] == "paused" and each["at"] is not None)
            or (each["coverage"] == 1 and each["state"] == "idle")
            for each in self.tables()
            if Path(each["uri"]).name not in ill
        )

    def unindexed(self, tables: Sequence[Table]) -> int:
        """How many tables have not been seen to be indexed as of their last commit."""
        names = {each["uri"]: each["name"] for each in self.tables()}
        found = [self.table(names[each.uri]) for each in tables]
        return sum(
            each["coverage"] != 1 or each["status"]["instant"] != table.instant
            for each, table in zip(found, tables, strict=True)
        )

    @property
    def globs(self) -> int:
        """Of the fleet file."""
        return len(self._tables)

    def logged_bytes(self) -> int:
        """The length of its log."""
        return (self._folder / "log").stat().st_size

    def is_quiet(self) -> bool:
        """Whether no child process is left."""
        return not self.children()


def awaited(what: str, look: Callable[[], object], seconds: float, pause: float = 0.2) -> float:
    """Waits for something, and returns the seconds that it took."""
    began = monotonic()
    while not look():
        if monotonic() - began > seconds:
            raise SystemExit(f"{what}: not within {seconds:g} s")
        sleep(pause)
    return monotonic() - began


def seconds_of(moment: str) -> float:
    """A moment of the API, in seconds since 1970."""
    return datetime.fromisoformat(moment).timestamp()
