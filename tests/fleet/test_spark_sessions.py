"""Spark sessions without Python ask a fleet's service about its tables, each with its token."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_index_service.config import Settings
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.service import Service
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.web.access import Role
from tests.fleet.served import SALES_SECRET, SECRETS, token_file
from tests.indexed import GoldenIndex
from tests.spark_rule.daemons import code, post, request


@pytest.fixture
def orders(golden_index: GoldenIndex) -> Path:
    """A table with an index."""
    return golden_index("tpch_orders", ["o_orderkey"])


@pytest.fixture
def service(orders: Path, tmp_path: Path) -> Iterator[Service]:
    """A service for the table under several names, which builds nothing."""
    web = {"tokens": token_file(tmp_path), "port": 0}
    settings = Settings(web=web, answer={"token": "the session's"})
    link = tmp_path / "unread"
    link.mkdir()
    policies = [
        TablePolicy("hr.orders", str(orders)),
        TablePolicy("sales.unread", str(link), reads=False),
    ]
    with Service(
        lambda listener: Supervisor(policies, settings=settings, listener=listener),
        settings,
        session_token="the session's",
    ) as served:
        served.server.start()
        yield served


def reader(service: Service, text: str, token: str) -> tuple[str, str]:
    """Who reads the rows of a request, and why."""
    status, answer = post(service.server.url, "decide", text, token=token)
    assert status == 200, answer
    decision = json.loads(answer)
    return decision["reader"], decision.get("reason", "")


def test_a_token_reads_its_tables_and_no_other(service: Service, orders: Path) -> None:
    text = request(orders, 7)
    for token in (SECRETS[Role.READ], SECRETS[Role.OPERATE], "the session's"):
        assert reader(service, text, token)[0] == "driver"
        # It has not been kept for another one.
        who, why = reader(service, text, SALES_SECRET)
        assert (who, "is not for this table" in why) == ("spark", True)
        _, rows = post(service.server.url, "rows", text, token=SALES_SECRET)
        assert "is not for this table" in json.loads(rows)["reason"]


def test_other_roles_and_strangers_are_refused(service: Service, orders: Path) -> None:
    for token, refusal in (
        (SECRETS[Role.NOTIFY], (403, "ACCESS_DENIED")),
        (SECRETS[Role.METRICS], (403, "ACCESS_DENIED")),
        ("wrong", (401, "REQUEST_REFUSED")),
    ):
        answer = post(service.server.url, "decide", request(orders, 7), token=token)
        assert code(answer) == refusal


def test_tables_that_are_not_for_reading_are_left_to_spark(
    service: Service, orders: Path, tmp_path: Path
) -> None:
    for elsewhere in (tmp_path / "unread", tmp_path / "elsewhere"):
        text = request(orders, 7).replace(str(orders), str(elsewhere))
        who, why = reader(service, text, SECRETS[Role.READ])
        assert (who, "is not one that this service reads" in why) == ("spark", True)


def test_sessions_change_no_index(service: Service, orders: Path) -> None:
    body = json.dumps({"text": f"DROP INDEX i ON hudi.`{orders}`", "catalog": "spark_catalog"})
    status, answer = post(service.server.url, "run", body, token=SECRETS[Role.OPERATE])
    assert (status, json.loads(answer)["error"]) == (200, "REQUEST_REFUSED"), answer
