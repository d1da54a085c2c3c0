"""What the demo needs; tests/setup/test_way_in.py runs it."""

from pathlib import Path

import pytest

from hudi_index_service.files import SERVICE_SETTINGS
from tests.programs import Command


def test_missing_requirements_of_the_demo_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command, own_state: Path
) -> None:
    # The demo sets it for its process, and this one has other tests to run.
    monkeypatch.setenv("HUDI_INDEX_CONFIG", str(SERVICE_SETTINGS))
    (tmp_path / "taken").write_text("mine")
    full = command("demo", "--folder", tmp_path, status=1)
    assert full.startswith("CONFIG_INVALID: ")
    monkeypatch.setenv("HUDI_INDEX_HUDI_JAR", str(tmp_path / "none.jar"))
    *_, without_jar = command("demo", status=1).splitlines()
    assert without_jar.startswith("CONFIG_INVALID: HUDI_INDEX_HUDI_JAR is ")
