"""`hudi-index calibrate`: what it prints of what it measured."""

import json
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hudi_index_service.calibrate import calibrate
from hudi_index_service.cli import app
from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost import Constants, load_constants


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Of a state folder of the test's own; a small file is measured."""
    found = Settings(state_folder=tmp_path / "state")
    monkeypatch.setattr("hudi_index_service.cli.measure.settings", lambda: found)
    monkeypatch.setattr("hudi_index_service.cli.measure.measure", partial(calibrate, rows=2_000))
    return found


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["calibrate", "--seconds", "0", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_constants_are_shown_and_kept(settings: Settings) -> None:
    report = json.loads(run("-o", "json"))
    assert report["old"] == Constants().model_dump()
    assert report["new"] == load_constants(settings).model_dump() != report["old"]
    assert report["path"] == str(settings.state_folder / "costs.json")


def test_a_dry_run_keeps_nothing(settings: Settings) -> None:
    text = run("--dry-run")
    assert "nothing was written" in text
    assert "a page that holds wanted rows" in text
    assert all(name in text for name in Constants.model_fields)
    assert "not measured" in text
    assert not settings.state_folder.exists()
