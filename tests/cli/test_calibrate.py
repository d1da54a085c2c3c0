"""`hudi-index calibrate`: how it prints what it measured."""

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
def settings(own_state: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings with a state folder of the test's own; a small file is measured."""
    monkeypatch.setattr("hudi_index_service.cli.tune.measure", partial(calibrate, rows=2_000))
    return Settings(state_folder=own_state)


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["calibrate", "--seconds", "0", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_constants_are_shown_and_stored(settings: Settings) -> None:
    report = json.loads(run("-o", "json"))
    assert report["old"] == Constants().model_dump()
    assert report["new"] == load_constants(settings).model_dump() != report["old"]
    assert report["path"] == str(settings.state_folder / "costs.json")


def test_a_dry_run_stores_nothing(settings: Settings) -> None:
    text = run("--dry-run")
    assert "nothing was written" in text
    assert "each page with wanted rows" in text
    assert all(name in text for name in Constants.model_fields)
    assert "not measured" in text
    assert not settings.state_folder.exists()
