"""A task's local folder: its own for as long as it lives, and nobody's afterwards."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hudi_index_service.build.scratch import remove_abandoned, scratch_folder

HOLD_A_FOLDER = """
import sys, tempfile
from hudi_index_service.build.scratch import scratch_folder
tempfile.tempdir = sys.argv[1]
with scratch_folder() as folder:
    (folder / "half of an index").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for temporary files, for this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_there_for_the_block_and_gone_after_it(temporary: Path) -> None:
    with scratch_folder() as folder, scratch_folder() as other:
        (folder / "index").mkdir()
        assert {folder, other} == set(temporary.iterdir())
        assert remove_abandoned() == 0
    assert list(temporary.iterdir()) == []


def test_a_folder_goes_with_an_error_too(temporary: Path) -> None:
    with pytest.raises(ZeroDivisionError), scratch_folder():
        raise ZeroDivisionError
    assert list(temporary.iterdir()) == []


def test_the_folder_of_another_process_goes_once_that_is_dead(temporary: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD_A_FOLDER, str(temporary)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    assert other.stdin is not None
    folder = Path(other.stdout.readline().strip())
    with scratch_folder():
        assert folder.exists(), "its owner lives"

    other.kill()
    other.wait()
    assert list(folder.iterdir()) != []
    with scratch_folder() as own:
        assert set(temporary.iterdir()) == {own}
    other.stdin.close()
    other.stdout.close()


def test_what_is_not_a_build_s_stays(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (temporary / "hudi-index-build-link").symlink_to(elsewhere)
    (temporary / "hudi-index-build-file").touch()
    (temporary / "hudi-index-demo-1").mkdir()
    before = set(temporary.iterdir())

    assert remove_abandoned() == 0
    assert set(temporary.iterdir()) == before
