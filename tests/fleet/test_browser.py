"""The pages in Chromium: signing in, sorting and filtering 200 tables, a build from its start to
its end, names of every kind, no request to another host, and axe's rules of accessibility."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import axe_core_python
import pytest
from selenium.common.exceptions import (
    JavascriptException,
    NoSuchElementException,
    StaleElementReferenceException,
    WebDriverException,
)
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from hudi_index_service.config import HookSettings, WebSettings
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.task import Task
from hudi_index_service.fleet.timeline import SeenInstant
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.fleet.web.api import Machinery
from hudi_index_service.fleet.web.application import Application, WebServer
from hudi_index_service.fleet.web.queries import Answer
from tests.fleet.chromium import started_chromium
from tests.fleet.memory_fleet import FakeReason, MemoryFleet, progress, seen, status_of
from tests.fleet.served import SECRETS, Asked, served, token_file

pytestmark = pytest.mark.slow

AXE = Path(axe_core_python.__file__).with_name("axe.min.js")

HOSTILE = "<img src=x onerror=window.hostile=1>'\"><script>window.hostile=1</script>"


def fleet_of_200() -> MemoryFleet:
    """Tables of four groups; some of them need attention."""
    fleet = MemoryFleet()
    for number in range(200):
        group, owner = ("sales", "hr", "logs", "ops")[number % 4], ("Ann", "Bo", "Cai")[number % 3]
        name = f"{group}.table_{number:03d}"
        status = status_of(f"/data/{name}", covered=5 + number % 6, lag_seconds=number * 60.0)
        fleet.add(seen(name, group=group, owner=owner, status=status))
    now = datetime.now(UTC)
    for name, code, severity, words, remedy in (
        ("logs.table_010", "ORPHANS", 4, "Entries hold 12 GiB too much.", "hudi-index clean /l"),
        ("hr.table_009", "LAG", 3, "A base file has waited 1 h.", "hudi-index build /h"),
        ("sales.table_004", "UNREACHABLE", 1, "Its store is silent.", "hudi-index doctor"),
    ):
        fleet.reasons[name] = [FakeReason(code, severity, words, remedy, now)]
    return fleet


@pytest.fixture
def fleet() -> MemoryFleet:
    return fleet_of_200()


@pytest.fixture
def ask() -> Asked:
    return Asked()


@pytest.fixture
def server(fleet: MemoryFleet, ask: Asked, tmp_path: Path) -> Iterator[WebServer]:
    server = WebServer(
        WebSettings(port=0),
        HookSettings(),
        lambda most: served(tmp_path, fleet, max_streams=most, ask=ask).application,
    )
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chrome]:
    driver = started_chromium()
    yield driver
    driver.quit()


class Tab:
    """A browser that shows a page of the service."""

    def __init__(self, driver: Chrome, url: str) -> None:
        self.driver, self.url = driver, url

    def open(self, path: str) -> None:
        self.driver.get(self.url + path)

    def one(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
        return self.driver.execute_script(script, selector)

    @property
    def text(self) -> str:
        return self.one("main").text

    def wait(self, condition: Callable[["Tab"], object]) -> None:
        """Waits until it holds; meanwhile, the page that it looks at may go."""
        going = (StaleElementReferenceException, NoSuchElementException, JavascriptException)

        def holds(_: object) -> object:
            try:
                return condition(self)
            except WebDriverException as error:
                # As Chromium sometimes says it of a page that has gone.
                if "does not belong to the document" in (error.msg or ""):
                    return False
                raise

        WebDriverWait(self.driver, 30, 0.05, going).until(holds)

    def sign_in(self, secret: str) -> None:
        self.open("/login")
        self.one("input[name=token]").send_keys(secret, Keys.ENTER)
        self.wait(lambda tab: not tab.driver.current_url.endswith("/login") or "wrong" in tab.text)

    def names(self) -> list[str]:
        return self.texts("tbody th a")

    def command(self, name: str, **options: object) -> None:
        self.driver.execute_cdp_cmd(name, options)


@pytest.fixture
def tab(chromium: Chrome, server: WebServer) -> Iterator[Tab]:
    """A new browser session, signed in; nothing that it loads is of another host, and nothing is
    against the pages' rules."""
    chromium.get("about:blank")
    chromium.delete_all_cookies()
    for kind in ("browser", "performance"):
        chromium.get_log(kind)
    tab = Tab(chromium, server.url)
    tab.sign_in(SECRETS[Role.OPERATE])
    tab.wait(lambda tab: len(tab.names()) == 200)
    yield tab
    requested = [each["message"] for each in chromium.get_log("performance")]
    sent = [each for each in requested if '"Network.requestWillBeSent"' in each]
    assert sent
    assert not [each for each in sent if f'"url":"{server.url}/' not in each]
    rules = [each for each in chromium.get_log("browser") if "Security Policy" in each["message"]]
    assert rules == []
    chromium.get("about:blank")


def violations(tab: Tab) -> list[str]:
    """What axe finds serious on the page."""
    tab.driver.execute_script(AXE.read_text())
    found = tab.driver.execute_async_script(
        "const done = arguments[0]; axe.run().then(r => done(r.violations), e => done([String(e)]))"
    )
    return [
        f"{each['id']}: {[node['html'] for node in each['nodes'][:3]]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def test_signing_in_says_what_is_wrong_and_leads_to_the_list(tab: Tab) -> None:
    tab.one("header button").click()
    tab.wait(lambda tab: tab.driver.current_url.endswith("/login"))
    tab.sign_in("wrong")
    tab.wait(lambda tab: "The token is wrong." in tab.text)
    assert violations(tab) == []
    tab.sign_in(SECRETS[Role.READ])
    tab.wait(lambda tab: len(tab.names()) == 200)
    assert tab.names()[:3] == ["sales.table_004", "hr.table_009", "logs.table_010"]
    assert "readr (read)" in tab.one("header").text


def test_the_list_is_sorted_and_filtered(tab: Tab) -> None:
    tab.one("#sort-lag").click()
    tab.wait(lambda tab: tab.names()[0] == "ops.table_199")
    tab.one("#sort-lag").click()
    tab.wait(lambda tab: tab.names()[0] == "sales.table_000")
    Select(tab.one("select[name=group]")).select_by_value("hr")
    tab.one("input[name=text]").send_keys("_01", Keys.ENTER)
    tab.wait(lambda tab: tab.names() == ["hr.table_013", "hr.table_017"])
    assert "2 shown" in tab.text
    assert violations(tab) == []


def test_a_build_is_started_watched_and_cancelled(tab: Tab, fleet: MemoryFleet) -> None:
    table = "hr.table_009"
    tab.one(f'button[aria-label="Build {table}"]').click()
    tab.wait(lambda tab: "The build is requested." in tab.text)
    fleet.begin("r1", 25)
    tab.wait(lambda tab: "25 %, 25 of 100 entries" in tab.text)
    tab.driver.execute_script("document.getElementById('cancel').focus()")
    running = fleet.observations[table].running
    fleet.change(table, running=replace(running, progress=progress(60)))
    tab.wait(lambda tab: "60 %, 60 of 100 entries" in tab.text)
    assert "40 s" in tab.text
    assert tab.driver.switch_to.active_element.get_attribute("id") == "cancel"
    assert violations(tab) == []

    tab.driver.switch_to.active_element.send_keys(Keys.ENTER)
    tab.wait(lambda tab: "The build is being cancelled." in tab.text)
    assert "cancelled" in tab.text
    assert fleet.calls == [("build", table, "operater", None), ("cancel", "r1", "operater")]


def test_a_failure_is_shown_with_its_remedy(tab: Tab, fleet: MemoryFleet) -> None:
    tab.open("/tables/ops.table_003")
    tab.one("#build").click()
    tab.wait(lambda tab: "Waiting since" in tab.text)
    fleet.begin("r1")
    fleet.end("ops.table_003", "died", Refusal("BUILD_FAILED", "Its process died.", "Mend it."))
    tab.wait(lambda tab: "Its process died." in tab.text)
    assert "Mend it. BUILD_FAILED" in tab.text
    fleet.busy = True
    tab.one("#build").click()
    tab.wait(lambda tab: "Too many requests wait." in tab.text)
    assert violations(tab) == []


def test_names_of_every_kind_are_text(tab: Tab, fleet: MemoryFleet) -> None:
    status = status_of("/x", columns=[HOSTILE], partitions=[HOSTILE, "b"])
    fleet.add(seen(HOSTILE, owner=HOSTILE, group=HOSTILE, labels={HOSTILE: "x"}, status=status))
    fleet.change(HOSTILE, plan=(HOSTILE,), plan_id="p1", error=Refusal("X", HOSTILE, HOSTILE))
    fleet.reasons[HOSTILE] = [FakeReason("X", 1, HOSTILE, f"hudi-index build '{HOSTILE}")]
    tab.open("/?sort=name")
    assert HOSTILE in tab.names()
    tab.one("tbody th a").click()
    tab.wait(lambda tab: "Plan to approve" in tab.text)
    assert HOSTILE in tab.one("h1").text
    tab.one("#approve").click()
    tab.wait(lambda tab: "being carried out" in tab.text)
    assert fleet.calls == [("approve", HOSTILE, "operater", "p1")]
    assert tab.driver.execute_script("return window.hostile") is None


def test_real_builds_are_watched_started_and_cancelled(
    chromium: Chrome,
    supervising: Callable[..., Supervisor],
    policy: Callable[..., TablePolicy],
    tmp_path: Path,
) -> None:
    """Children build: one table well, and one without an end."""
    fleet = supervising(policy("orders"), policy("sleeps"))
    settings = WebSettings(port=0, tokens=token_file(tmp_path))
    machinery = Machinery()
    server = WebServer(
        settings, HookSettings(), lambda most: Application(fleet, lambda _: (), machinery, settings)
    )
    server.start()
    tab = Tab(chromium, server.url)
    chromium.delete_all_cookies()
    try:
        tab.sign_in(SECRETS[Role.OPERATE])
        tab.open("/tables/orders")
        tab.wait(lambda tab: "1 entry built" in tab.text and "100 %" in tab.text)
        assert "clustering" in tab.one('section[aria-labelledby="h-timeline"]').text
        tab.one("#verify").click()
        tab.wait(lambda tab: tab.driver.current_url.endswith("?done=verify"))

        tab.open("/tables/sleeps")
        tab.wait(lambda tab: "50 %, 1 of 2 entries" in tab.text)
        tab.one("#cancel").click()
        tab.wait(lambda tab: tab.driver.current_url.endswith("?done=cancel"))
        tab.wait(lambda tab: "cancelled" in tab.one('section[aria-labelledby="h-builds"]').text)
        tab.one("#build").click()
        tab.wait(lambda tab: "by request of operater" in tab.text and "50 %" in tab.text)
    finally:
        chromium.get("about:blank")
        server.close()


def test_a_query_is_answered_and_its_mistake_is_shown(tab: Tab, ask: Asked) -> None:
    tab.open("/tables/ops.table_003")
    tab.one("textarea").send_keys("id = 1")
    tab.one("#count").click()
    tab.wait(lambda tab: "1,234" in tab.text)
    assert violations(tab) == []
    ask.answer = Answer("explain", f"{HOSTILE} " * 40, None, 0.1)
    tab.one("#explain").click()
    tab.wait(lambda tab: HOSTILE in tab.one("pre").text)
    assert violations(tab) == []
    ask.answer = Answer("count", "", Refusal("COLUMN_NOT_FOUND", HOSTILE, "Look."), 0.1)
    tab.one("#count").click()
    tab.wait(lambda tab: "Look. COLUMN_NOT_FOUND" in tab.text)
    assert tab.one("textarea").get_attribute("value") == "id = 1"
    assert violations(tab) == []
    assert tab.driver.execute_script("return window.hostile") is None
    kinds = [kind for _, kind, _ in ask.questions]
    assert kinds == ["count", "explain", "count"]


def test_a_hidden_reason_is_shown_again(tab: Tab, fleet: MemoryFleet) -> None:
    fleet.change("hr.table_009", muted={"lag": datetime.now(UTC) + timedelta(days=2)})
    tab.open("/tables/hr.table_009")
    assert violations(tab) == []
    tab.one("#unmute-lag").click()
    tab.wait(lambda tab: "The reason is shown again." in tab.text)
    assert fleet.calls == [("unmute", "hr.table_009", "operater", "lag")]


def test_the_pages_work_without_scripts(tab: Tab, fleet: MemoryFleet) -> None:
    tab.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open("/")
        tab.one("input[name=text]").send_keys("hr.table_009", Keys.ENTER)
        tab.wait(lambda tab: "1 shown" in tab.text)
        tab.one('button[aria-label="Build hr.table_009"]').click()
        tab.wait(lambda tab: "The build is requested." in tab.text)
        assert fleet.calls == [("build", "hr.table_009", "operater", None)]
    finally:
        tab.command("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_pages_fit_every_screen_and_suit_everybody(
    tab: Tab, fleet: MemoryFleet, width: int, scheme: str
) -> None:
    days = [f"day=2026-02-{day:02d}" for day in range(1, 25)]
    status = status_of("/data/hr.table_009", partitions=days)
    fleet.change("hr.table_009", plan=("Index by_city is created.",), status=status)
    fleet.ask("hr.table_009", Task("build"))
    fleet.begin("r1", 25)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    tab.command("Emulation.setEmulatedMedia", features=[feature])
    tab.command("Emulation.setDeviceMetricsOverride", **size)
    try:
        for path in ("/?text=00", "/tables/hr.table_009", "/tables/none"):
            tab.open(path)
            assert violations(tab) == [], path
            wide = "return document.documentElement.scrollWidth"
            assert tab.driver.execute_script(wide) <= width, path
    finally:
        tab.command("Emulation.clearDeviceMetricsOverride")
        tab.command("Emulation.setEmulatedMedia", features=[])


def test_screenshots_show_what_the_guide_shows(
    tab: Tab, fleet: MemoryFleet, ask: Asked, tmp_path: Path
) -> None:
    """With FLEET_SCREENSHOTS=docs/images, it takes those of the guide anew."""
    folder = Path(os.environ.get("FLEET_SCREENSHOTS") or tmp_path)
    days = [f"day=2026-02-{day:02d}" for day in range(1, 5)]
    status = status_of("/data/hr.table_009", partitions=days)
    fleet.ask("hr.table_009", Task("build"))
    fleet.begin("r1", 43)
    now = datetime.now(UTC)
    running = replace(fleet.observations["hr.table_009"].running, started=now, advanced=now)
    fleet.change("hr.table_009", status=status, running=running)
    instants = ("20260301115500120", "20260301114002733", "20260301110418005", "20260301104503911")
    actions = ("clustering", "clean", "delta commit", "compaction")
    counts = ((4, 1, 3), (0, 0, 0), (0, 0, 0), (12, 12, 0))
    timeline = [
        SeenInstant(time, action, True, *files)
        for time, action, files in zip(instants, actions, counts, strict=True)
    ]
    fleet.change("hr.table_009", timeline=timeline)
    for name, path, height in (("fleet", "/", 560), ("fleet_table", "/tables/hr.table_009", 760)):
        size = {"width": 1100, "height": height, "deviceScaleFactor": 1, "mobile": False}
        tab.command("Emulation.setDeviceMetricsOverride", **size)
        tab.open(path)
        assert tab.driver.save_screenshot(str(folder / f"{name}.png"))
    timeline_card = tab.one('section[aria-labelledby="h-timeline"]')
    assert timeline_card.screenshot(str(folder / "fleet_timeline.png"))
    ask.answer = Answer("count", "48,201", None, 0.36)
    tab.one("textarea").send_keys("user_id = 17 AND day >= '2026-02-01'")
    tab.one("#count").click()
    tab.wait(lambda tab: "48,201" in tab.text)
    answer_card = tab.one('section[aria-labelledby="h-answer"]')
    assert answer_card.screenshot(str(folder / "fleet_query.png"))
    tab.command("Emulation.clearDeviceMetricsOverride")
