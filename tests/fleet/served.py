"""An application over a fleet in memory, with a token of each role, and clients of it."""

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from starlette.testclient import TestClient

from hudi_index_service.config import WebSettings
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.web.access import Role, digest_of
from hudi_index_service.fleet.web.api import Machinery
from hudi_index_service.fleet.web.application import Application, MoreRoutes
from hudi_index_service.fleet.web.queries import Answer, Ask, Kind
from tests.fleet.memory_fleet import MemoryFleet

PROGRAM = "from hudi_index_service.cli import main; main()"
"""The service as a process."""

FILE_START = """\
version: 1
defaults:
  poll: 1s
  strategy: all
  apply: auto
  max_backfill_bytes: 1GiB
  backfill: all
  definitions:
  - {{name: by_id, columns: [id], types: [btree]}}
"""
"""The start of a fleet file, as a format: all of each table is indexed as soon as it is seen."""

CANARY = "canary-7f3b"
"""Part of every secret."""

SECRETS = {role: f"{CANARY}-{role}-secret" for role in Role}
SALES_SECRET = f"{CANARY}-only-sales-secret"
CALLBACK_SECRET = f"{CANARY}-callback-secret"
ORIGIN = "http://testserver"


def token_file(folder: Path) -> Path:
    """A file with a token of each role, and one to operate tables of `sales` only."""
    lines = [f"{role}r {role} {digest_of(secret)}" for role, secret in SECRETS.items()]
    lines.append(f"sales operate {digest_of(SALES_SECRET)} sales.*")
    path = folder / "tokens"
    path.write_text("# name role SHA-256 tables\n" + "\n".join(lines) + "\n")
    path.chmod(0o600)
    return path


@dataclass
class Served:
    """An application, and what it was made with."""

    fleet: MemoryFleet
    application: Application
    outcomes: list[str] = field(default_factory=list)
    problems: list[Refusal] = field(default_factory=list)

    def client(self) -> TestClient:
        """A browser that follows no redirect."""
        return TestClient(self.application.app, follow_redirects=False, base_url=ORIGIN)

    def api(self, secret: str) -> TestClient:
        """A client of the API."""
        client = self.client()
        client.headers["authorization"] = f"Bearer {secret}"
        return client

    def browser(self, role: Role = Role.OPERATE) -> "Browser":
        """A browser that is signed in."""
        browser = Browser(self.client())
        browser.sign_in(SECRETS[role])
        return browser


@dataclass
class Browser:
    """Sends forms as a browser does."""

    client: TestClient

    def get(self, path: str):
        """A page."""
        return self.client.get(path)

    def form_token(self, path: str = "/login") -> str:
        """The token of the forms on a page."""
        found = re.search(r'name="form_token" value="(\w+)"', self.client.get(path).text)
        assert found is not None
        return found.group(1)

    def post(self, path: str, *, origin: str | None = ORIGIN, page: str = "/", **fields: str):
        """Sends a form that is on a page, from an origin."""
        headers = {} if origin is None else {"origin": origin}
        data = {"form_token": self.form_token(page), **fields}
        return self.client.post(path, data=data, headers=headers)

    def sign_in(self, secret: str):
        """Sends the login form."""
        return self.post("/login", page="/login", token=secret)


class Asked:
    """Answers as a test says, and remembers what was asked."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, str, str]] = []
        self.answer: Answer | Exception = Answer("count", "1,234", None, 0.25)

    def __call__(self, policy: TablePolicy, kind: Kind, where: str) -> Answer:
        self.questions.append((policy.name, kind, where))
        if isinstance(self.answer, Exception):
            raise self.answer
        return replace(self.answer, kind=kind)


def served(
    folder: Path,
    fleet: MemoryFleet | None = None,
    *,
    metrics: Callable[[], bytes] = lambda: b"up 1\n",
    ready: Callable[[], bool] = lambda: True,
    ask: Ask | None = None,
    more_routes: MoreRoutes = lambda requests, gate, streams: (),
    running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    **settings: object,
) -> Served:
    """An application over a fleet."""
    fleet = fleet or MemoryFleet()
    outcomes: list[str] = []
    problems: list[Refusal] = []
    machinery = Machinery(metrics, ready=ready, callback=outcomes.append, problems=lambda: problems)
    known = WebSettings(**{"tokens": token_file(folder), **settings})  # type: ignore[arg-type]
    application = Application(
        fleet,
        fleet.reasons_of,
        machinery,
        known,
        callback_secret=CALLBACK_SECRET,
        ask=ask,
        more_routes=more_routes,
        running=running,
    )
    return Served(fleet, application, outcomes, problems)
