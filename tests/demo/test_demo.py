"""What the demo needs; tests/setup/test_way_in.py runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

from dev.paths import ROOT

# Each command of a test may take almost as long as the usual limit for a whole test.
pytestmark = pytest.mark.timeout(900)


def demo(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs `hudi-index demo` with these arguments."""
    return subprocess.run(
        [sys.executable, "-m", "hudi_index_service", "demo", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_missing_requirements_of_the_demo_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_text("mine")
    full = demo("--folder", str(tmp_path))
    assert full.returncode == 1
    assert full.stderr.startswith("CONFIG_INVALID: ")
    monkeypatch.setenv("HUDI_INDEX_HUDI_JAR", str(tmp_path / "none.jar"))
    without_jar = demo()
    assert without_jar.returncode == 1
    assert without_jar.stderr.startswith("CONFIG_INVALID: HUDI_INDEX_HUDI_JAR is ")
    assert "Traceback" not in without_jar.stderr
