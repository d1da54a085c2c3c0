"""`hudi-index serve --config`: a real process keeps the tables of a fleet file, and shows them."""

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hudi_index_service import open_table
from hudi_index_service.fleet.access import Role
from tests.fleet.served import SECRETS, token_file
from tests.programs import Running, awaited

PROGRAM = "from hudi_index_service.cli import main; main()"

FILE = """\
version: 1
defaults:
  poll: 1s
  strategy: all
  apply: auto
  max_backfill_bytes: 1GiB
  backfill: all
  definitions:
  - {{name: by_id, columns: [id], types: [btree]}}
groups:
- name: shop
  include: [{tables}]
"""


@pytest.fixture
def lake(golden: Any, tmp_path: Path) -> Path:
    """A folder with two tables without an index."""
    for name in ("orders", "returns"):
        golden("hundred_base_files").put(tmp_path / "lake" / name)
    return tmp_path / "lake"


@pytest.mark.slow
def test_a_fleet_is_kept_and_shown(
    lake: Path, tmp_path: Path, running: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FILE.format(tables=f'"{lake}/orders"'))
    monkeypatch.setenv("HUDI_INDEX_WEB__TOKENS", str(token_file(tmp_path)))
    monkeypatch.setenv("HUDI_INDEX_STATE_FOLDER", str(tmp_path / "state"))
    service = running(PROGRAM, "serve", "--config", file, "--port", 0)
    assert service.stdout.readline() == f"Keeping 1 table of {file}.\n"
    url = re.search(r"http://\S+", service.stdout.readline())
    assert url is not None

    def get(path: str, role: Role = Role.READ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {SECRETS[role]}"}
        return httpx.get(url[0] + path, headers=headers)

    def covered(name: str) -> bool:
        tables = get("/api/v1/tables").json()["tables"]
        found = [each for each in tables if each["uri"].endswith(f"/{name}")]
        return bool(found) and found[0]["coverage"] == 1

    assert httpx.get(url[0] + "/healthz").status_code == 200
    assert awaited(lambda: covered("orders"), 30, 0.05)
    assert [each.coverage for each in open_table(lake / "orders").status()] == [1]
    samples = {
        sample.name
        for family in text_string_to_metric_families(get("/metrics", Role.METRICS).text)
        for sample in family.samples
    }
    assert {"hudi_index_coverage_ratio", "hudi_index_table_up"} <= samples

    file.write_text("version: 1\ngroups: 7\n")
    service.send_signal(signal.SIGHUP)
    file.write_text(FILE.format(tables=f'"{lake}/*"'))
    service.send_signal(signal.SIGHUP)
    assert awaited(lambda: covered("returns"), 60, 0.05)

    service.send_signal(signal.SIGTERM)
    assert service.wait(60) == 0
    assert service.stdout.readline() == "Stopping after the running builds.\n"
