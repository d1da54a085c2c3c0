"""The API answers as its description says; roles and patterns of tables hold; nothing of a secret
is ever shown."""

import json
import logging
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import jsonschema
import pytest
from starlette.testclient import TestClient

from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.web.access import ALLOWED, Action, Role
from hudi_index_service.fleet.web.api import ROUTES, openapi
from hudi_index_service.fleet.web.reads import ROUTES as READ_ROUTES
from hudi_index_service.hook.write_options import SECRET_HEADER
from tests.fleet.memory_fleet import FakeReason, MemoryFleet, seen, status_of
from tests.fleet.served import CALLBACK_SECRET, CANARY, SALES_SECRET, SECRETS, Browser, served
from tests.hook.callbacks import callback_of

DESCRIPTION = openapi()


@pytest.fixture
def fleet():
    fleet = MemoryFleet()
    fleet.add(
        seen("sales.orders", owner="Ann", group="sales", status=status_of("/data/sales.orders")),
        seen("hr.people", owner="Bo"),
        seen("lake/deep table", uri="/lake/deep table"),
    )
    fleet.reasons["hr.people"] = [
        FakeReason("COVERAGE_LOW", 3, "Too few.", "hudi-index build /data/hr.people")
    ]
    return fleet


@pytest.fixture
def service(fleet, tmp_path):
    return served(tmp_path, fleet)


@pytest.fixture
def operator(service):
    return service.api(SECRETS[Role.OPERATE])


def checked(answer, method, path):
    """The content of an answer, as the description has it for a path."""
    assert answer.headers["content-type"] == "application/json"
    described = DESCRIPTION["paths"][path][method.lower()]["responses"]
    schema = described[str(answer.status_code)]["content"]["application/json"]["schema"]
    content = answer.json()
    jsonschema.validate(
        content,
        {**schema, "components": DESCRIPTION["components"]},
        format_checker=jsonschema.FormatChecker(),
    )
    return content


def test_every_route_is_described_and_the_description_is_open(service):
    answer = service.client().get("/api/v1/openapi.json")

    assert answer.json() == json.loads(json.dumps(DESCRIPTION))
    described = {(p, m.upper()) for p, each in DESCRIPTION["paths"].items() for m in each}
    reads = {
        (f"/api/v1/tables/{{name}}/{route.path}", method)
        for route in READ_ROUTES
        for method in (("GET", "POST") if route.by_get else ("POST",))
    }
    assert described == reads | {(f"/api/v1{route.path}", route.method) for route in ROUTES}
    assert DESCRIPTION["openapi"].startswith("3.1")


def test_every_reference_in_the_description_leads_somewhere():
    known = {f"#/components/schemas/{name}" for name in DESCRIPTION["components"]["schemas"]}

    def references(value):
        if isinstance(value, dict):
            for name, each in value.items():
                yield from [each] if name == "$ref" else references(each)
        elif isinstance(value, list):
            for each in value:
                yield from references(each)

    assert set(references(DESCRIPTION)) <= known


def test_tables_come_by_attention_and_each_with_its_status(operator):
    tables = checked(operator.get("/api/v1/tables"), "get", "/api/v1/tables")["tables"]

    assert [each["name"] for each in tables] == ["hr.people", "lake/deep table", "sales.orders"]
    assert tables[0]["severity"] == 3
    assert tables[0]["reasons"][0]["remedy"] == "hudi-index build /data/hr.people"
    assert tables[2] == tables[2] | {"coverage": 0.8, "due": 2, "state": "idle", "severity": 0}
    for name in ("sales.orders", "lake/deep table", "lake%2Fdeep%20table"):
        answer = operator.get(f"/api/v1/tables/{name}")
        table = checked(answer, "get", "/api/v1/tables/{name}")
        assert table["status"]["indexes"][0]["index"] == "by_text"


def test_a_build_from_its_request_to_its_end(operator, fleet):
    path = "/api/v1/tables/sales.orders/builds"
    headers = {"Idempotency-Key": "run-1"}
    described = "/api/v1/tables/{name}/builds"
    answer = operator.post(path, json={"strategy": "all"}, headers=headers)
    assert answer.status_code == 202
    first = checked(answer, "post", described)
    again = checked(operator.post(path, headers=headers), "post", described)
    assert again == {**first, "repeated": True}
    assert fleet.calls == [("build", "sales.orders", "operater", "all")]

    build = f"/api/v1/builds/{first['id']}"
    one = "/api/v1/builds/{id}"
    assert checked(operator.get(build), "get", one)["state"] == "waiting"
    fleet.begin(first["id"], 25)
    running = checked(operator.get(build), "get", one)
    assert running["state"] == "running"
    assert running["progress"]["files_done"] == 25
    fleet.end("sales.orders", "failed", Refusal("BUILD_FAILED", "It failed.", "Mend it."))
    ended = checked(operator.get(build), "get", one)
    assert ended["table"] == "sales.orders"
    assert ended["error"] == {"code": "BUILD_FAILED", "message": "It failed.", "remedy": "Mend it."}


@pytest.mark.parametrize("what", ["builds", "clean", "verify"])
def test_a_request_with_a_key_is_one_request_and_its_end_may_be_waited_for(operator, fleet, what):
    path, described = f"/api/v1/tables/sales.orders/{what}", f"/api/v1/tables/{{name}}/{what}"
    headers = {"Idempotency-Key": "run-1"}
    first = checked(operator.post(f"{path}?wait=0.01", headers=headers), "post", described)
    assert first["build"]["state"] == "waiting"

    fleet.begin(first["id"])
    fleet.end("sales.orders", "finished")
    again = checked(operator.post(f"{path}?wait=60", headers=headers), "post", described)
    assert (again["id"], again["repeated"]) == (first["id"], True)
    assert again["build"]["state"] == "finished"
    build = operator.get(f"/api/v1/builds/{first['id']}?wait=60")
    assert checked(build, "get", "/api/v1/builds/{id}")["state"] == "finished"
    assert len(fleet.calls) == 1


@pytest.mark.parametrize("wait", ["soon", "-1", "nan", "inf"])
def test_a_wait_is_a_number_of_seconds(operator, fleet, wait):
    answer = operator.post(f"/api/v1/tables/sales.orders/builds?wait={wait}")

    assert answer.status_code == 400
    assert wait in checked(answer, "post", "/api/v1/tables/{name}/builds")["message"]
    assert fleet.calls == []


def test_with_too_many_streams_no_request_waits(fleet, tmp_path):
    service = served(tmp_path, fleet, max_streams=1)
    service.application.streams.open = 1
    answer = service.api(SECRETS[Role.OPERATE]).post("/api/v1/tables/sales.orders/clean?wait=60")

    assert answer.json()["build"]["state"] == "waiting"


@pytest.mark.parametrize("what", ["builds", "clean", "verify", "approve"])
def test_a_paused_table_says_so_and_is_not_to_be_tried_again(operator, fleet, what):
    fleet.add(seen("hr.paused", enabled=False))
    answer = operator.post(f"/api/v1/tables/hr.paused/{what}")

    assert answer.status_code == 409
    assert "retry-after" not in answer.headers
    error = checked(answer, "post", f"/api/v1/tables/{{name}}/{what}")
    assert error["message"] == "The table 'hr.paused' is paused."
    assert fleet.calls == []


def test_problems_of_the_service_are_for_tokens_that_see_all_tables(service, operator):
    full = Refusal("STORAGE_FAILED", "The disk is full.", "Free space.")
    service.problems.append(full)

    found = checked(operator.get("/api/v1/tables"), "get", "/api/v1/tables")
    assert found["problems"] == [asdict(full)]
    of_sales = service.api(SALES_SECRET).get("/api/v1/tables").json()
    assert ([each["name"] for each in of_sales["tables"]], of_sales["problems"]) == (
        ["sales.orders"],
        [],
    )
    service.problems.clear()
    assert operator.get("/api/v1/tables").json()["problems"] == []


def test_muted_reasons_are_listed_until_they_are_shown_again(operator, fleet):
    later, before = (datetime.now(UTC) + timedelta(days=each) for each in (1, -1))
    fleet.change("hr.people", muted={"lag": later, "drift": before})
    table = checked(operator.get("/api/v1/tables/hr.people"), "get", "/api/v1/tables/{name}")

    assert table["muted"] == [{"code": "lag", "until": later.isoformat()}]


def test_a_running_build_is_cancelled(operator, fleet):
    request = operator.post("/api/v1/tables/sales.orders/builds").json()["id"]
    fleet.begin(request)
    answer = operator.post(f"/api/v1/builds/{request}/cancel")

    assert checked(answer, "post", "/api/v1/builds/{id}/cancel") == {"done": True}
    assert operator.get(f"/api/v1/builds/{request}").json()["state"] == "cancelled"
    unknown = operator.post("/api/v1/builds/none/cancel")
    assert unknown.status_code == 404
    assert checked(unknown, "post", "/api/v1/builds/{id}/cancel")["code"] == "REQUEST_UNKNOWN"


@pytest.mark.parametrize(
    ("what", "body", "call"),
    [
        ("clean", {"dry_run": True}, ("clean", "hr.people", "operater", True)),
        ("clean", None, ("clean", "hr.people", "operater", False)),
        ("verify", None, ("verify", "hr.people", "operater")),
        ("verify", {"repair": True}, ("verify", "hr.people", "operater", "repair")),
        ("approve", None, ("approve", "hr.people", "operater", "")),
        ("approve", {"plan": "p1"}, ("approve", "hr.people", "operater", "p1")),
        ("mute", {"code": "lag", "days": 7}, ("mute", "hr.people", "operater", "lag", 7)),
        ("unmute", {"code": "lag"}, ("unmute", "hr.people", "operater", "lag")),
    ],
)
def test_what_an_operator_asks_for_is_done_and_logged(operator, fleet, caplog, what, body, call):
    with caplog.at_level(logging.INFO):
        answer = operator.post(f"/api/v1/tables/hr.people/{what}", json=body)

    checked(answer, "post", f"/api/v1/tables/{{name}}/{what}")
    assert fleet.calls == [call]
    (record,) = [each for each in caplog.records if "Operator" in each.getMessage()]
    assert record.table == "/data/hr.people"
    line = record.getMessage()
    assert what in line
    assert "'hr.people'" in line
    assert "by operater from testclient" in line


@pytest.mark.parametrize(
    ("path", "body", "word"),
    [
        ("builds", {"strategy": "some"}, "strategy"),
        ("builds", {"Strategy": "all"}, "Strategy"),
        ("mute", {"code": "lag", "days": 0}, "days"),
        ("mute", {"code": "late", "days": 1}, "'lag'"),
        ("mute", {}, "code"),
        ("unmute", {"code": "late"}, "'lag'"),
        ("verify", {"more": 1}, "more"),
        ("verify", [], "wrong"),
    ],
)
def test_a_wrong_body_is_refused_with_its_field(operator, fleet, path, body, word):
    answer = operator.post(f"/api/v1/tables/hr.people/{path}", json=body)

    assert answer.status_code == 400
    assert word in checked(answer, "post", f"/api/v1/tables/{{name}}/{path}")["message"]
    assert fleet.calls == []


def test_a_long_body_and_a_strange_key_are_refused(operator, fleet):
    path, described = "/api/v1/tables/hr.people/builds", "/api/v1/tables/{name}/builds"
    for content in (b" " * 65_537, iter([b" " * 40_000] * 2)):
        answer = operator.post(path, content=content)
        assert answer.status_code == 413
        checked(answer, "post", described)
    for key in ("", "a b", "k" * 201):
        assert operator.post(path, headers={"Idempotency-Key": key}).status_code == 400
    assert fleet.calls == []


def test_a_busy_service_says_when_to_try_again(operator, fleet):
    fleet.busy = True
    answer = operator.post("/api/v1/tables/hr.people/builds")

    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    checked(answer, "post", "/api/v1/tables/{name}/builds")


def called(client: TestClient, route):
    """A request of a route."""
    path = route.path.replace("{name}", "sales.orders").replace("{id}", "r9")
    action = path.rpartition("/")[2]
    body = {"mute": {"code": "lag", "days": 1}, "unmute": {"code": "lag"}}.get(action)
    return client.request(route.method, f"/api/v1{path}", json=body)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_each_role_gets_what_it_may_and_403_for_the_rest(service, fleet, route):
    for role in Role:
        answer = called(service.api(SECRETS[role]), route)
        described = f"/api/v1{route.path}"
        content = checked(answer, route.method, described)
        if route.action in ALLOWED[role]:
            assert answer.status_code in (200, 202, 404)
        else:
            assert answer.status_code == 403
            assert content["code"] == "ACCESS_DENIED"
            assert "\n" not in content["message"]
    assert all(call[2] == "operater" for call in fleet.calls)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
@pytest.mark.parametrize("header", [{}, {"authorization": "Bearer wrong"}, {"cookie": "a=b"}])
def test_nobody_gets_in_without_a_token(service, fleet, route, header):
    client = service.client()
    client.headers.update(header)
    answer = called(client, route)

    assert answer.status_code == 401
    assert "Bearer" in answer.headers["www-authenticate"]
    assert checked(answer, route.method, f"/api/v1{route.path}")["code"] == "ACCESS_REFUSED"
    assert fleet.calls == []


def test_a_token_for_some_tables_finds_no_other(service, fleet):
    client = service.api(SALES_SECRET)

    tables = client.get("/api/v1/tables").json()["tables"]
    assert [each["name"] for each in tables] == ["sales.orders"]
    for method, path in (("get", ""), ("post", "/builds"), ("post", "/clean")):
        answer = client.request(method, f"/api/v1/tables/hr.people{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "TABLE_NOT_IN_FLEET")
    other = service.api(SECRETS[Role.OPERATE]).post("/api/v1/tables/hr.people/builds").json()["id"]
    mine = client.post("/api/v1/tables/sales.orders/builds").json()["id"]
    assert client.get(f"/api/v1/builds/{mine}").status_code == 200
    for method, path in (("get", other), ("post", f"{other}/cancel"), ("get", "unknown")):
        answer = client.request(method, f"/api/v1/builds/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "REQUEST_UNKNOWN")


def test_a_key_of_one_token_is_none_of_another(service):
    path, headers = "/api/v1/tables/sales.orders/builds", {"Idempotency-Key": "1"}
    first = service.api(SALES_SECRET).post(path, headers=headers).json()
    second = service.api(SECRETS[Role.OPERATE]).post(path, headers=headers).json()

    assert first["id"] != second["id"]
    assert not second["repeated"]


def test_what_is_no_character_is_escaped(operator, fleet):
    odd = "\ud800"
    fleet.add(
        seen(f"odd{odd}", owner=odd, labels={odd: odd}, status=status_of("/o", columns=[odd]))
    )

    tables = checked(operator.get("/api/v1/tables"), "get", "/api/v1/tables")["tables"]
    assert tables[2]["name"] == "odd\\ud800"
    assert tables[2]["labels"] == {"\\ud800": "\\ud800"}


def test_what_is_not_there_is_404_in_json(operator):
    for method, path in (
        ("get", "/api/v1/none"),
        ("get", "/api/v2/tables"),
        ("put", "/api/v1/tables"),
    ):
        answer = operator.request(method, path)
        assert answer.status_code in (404, 405)
        assert answer.json()["code"] == "REQUEST_INVALID"


def test_health_is_bare_and_open_and_metrics_need_their_role(fleet, tmp_path):
    ready = [True]
    service = served(tmp_path, fleet, ready=lambda: ready[0], metrics=lambda: b"hudi 1\n")
    client = service.client()

    assert (client.get("/healthz").text, client.get("/readyz").text) == ("ok\n", "ok\n")
    ready[0] = False
    assert (client.get("/healthz").status_code, client.get("/readyz").status_code) == (200, 503)
    for role in Role:
        answer = service.api(SECRETS[role]).get("/metrics")
        assert answer.status_code == (200 if Action.SCRAPE in ALLOWED[role] else 403)
    answer = service.api(SECRETS[Role.METRICS]).get("/metrics")
    assert answer.content == b"hudi 1\n"
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert client.get("/metrics").status_code == 401


@pytest.mark.parametrize(
    ("header", "secret"),
    [
        (SECRET_HEADER, CALLBACK_SECRET),
        (SECRET_HEADER, SECRETS[Role.NOTIFY]),
        (SECRET_HEADER, SALES_SECRET),
        ("Authorization", f"Bearer {SECRETS[Role.OPERATE]}"),
    ],
)
def test_a_callback_wakes_its_table(service, fleet, header, secret):
    body = callback_of("/data/../data/sales.orders")
    answer = service.client().post("/hudi/commit", content=body, headers={header: secret})

    assert (answer.status_code, answer.json()) == (202, {"status": "accepted"})
    assert fleet.woken == ["/data/sales.orders"]
    assert service.outcomes == ["accepted"]


@pytest.mark.parametrize(
    ("secret", "body", "status", "outcome"),
    [
        ("wrong", callback_of("/data/hr.people"), 401, "denied"),
        (None, callback_of("/data/hr.people"), 401, "denied"),
        (SECRETS[Role.READ], callback_of("/data/hr.people"), 403, "denied"),
        (SALES_SECRET, callback_of("/data/hr.people"), 403, "denied"),
        (CALLBACK_SECRET, callback_of("/data/none"), 403, "unknown_table"),
        (CALLBACK_SECRET, callback_of("/data/sales.orders/../none"), 403, "unknown_table"),
        (CALLBACK_SECRET, b'{"basePath": "oss://bucket/table"}', 403, "unknown_table"),
        (CALLBACK_SECRET, b"{", 400, "malformed"),
        (CALLBACK_SECRET, b"[" * 200_000, 400, "malformed"),
        (CALLBACK_SECRET, b"[" * 300_000, 400, "malformed"),
        (CALLBACK_SECRET, b'{"basePath": 1}', 400, "malformed"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else str(value),
)
def test_a_callback_is_refused_and_counted(service, fleet, secret, body, status, outcome):
    headers = {} if secret is None else {SECRET_HEADER: secret}
    answer = service.client().post("/hudi/commit", content=body, headers=headers)

    assert answer.status_code == status
    assert set(answer.json()) == {"code", "message", "remedy"}
    assert (fleet.woken, service.outcomes) == ([], [outcome])


def test_a_callback_to_a_paused_table_is_not_to_come_again(service, fleet):
    fleet.add(seen("hr.paused", enabled=False))
    answer = service.client().post(
        "/hudi/commit",
        content=callback_of("/data/hr.paused"),
        headers={SECRET_HEADER: CALLBACK_SECRET},
    )

    assert (answer.status_code, answer.json()["code"]) == (409, "CALLBACK_REFUSED")
    assert "retry-after" not in answer.headers
    assert (fleet.woken, service.outcomes) == ([], ["refused"])


def test_a_callback_to_a_busy_service_is_to_come_again(service, fleet):
    fleet.busy = True
    answer = service.client().post(
        "/hudi/commit",
        content=callback_of("/data/hr.people"),
        headers={SECRET_HEADER: CALLBACK_SECRET},
    )

    assert answer.status_code == 503
    assert "retry-after" in answer.headers
    assert service.outcomes == ["refused"]


def test_many_wrong_tokens_of_an_address_are_slowed_down_and_a_right_one_is_not(service):
    wrong = service.api("wrong")
    answers = [wrong.get("/api/v1/tables") for _ in range(12)]

    assert [each.status_code for each in answers] == [401] * 10 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) > 0
    checked(answers[-1], "get", "/api/v1/tables")
    assert service.api(SECRETS[Role.READ]).get("/api/v1/tables").status_code == 200


def test_no_secret_is_shown_or_logged(service, fleet, caplog, tmp_path):
    """Every secret has a canary in it."""
    caplog.set_level(logging.DEBUG)
    (tmp_path / "tokens").write_text(f"{CANARY} read {CANARY}\n")
    seen_texts, bodies, cookies = [], [], []
    for secret in (*SECRETS.values(), CALLBACK_SECRET, f"{CANARY}-wrong"):
        client = service.api(secret)
        client.headers[SECRET_HEADER] = secret
        answers = [called(client, route) for route in ROUTES]
        answers += [client.get(path) for path in ("/metrics", "/", "/login", "/tables/none")]
        for body in (callback_of("/data/hr.people"), b"{"):
            answers.append(client.post("/hudi/commit", content=body))
        answers.append(client.post("/login", data={"token": secret}))
        answers.append(Browser(service.client()).sign_in(secret))
        browser = service.browser(Role.OPERATE)
        answers += [browser.get("/"), browser.get("/tables/hr.people")]
        cookies += browser.client.cookies.values()
        seen_texts += [f"{each.headers} {each.text}" for each in answers]
        bodies += [each.text for each in answers]

    assert cookies
    assert not [each for each in cookies if each in caplog.text or each in "".join(bodies)]
    assert not [text for text in seen_texts if CANARY in text]
    assert CANARY not in caplog.text
    assert "stay valid" in caplog.text
