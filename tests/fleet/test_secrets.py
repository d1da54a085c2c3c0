"""A canary in every secret of a real service with TLS, tokens, a callback's secret and a store's
options: it is in no log, argument, record, error, page, answer or metric."""

import os
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hudi_index_service.cli.fleet import TOKEN_VARIABLE
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.hook.write_options import SECRET_HEADER
from hudi_index_service.storage.store import Storage
from tests.fleet.served import CANARY, FILE_START, PROGRAM, SECRETS, token_file
from tests.golden.table import Golden
from tests.hook.callbacks import callback_of
from tests.programs import ROOT, Command, awaited
from tests.remote.s3_server import S3Server, serving

pytestmark = pytest.mark.slow

STORE_SECRET = f"{CANARY}-store-secret"
STORE_KEY = f"{CANARY}-store-key"
HOOK_SECRET = f"{CANARY}-hook-secret"
ASKED_FOR = "canary-that-a-query-asks-for"

FILE = (
    FILE_START
    + """\
groups:
- name: shop
  include: ["{uri}", "{uri}-gone"]
  storage:
    endpoint: "{endpoint}"
    region: us-east-1
    allow_http: "true"
    access_key_id: {{env: STORE_KEY}}
    secret_access_key: {{file: {folder}/store.secret}}
- name: unreadable
  include: [s3://nowhere/table]
  storage:
    secret_access_key: {{file: {folder}/none.secret}}
"""
)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with serving() as server:
        yield server


class Service:
    """A service of one table in a bucket, and what can be seen of it.

    Attributes:
        lines: The arguments of its processes.
        texts: What it has answered.
    """

    def __init__(self, folder: Path, uri: str, endpoint: str) -> None:
        self.folder = folder
        self.tokens, self.log = token_file(folder), folder / "log"
        self.cert, self.key = folder / "cert.pem", folder / "key.pem"
        subject = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
        command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2"
        files = ("-keyout", self.key, "-out", self.cert)
        subprocess.run([*command.split(), *subject, *files], check=True, capture_output=True)
        (folder / "store.secret").write_text(f"{STORE_SECRET}\n")
        file = folder / "fleet.yaml"
        file.write_text(FILE.format(uri=uri, endpoint=endpoint, folder=folder))
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "STORE_KEY": STORE_KEY,
            "HUDI_INDEX_HOOK__SECRET": HOOK_SECRET,
            "HUDI_INDEX_WEB__TOKENS": str(self.tokens),
            "HUDI_INDEX_WEB__TLS_CERT": str(self.cert),
            "HUDI_INDEX_WEB__TLS_KEY": str(self.key),
            "HUDI_INDEX_STATE_FOLDER": str(folder / "state"),
            "HUDI_INDEX_CACHE_FOLDER": str(folder / "cache"),
        }
        arguments = ("--log-level", "debug", "serve", "--config", file, "--port", 0)
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-c", PROGRAM, *map(str, arguments)],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.lines: set[str] = set()
        self.child_environments: set[bytes] = set()
        self.texts: list[str] = []
        found = awaited(lambda: re.search(r"https://\S+", self.log.read_text()), 60, 0.1)
        assert found, self.log.read_text()
        context = ssl.create_default_context(cafile=self.cert)
        self.client = httpx.Client(base_url=found[0], verify=context, timeout=60)

    def look(self) -> None:
        """Takes note of the processes that there are now."""
        parents = {self.process.pid}
        own = Path(f"/proc/{self.process.pid}/cmdline").read_bytes()
        for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda each: int(each.name)):
            try:
                pid, parent = int(folder.name), (folder / "stat").read_text().rsplit(")", 1)[1]
                if pid in parents or int(parent.split()[1]) in parents:
                    parents.add(pid)
                    line = (folder / "cmdline").read_bytes()
                    self.lines.add(line.decode())
                    if line != own:  # a fork that has not begun yet is a copy of its parent
                        self.child_environments.add((folder / "environ").read_bytes())
            except (OSError, IndexError):  # it has ended
                continue

    def send(self, method: str, path: str, role: Role = Role.OPERATE, **options: Any) -> Any:
        """A request of the API, whose answer is taken note of."""
        options.setdefault("headers", {"Authorization": f"Bearer {SECRETS[role]}"})
        answer = self.client.request(method, path, **options)
        self.texts.append(f"{answer.headers} {answer.text}")
        return answer

    def form(self, path: str, page: str, **fields: str) -> Any:
        """A form of a page."""
        text = self.send("GET", page, headers={}).text
        token = re.search(r'name="form_token" value="(\w+)"', text)
        assert token is not None, text
        origin = {"Origin": str(self.client.base_url).rstrip("/")}
        return self.send("POST", path, data={"form_token": token[1], **fields}, headers=origin)


@pytest.fixture
def service(golden: Golden, s3: S3Server, tmp_path: Path) -> Iterator[Service]:
    uri = s3.put(golden("two_partitions").put(tmp_path / "table"))
    service = Service(tmp_path, uri, s3.url)
    yield service
    service.process.terminate()
    service.process.wait(60)
    service.client.close()


def test_no_secret_of_a_service_is_anywhere_to_be_seen(
    service: Service, s3: S3Server, command: Command
) -> None:
    def table() -> dict[str, Any] | None:
        service.look()
        found = service.send("GET", "/api/v1/tables").json()["tables"]
        covered = [each for each in found if each["coverage"] == 1]
        others = [each for each in found if each["state"] == "unreachable"]
        return covered[0] if covered and len(others) == 2 else None

    found = awaited(table, 120, 0.1)
    assert found, service.log.read_text()
    name = found["name"]
    for other in service.send("GET", "/api/v1/tables").json()["tables"]:
        service.send("GET", f"/api/v1/tables/{other['name']}")
        service.send("POST", f"/api/v1/tables/{other['name']}/verify?wait=5")
    service.send("POST", "/api/v1/tables/none/builds")
    service.send("POST", f"/api/v1/tables/{name}/mute", json={"code": "lag", "days": 1})
    for role in Role:
        service.send("GET", "/metrics", role)
    for secret in (HOOK_SECRET, f"{CANARY}-wrong"):
        headers = {SECRET_HEADER: secret}
        service.send("POST", "/hudi/commit", content=callback_of(found["uri"]), headers=headers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(service.cert))
        patch.setenv(TOKEN_VARIABLE, SECRETS[Role.OPERATE])
        asked = ("fleet", "verify", "--url", service.client.base_url, "--match", name, "--wait")
        printed = command(*asked)
        assert f"{name}: finished" in printed
        assert "0 damaged." in printed
        service.texts.append(printed)

    service.form("/login", "/login", token=SECRETS[Role.OPERATE])
    page = f"/tables/{name}"
    answer = service.form(f"{page}/query", page, where=f"id = '{ASKED_FOR}'", kind="count")
    assert "Matching rows" in answer.text or "No answer" in answer.text
    service.look()
    for path in ("/", page, "/tables/none"):
        service.send("GET", path, headers={})
    service.tokens.write_text(f"{CANARY} read {CANARY}\n")
    service.send("GET", "/api/v1/tables")

    service.process.terminate()
    assert service.process.wait(60) == 0
    log = service.log.read_text()
    assert "stay valid" in log  # the wrong file of tokens was told
    keys = [line for line in service.key.read_text().splitlines() if "-" not in line]
    seen = {
        "log": log,
        "arguments": "\n".join(service.lines),
        "answers": "\n".join(service.texts),
        "state": "\n".join(_texts(service.folder / "state")),
        "records": "\n".join(_records(found["uri"], s3)),
    }
    assert all(seen.values())
    for secret in (CANARY, keys[1]):
        assert [where for where, text in seen.items() if secret in text] == []
    assert ASKED_FOR not in seen["log"] + seen["arguments"] + seen["state"] + seen["records"]
    assert len(service.lines) > 1
    assert not [each for each in service.child_environments if HOOK_SECRET.encode() in each]


def _texts(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.read_bytes().decode(errors="replace")


def _records(uri: str, s3: S3Server) -> Iterator[str]:
    storage = Storage(uri, s3.options)
    for file in storage.files(".hoodie/.index"):
        yield storage.read(file.path).decode(errors="replace")
