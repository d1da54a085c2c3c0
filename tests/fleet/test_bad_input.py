"""What goes wrong with a table is said on the page, in the metrics and in the log, as what it is,
and nothing is lost by it."""

import logging
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hudi_index_service.config import WebSettings
from hudi_index_service.errors import StorageFailed
from hudi_index_service.fleet.observation import Observation
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.signals.attention import Reason
from hudi_index_service.fleet.signals.logs import log_change
from hudi_index_service.fleet.signals.metrics import Metrics
from hudi_index_service.fleet.signals.seen import Seen
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.fleet.web.api import Machinery
from hudi_index_service.fleet.web.application import Application
from hudi_index_service.fleet.work import Listener
from hudi_index_service.storage.store import Storage
from tests.fleet.conftest import is_covered, seen
from tests.fleet.memory_fleet import MemoryFleet
from tests.fleet.served import SECRETS, Served, token_file
from tests.programs import awaited

pytestmark = pytest.mark.slow


class Told(Listener):
    """Hands what is seen to attention and log, as the service does."""

    def __init__(self) -> None:
        self.seen = Seen()

    def observed(self, observation: Observation) -> None:
        log_change(observation, self.seen.observe(observation, datetime.now(UTC)))


class Shown:
    """What people and Prometheus see of one table of a running fleet."""

    def __init__(self, fleet: Supervisor, told: Told, served: Served, metrics: Metrics) -> None:
        self.fleet, self._told, self._metrics = fleet, told, metrics
        self._served, self._browser = served, served.browser(Role.READ)

    def page(self, name: str = "") -> str:
        """The list, or the page of a table."""
        answer = self._browser.get(f"/tables/{name}" if name else "/")
        assert answer.status_code == 200
        return unescape(answer.text)

    def post_as(self, role: Role, path: str) -> Any:
        """What the API answers to a token."""
        return self._served.api(SECRETS[role]).post(path)

    def reasons(self, name: str) -> list[str]:
        """The codes of the reasons that are shown."""
        shown = self._told.seen.shown(self.fleet.table(name), datetime.now(UTC))
        return [str(each.code) for each in shown]

    def metric(self, metric: str, **labels: str) -> float | None:
        """The value of the series with these labels; None if there is none."""
        for family in text_string_to_metric_families(self._metrics.text().decode()):
            for sample in family.samples:
                if (
                    sample.name == f"hudi_index_{metric}"
                    and labels.items() <= sample.labels.items()
                ):
                    return float(sample.value)
        return None


@pytest.fixture
def shown(
    supervising: Callable[..., Supervisor], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> Iterator[Callable[..., Shown]]:
    """A running fleet with its page and its metrics."""
    caplog.set_level(logging.INFO, "hudi_index_service.fleet")
    made: list[Metrics] = []

    def start(*policies: TablePolicy) -> Shown:
        told = Told()
        fleet = supervising(*policies, listener=told)

        def reasons_of(seen: Observation) -> tuple[Reason, ...]:
            return told.seen.shown(seen, datetime.now(UTC))

        made.append(Metrics(fleet.tables, reasons_of))
        application = Application(
            fleet,
            reasons_of,
            Machinery(made[0].text),
            WebSettings(tokens=token_file(tmp_path)),
        )
        return Shown(fleet, told, Served(MemoryFleet(), application), made[0])

    yield start
    for each in made:
        each.close()


def test_a_vanished_table_is_unreachable_until_it_is_back(
    shown: Callable[..., Shown], policy: Callable[..., TablePolicy], caplog: Any
) -> None:
    table, other = policy("orders"), policy("others")
    fleet = shown(table, other)
    seen(fleet.fleet, "orders", is_covered)
    away = Path(table.uri).rename(f"{table.uri}-away")

    awaited(lambda: fleet.reasons("orders") == ["unreachable"], 60, 0.02)

    page = fleet.page()
    assert page.index("orders") < page.index("others")
    assert "polls failed" in page
    assert "TABLE_NOT_FOUND" in fleet.page("orders")
    assert fleet.metric("table_up", table="orders") == 0
    assert fleet.metric("table_up", table="others") == 1
    assert fleet.metric("attention_severity", table="orders") == 1
    assert fleet.metric("coverage_ratio", table="orders") == 1  # as it was last seen

    away.rename(table.uri)
    awaited(lambda: not fleet.reasons("orders"), 60, 0.02)
    assert fleet.metric("table_up", table="orders") == 1
    told = [each.getMessage() for each in caplog.records if "orders" in each.getMessage()]
    # First the folder cannot be listed, then there is none: a line each, and none a poll.
    assert 1 <= sum("cannot be looked at" in each for each in told) <= 2
    for words in ("needs attention (unreachable", "unreachable has gone"):
        assert sum(words in each for each in told) == 1


def test_a_table_without_an_index_is_well(
    shown: Callable[..., Shown], policy: Callable[..., TablePolicy], caplog: Any
) -> None:
    table = policy("bare")
    shutil.rmtree(Path(table.uri, ".hoodie", ".index"))
    fleet = shown(table)

    found = seen(fleet.fleet, "bare", lambda now: now.ended and not (now.running or now.queued))

    assert {each.outcome for each in found.ended} == {"finished"}
    awaited(lambda: fleet.fleet.table("bare").at != found.at, 60, 0.02)
    assert fleet.reasons("bare") == []
    assert (fleet.metric("table_up", table="bare"), fleet.metric("lag_instants", table="bare")) == (
        *(1, 0),
    )
    assert fleet.metric("coverage_ratio", table="bare") is None
    assert "–" in fleet.page()
    assert "no index" in fleet.page("bare")
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_what_a_store_took_while_it_was_down_is_built_when_it_is_back(
    shown: Callable[..., Shown],
    policy: Callable[..., TablePolicy],
    golden: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = policy("orders", step="written")
    fleet = shown(table)
    seen(fleet.fleet, "orders", lambda now: now.ended and not (now.running or now.queued))
    builds = len(fleet.fleet.table("orders").ended)
    names_in = Storage.names_in

    def is_down(*_: Any, **__: Any) -> Any:
        raise StorageFailed("The store does not answer.", remedy="Wait for it.")

    monkeypatch.setattr(Storage, "names_in", is_down)
    awaited(lambda: fleet.reasons("orders") == ["unreachable"], 60, 0.02)
    golden("messages_of_users").put(Path(table.uri), "clustered")
    asked = fleet.fleet.callback(table.uri)
    assert "The store does not answer." in fleet.page()
    assert "Wait for it." in fleet.page("orders")
    # The child reaches it: to look is one thing, and to build another.
    assert fleet.fleet.end_of(asked.id).result(60)
    assert fleet.metric("table_up", table="orders") == 0

    monkeypatch.setattr(Storage, "names_in", names_in)
    found = seen(fleet.fleet, "orders", is_covered)
    assert len(found.ended) > builds
    awaited(lambda: not fleet.reasons("orders"), 60, 0.02)


def test_a_clock_that_steps_back_stops_nothing(
    shown: Callable[..., Shown],
    policy: Callable[..., TablePolicy],
    golden: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
) -> None:
    table = policy("orders", step="written", max_lag=timedelta(hours=1))
    fleet = shown(table)
    before = seen(fleet.fleet, "orders", lambda now: now.ended and not (now.running or now.queued))
    assert before.at is not None

    class Yesterday(datetime):
        """A clock that somebody has set."""

        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) - timedelta(days=1)

    for module in ("supervisor", "work", "table_state"):
        monkeypatch.setattr(f"hudi_index_service.fleet.{module}.datetime", Yesterday)
    golden("messages_of_users").put(Path(table.uri), "clustered")

    found = seen(fleet.fleet, "orders", lambda now: is_covered(now) and not now.running)
    assert found.at < before.at
    later = seen(fleet.fleet, "orders", lambda now: now.at > found.at and not now.queued)
    assert later.ended[0].started < before.at
    assert fleet.reasons("orders") == []
    assert "100 %" in fleet.page("orders")
    verified = [each for each in caplog.records if "verify finished" in each.getMessage()]
    assert len(verified) <= 1  # its week is over, by this clock, once


def test_a_wrong_role_is_one_line_of_the_log(
    shown: Callable[..., Shown], policy: Callable[..., TablePolicy], caplog: Any
) -> None:
    fleet = shown(policy("works", enabled=False))
    for _ in range(3):
        assert fleet.post_as(Role.READ, "/api/v1/tables/works/builds").status_code == 403
    assert caplog.text.count("The token readr has the role read, which may not operate.") == 1
