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
from hudi_index_service.fleet.web.access import Role
from tests.fleet.served import FILE_START, PROGRAM, SECRETS, token_file
from tests.programs import Running, awaited

FILE = (
    FILE_START
    + """\
groups:
- name: shop
  include: [{tables}]
"""
)


@pytest.fixture
def lake(golden: Any, tmp_path: Path) -> Path:
    """A folder with two tables without an index."""
    for name in ("orders", "returns"):
        golden("hundred_base_files").put(tmp_path / "lake" / name)
    return tmp_path / "lake"


def labels(given: dict[str, str]) -> list[str]:
    """Labels in one order."""
    return [f"{name}={text}" for name, text in sorted(given.items())]


@pytest.mark.slow
def test_a_fleet_is_kept_and_shown(
    lake: Path, tmp_path: Path, running: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FILE.format(tables=f'"{lake}/orders"'))
    monkeypatch.setenv("HUDI_INDEX_WEB__TOKENS", str(token_file(tmp_path)))
    monkeypatch.setenv("HUDI_INDEX_STATE_FOLDER", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "fleet").touch()  # no folder can be made there
    service = running(PROGRAM, "serve", "--config", file, "--port", 0)
    assert service.stdout.readline() == f"Keeping 1 table of {file}.\n"
    url = re.search(r"http://\S+", service.stdout.readline())
    assert url is not None

    def get(path: str, role: Role = Role.READ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {SECRETS[role]}"}
        return httpx.get(url[0] + path, headers=headers)

    def metrics() -> dict[tuple[str, ...], float]:
        return {
            (sample.name.removeprefix("hudi_index_"), *labels(sample.labels)): sample.value
            for family in text_string_to_metric_families(get("/metrics", Role.METRICS).text)
            for sample in family.samples
        }

    def problem(code: str) -> float | None:
        return metrics().get(("problems", *labels({"code": code})))

    def covered(name: str) -> bool:
        tables = get("/api/v1/tables").json()["tables"]
        found = [each for each in tables if each["uri"].endswith(f"/{name}")]
        return bool(found) and found[0]["coverage"] == 1

    assert httpx.get(url[0] + "/healthz").status_code == 200
    assert awaited(lambda: covered("orders"), 30, 0.05)
    assert [each.coverage for each in open_table(lake / "orders").status()] == [1]
    seen = metrics()
    of = {"catalog": "", "database": "", "table": "lake.orders"}
    status = open_table(lake / "orders").status()[0]
    assert seen["table_up", *labels(of)] == 1
    assert seen["coverage_ratio", *labels(of | {"index": "by_id"})] == 1
    assert seen["files", *labels(of | {"state": "covered"})] == status.covered
    assert seen["bytes", *labels(of | {"type": "btree"})] == status.index_bytes
    assert seen["store_requests_total", *labels({"op": "write"})] >= status.covered  # of a child
    assert sum(number for (name, *_), number in seen.items() if name == "builds_total") >= 1
    assert problem("STORAGE_FAILED") == 1
    (shown,) = get("/api/v1/tables").json()["problems"]
    assert shown["code"] == "STORAGE_FAILED"
    assert str(tmp_path / "state") in shown["message"]
    (tmp_path / "state" / "fleet").unlink()

    file.write_text("version: 1\ngroups: 7\n")
    service.send_signal(signal.SIGHUP)
    assert awaited(lambda: problem("FLEET_FILE_INVALID") == 1, 30, 0.05)
    assert "FLEET_FILE_INVALID" in [
        each["code"] for each in get("/api/v1/tables").json()["problems"]
    ]
    file.write_text(FILE.format(tables=f'"{lake}/*"'))
    service.send_signal(signal.SIGHUP)
    assert awaited(lambda: covered("returns"), 60, 0.05)
    assert problem("FLEET_FILE_INVALID") is None
    assert awaited(lambda: problem("STORAGE_FAILED") is None, 30, 0.05)
    assert list((tmp_path / "state" / "fleet").glob("*.jsonl"))

    service.send_signal(signal.SIGTERM)
    assert service.wait(60) == 0
    assert service.stdout.readline() == "Stopping after the running builds.\n"
