"""What a pod of the chart runs, as a process here: the container's own command, on the rendered
files, which are renewed as the kubelet renews them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from hudi_index_service.fleet.web.access import digest_of
from tests.deploy.chart import Render, Rendered
from tests.golden.table import Golden
from tests.ports import free_port
from tests.programs import ROOT, awaited

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


class MountedFolder:
    """A folder as the kubelet mounts a Secret or a ConfigMap: files are links through ``..data``, a
    link that is led elsewhere in one step."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version = 0
        path.mkdir()

    def write(self, files: Mapping[str, str]) -> None:
        """Renews all files, which their group may read and nobody else."""
        self._version += 1
        folder = self._path / f"..{self._version}"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o440)
            link = self._path / name
            if not link.is_symlink():
                link.symlink_to(Path("..data", name))
        draft = self._path / "..data_tmp"
        draft.symlink_to(folder.name)
        draft.replace(self._path / "..data")


class Pod:
    """The processes of a pod, in a folder that stands for its root."""

    def __init__(self, root: Path, rendered: Rendered) -> None:
        self.root = root
        (pod,) = rendered.pods()
        settings = rendered.config("-settings")["service.yaml"]
        self.grace = pod["terminationGracePeriodSeconds"]
        (container,) = pod["containers"]
        self.secret = MountedFolder(root / "secret")
        self.secret.write({"tokens": ""})
        MountedFolder(root / "fleet").write(rendered.config("-fleet"))
        for folder in ("state", "cache"):
            (root / folder).mkdir()
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        own = yaml.safe_load(self._here(settings))
        own["web"] |= {"port": port, "host": "127.0.0.1"}
        (root / "service.yaml").write_text(yaml.safe_dump(own))
        (program,) = container["command"]
        assert program == "hudi-index"
        arguments = [self._here(each) for each in container["args"]]
        others = {key: os.environ[key] for key in os.environ if not key.startswith("HUDI_INDEX_")}
        given = {each["name"]: self._here(each["value"]) for each in container["env"]}
        self.process = subprocess.Popen(
            [Path(sys.executable).with_name(program), *arguments],
            env=others | given | {"HUDI_INDEX_CONFIG": str(root / "service.yaml")},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _here(self, text: str) -> str:
        """A text with the container's folders replaced by those of this machine."""
        for theirs, ours in (
            ("/etc/hudi-index", ""),
            ("/var/lib/hudi-index", "/state"),
            ("/var/cache/hudi-index", "/cache"),
        ):
            text = text.replace(theirs, f"{self.root}{ours}")
        return text

    def status(self, path: str, token: str = "") -> int:
        """The status that it answers; 0 while the port is closed."""
        assert self.process.poll() is None, self.process.communicate()[0]
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            return httpx.get(self.url + path, headers=headers, timeout=10).status_code
        except httpx.ConnectError:
            return 0

    def table(self, token: str) -> dict[str, Any]:
        """What its API says of the one table."""
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{self.url}/api/v1/tables/lake.messages"
        return dict(httpx.get(url, headers=headers).raise_for_status().json())

    def ask_for_build(self, token: str) -> None:
        """Asks for a build of that table."""
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{self.url}/api/v1/tables/lake.messages/builds"
        assert httpx.post(url, headers=headers, json={"strategy": "all"}).status_code == 202

    def end(self) -> tuple[int, str]:
        """Ends it as Kubernetes does: the exit status, and all that it said."""
        self.process.send_signal(signal.SIGTERM)
        said, _ = self.process.communicate(timeout=self.grace)
        return self.process.returncode, said


VALUES = """\
existingSecret: tokens
fleet:
  version: 1
  defaults:
    poll: 1s
    strategy: all
    apply: auto
    backfill: all
    definitions:
      - {{name: by_sender, types: [btree], columns: [sender]}}
  groups:
    - {{name: lake, include: ["{lake}/*"]}}
"""


@pytest.fixture
def pod(render: Render, golden: Golden, tmp_path: Path) -> Iterator[Pod]:
    root, lake = tmp_path / "root", tmp_path / "lake"
    root.mkdir()
    golden("messages_of_users").put(lake / "messages", "written")
    values = tmp_path / "values.yaml"
    values.write_text(VALUES.format(lake=lake))
    started = Pod(root, render(values))
    yield started
    started.process.kill()
    started.process.communicate()


def test_a_pod_becomes_ready_builds_and_ends_in_time(pod: Pod) -> None:
    awaited(lambda: pod.status("/readyz") == 200, 60, 0.1)
    assert pod.status("/healthz") == 200
    pod.secret.write({"tokens": f"airflow operate {digest_of('first')}\n"})
    awaited(lambda: pod.table("first")["coverage"] == 1, 120, 0.2)

    pod.ask_for_build("first")
    status, said = pod.end()

    assert status == 0, said
    assert "Stopping after the running builds." in said
    assert (pod.root / "state" / "state" / "fleet").is_dir()


def test_a_rotated_secret_is_taken_without_a_restart(pod: Pod) -> None:
    awaited(lambda: pod.status("/readyz") == 200, 60, 0.1)
    pod.secret.write({"tokens": f"airflow read {digest_of('first')}\n"})
    assert pod.status("/api/v1/tables", "first") == 200
    assert pod.status("/api/v1/tables", "second") == 401

    pod.secret.write({"tokens": f"airflow read {digest_of('second')}\n"})

    assert pod.status("/api/v1/tables", "first") == 401
    assert pod.status("/api/v1/tables", "second") == 200
    assert pod.end()[0] == 0
