"""`make calibrate`: what it prints and stores."""

from pathlib import Path

import pytest

from benchmarks.calibrate import __main__ as command
from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import Constants, load_constants


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings with a state folder of the test's own."""
    own = Settings(state_folder=tmp_path / "state")
    monkeypatch.setattr(command, "settings", lambda: own)
    return own


def test_constants_are_shown_and_stored(own: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--seconds", "0"], rows=2_000)
    assert load_constants(own) != Constants()
    assert f"stored in {own.state_folder / 'costs.json'}" in capsys.readouterr().out


def test_a_dry_run_stores_nothing(own: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--seconds", "0", "--dry-run"], rows=2_000)
    text = capsys.readouterr().out
    assert "nothing was written" in text
    assert "each page with wanted rows" in text
    assert all(name in text for name in Constants.model_fields)
    assert "not measured" in text
    assert not own.state_folder.exists()
