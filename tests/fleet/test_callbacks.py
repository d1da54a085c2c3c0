"""What a callback is answered: at once, or with the outcome of the build, and why it is refused."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from hudi_index_service.config import WebSettings
from hudi_index_service.fleet.observation import EndedBuild, Refusal
from hudi_index_service.fleet.web.api import Machinery
from hudi_index_service.fleet.web.application import Application
from hudi_index_service.hook.write_options import CALLBACK_PATH, SECRET_HEADER
from tests.fleet.memory_fleet import NOW, MemoryFleet, seen
from tests.hook.callbacks import callback_of, service_callback_of
from tests.programs import awaited

SECRET = "secret-for-tests"
FAILED = Refusal("TABLE_NOT_FOUND", "Nothing is stored there.", "Check the path.")


def end(outcome: str = "finished", **fields: Any) -> EndedBuild:
    return EndedBuild("r1", "callback", NOW, NOW, outcome, **fields)


@pytest.fixture
def posting(tmp_path: Path) -> Callable[..., TestClient]:
    """Posts callbacks to an application for one table, whose first build may have ended."""

    def client(
        ended: EndedBuild | None = None,
        usual_wait: float = 0.0,
        fleet: MemoryFleet | None = None,
    ) -> TestClient:
        fleet = fleet or MemoryFleet()
        fleet.add(seen("messages", uri=str(tmp_path)))
        if ended is not None:
            fleet.end_of("r1").set_result(ended)
        machinery = Machinery(usual_wait=usual_wait)
        application = Application(
            fleet, fleet.reasons_of, machinery, WebSettings(), callback_secret=SECRET
        )
        return TestClient(application.app, headers={SECRET_HEADER: SECRET})

    return client


@pytest.mark.parametrize(
    ("ended", "query", "answer"),
    [
        (end(), "", {"status": "accepted"}),
        (end(), "?wait=0", {"status": "accepted"}),
        (end(), "?wait=-1", {"status": "accepted"}),
        (end(), "?wait=soon", {"status": "accepted"}),
        (end(built=3), "?wait=60", {"status": "built", "built": 3, "failed": 0}),
        (None, "?wait=0.001", {"status": "accepted"}),
        (
            end("failed", error=FAILED),
            "?wait=60",
            {
                "status": "failed",
                "code": FAILED.code,
                "message": FAILED.message,
                "remedy": FAILED.remedy,
            },
        ),
        (
            end("failed", error=FAILED, built=2, failed=1),
            "?wait=60",
            {"status": "built", "built": 2, "failed": 1},
        ),
    ],
)
def test_an_answer_waits_as_its_url_says(posting, tmp_path, ended, query, answer):
    answered = posting(ended).post(f"{CALLBACK_PATH}{query}", content=callback_of(tmp_path))

    assert answered.status_code == (202 if answer == {"status": "accepted"} else 200)
    assert answered.json() == answer


def test_an_answer_waits_as_usual_if_its_url_says_nothing(posting, tmp_path):
    client = posting(end(built=1), usual_wait=60)
    assert client.post(CALLBACK_PATH, content=callback_of(tmp_path)).json()["status"] == "built"
    answered = client.post(f"{CALLBACK_PATH}?wait=0", content=callback_of(tmp_path))
    assert answered.json() == {"status": "accepted"}


@pytest.mark.parametrize("leaves", [False, True])
def test_an_answer_comes_once_its_build_has_an_end_or_never_will(posting, tmp_path, leaves):
    fleet = MemoryFleet()
    client, url = posting(fleet=fleet), f"{CALLBACK_PATH}?wait=3600"
    with ThreadPoolExecutor() as writer:
        answer = writer.submit(client.post, url, content=callback_of(tmp_path))
        assert awaited(lambda: "r1" in fleet.ends, 30)
        assert not answer.done()
        if leaves:
            fleet.ends["r1"].cancel()
        else:
            fleet.ends["r1"].set_result(end(built=1))
        assert answer.result(30).json()["status"] == ("accepted" if leaves else "built")


@pytest.mark.parametrize("action", ["replacecommit", "commit", "logcompaction", "clustering"])
def test_a_callback_of_a_table_service_is_taken(posting, tmp_path, action):
    answered = posting().post(CALLBACK_PATH, content=service_callback_of(tmp_path, action))
    assert answered.status_code == 202


@pytest.mark.parametrize("secret", ["", "wrong", f"{SECRET}x", SECRET[:-1]])
def test_a_wrong_secret_is_refused(posting, tmp_path, secret):
    answered = posting().post(
        CALLBACK_PATH, content=callback_of(tmp_path), headers={SECRET_HEADER: secret}
    )
    assert answered.status_code == 401
    assert answered.json() == {
        "code": "CALLBACK_REFUSED",
        "message": f"The header {SECRET_HEADER} is missing or wrong.",
        "remedy": "Write the table with the options from IndexHook.write_options(table).",
    }


@pytest.mark.parametrize("base_path", ["/other", "oss://bucket/table", "", "\0", "s3://"])
def test_another_table_is_refused(posting, base_path):
    answered = posting().post(CALLBACK_PATH, content=json.dumps({"basePath": base_path}).encode())
    assert (answered.status_code, answered.json()["code"]) == (403, "CALLBACK_REFUSED")
    assert "hudi-index serve" in answered.json()["remedy"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[]", b"{}", b'{"basePath": 1}', b"[" * 200_000],
    ids=["empty", "cut", "binary", "list", "no path", "number", "deep"],
)
def test_a_body_that_is_no_callback_is_refused(posting, body):
    answered = posting().post(CALLBACK_PATH, content=body)
    assert (answered.status_code, answered.json()["code"]) == (400, "CALLBACK_REFUSED")
    assert answered.json()["message"] == "The body is not a Hudi commit callback."


def test_a_body_that_is_too_long_is_refused(posting, monkeypatch):
    monkeypatch.setattr("hudi_index_service.fleet.web.callbacks.MAX_CALLBACK_BYTES", 1000)
    answered = posting().post(CALLBACK_PATH, content=b" " * 1001)
    assert (answered.status_code, answered.json()["code"]) == (413, "CALLBACK_REFUSED")
    assert answered.json()["message"] == "The body is longer than 1000 bytes."
