"""A DAG on an Airflow that `airflow standalone` has started, in Chromium: triggered by a form, its
worker killed in the middle of the service's build, and followed to the service's page."""

import json
import os
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import element_to_be_clickable
from selenium.webdriver.support.ui import WebDriverWait

from hudi_index_service.fleet.web.access import Role
from tests.airflow.standalone import SECONDS, Airflow, standalone
from tests.fleet.chromium import started_chromium
from tests.fleet.served import SECRETS
from tests.indexed import covered
from tests.programs import awaited

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TABLE = "waits"
WATCHING = f"hudi_index_after_table_service_{TABLE}"
TASK = "/api/v2/dags/hudi_index/dagRuns/{}/taskInstances/build_index"


@pytest.fixture
def chromium() -> Iterator[Chrome]:
    driver = started_chromium()
    yield driver
    driver.quit()


def test_killed_worker_finds_the_same_build_again(
    fresh_airflow: dict[str, str],
    put_table: Callable[..., Path],
    serve: Callable[..., Any],
    chromium: Chrome,
    tmp_path: Path,
) -> None:
    table = put_table(TABLE, step="clustered")
    service = serve(table)
    given = {"conn_type": "hudi_index", "host": service.url, "password": SECRETS[Role.OPERATE]}
    fresh_airflow["AIRFLOW_CONN_HUDI_INDEX_DEFAULT"] = json.dumps(given)
    fresh_airflow["HUDI_INDEX_TABLES"] = TABLE
    log = tmp_path / "airflow.log"

    with standalone(fresh_airflow, log) as airflow:
        awaited(airflow.is_ready, SECONDS, 0.5)
        assert fields_of_the_connection(airflow) >= {"run_by", "deploy_mode", "resource_manager"}
        trigger_by_form(chromium, airflow.url, TABLE)

        (request,) = awaited(lambda: service.requests(TABLE), SECONDS, 0.1)
        run = awaited(lambda: airflow.runs(), 60, 0.5)[0]["dag_run_id"]
        killed = task_process(airflow)
        os.kill(killed, signal.SIGKILL)
        awaited(lambda: has_reconnected(fresh_airflow, request), SECONDS, 0.5)
        assert task_process(airflow) != killed
        (table.parent / "is_free").touch()
        ended = awaited(airflow.ended_run, SECONDS, 0.5)

        assert ended["state"] == "success", log.read_text()[-8000:]
        result = airflow.get(TASK.format(run) + "/xcomEntries/return_value")
        assert result is not None
        value = result["value"]
        value = json.loads(value) if isinstance(value, str) else value
        assert (value["build_id"], value["built"]) == (request, 1)
        page = f"{service.url}/tables/{TABLE}"
        links = airflow.get(TASK.format(run) + "/links")
        assert links is not None
        assert links["extra_links"] == {"Index service": page}
        link = link_of_the_task(chromium, f"{airflow.url}/dags/hudi_index/runs/{quote(run)}")

        assert service.requests(TABLE) == [request]

        # The triggerer sees the table's clustering, and waits for the build.
        airflow.unpause(WATCHING)
        awaited(lambda: airflow.ended_run(WATCHING), SECONDS, 0.5)
        assert len(service.requests(TABLE)) == 2
        told = airflow.get("/api/v2/assets/events")
        assert told is not None
        events = {each["name"]: each["extra"] for each in told["asset_events"]}
        watched = events[f"hudi_table_service_{TABLE}"]["payload"]
        assert (watched["table"], watched["action"]) == (TABLE, "clustering")
        assert events[f"hudi_index_{TABLE}"]["instant"] == watched["instant"]

    assert covered(table) == 1
    assert link == page
    chromium.get(link)
    assert chromium.current_url.startswith(f"{service.url}/login")


def fields_of_the_connection(airflow: Airflow) -> set[str]:
    """The further fields of the form of a connection."""
    found: Any = airflow.get("/ui/connections/hook_meta")
    (ours,) = (each for each in found if each["connection_type"] == "hudi_index")
    return set(ours["extra_fields"])


def trigger_by_form(driver: Chrome, url: str, table: str) -> None:
    """Triggers the DAG as a user does."""
    driver.get(f"{url}/dags/hudi_index")
    shown(driver, "[data-testid=trigger-dag-button]").click()
    field = shown(driver, "#element_table")
    field.send_keys(table)
    shown(driver, "[data-testid=trigger-dag-submit]").click()


def link_of_the_task(driver: Chrome, run_url: str) -> str:
    """Where the task's extra link leads."""
    driver.get(f"{run_url}/tasks/build_index/details")
    link = WebDriverWait(driver, 60).until(
        element_to_be_clickable((By.XPATH, "//a[contains(., 'Index service')]"))
    )
    return str(link.get_attribute("href"))


def shown(driver: Chrome, selector: str) -> WebElement:
    """An element, once it can be clicked."""
    found = WebDriverWait(driver, 60).until(element_to_be_clickable((By.CSS_SELECTOR, selector)))
    assert isinstance(found, WebElement)
    return found


def has_reconnected(environment: dict[str, str], request: str) -> bool:
    """Whether the task's second try has found the request of the first."""
    logs = Path(environment["AIRFLOW_HOME"], "logs").rglob("task_id=build_index/attempt=2.log")
    lines = (line for log in logs for line in log.read_text().splitlines())
    return any("Reconnecting to existing job" in line and request in line for line in lines)


def task_process(airflow: Airflow) -> int:
    """The process that runs a task in this Airflow."""
    lines: dict[int, bytes] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            lines[int(folder.name)] = (folder / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        children[int(stat[1])].append(int(folder.name))
    below = [airflow.pid]
    for each in below:
        below += children[each]
    # The other worker is the executor's, which supervises this one.
    workers = [each for each in below if lines[each].startswith(b"airflow worker -- ")]
    (task,) = (each for each in workers if b"LocalExecutor" not in lines[each])
    return task
