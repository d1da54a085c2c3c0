"""A task's local folder: kept while its process lives, and removed afterwards."""

import tempfile
from pathlib import Path

import pytest

from hudi_index_service.build.entry.worker import Scratch
from hudi_index_service.storage.temporary_folder import remove_abandoned
from tests.programs import Running

HOLD_A_FOLDER = """
import sys, tempfile
from hudi_index_service.build.entry.worker import Scratch
tempfile.tempdir = sys.argv[1]
with Scratch() as scratch:
    folder = scratch.folder
    (folder / "half of an index").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for temporary files, for this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_removed_after_its_block(temporary: Path) -> None:
    with Scratch() as scratch, Scratch() as other:
        assert list(temporary.iterdir()) == [], "it is made when it is first needed"
        (scratch.folder / "index").mkdir()
        assert {scratch.folder, other.folder} == set(temporary.iterdir())
        assert remove_abandoned() == 0
    assert list(temporary.iterdir()) == []


def test_a_folder_is_removed_after_an_error(temporary: Path) -> None:
    def fail() -> None:
        with Scratch() as scratch:
            assert scratch.folder.exists()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(temporary.iterdir()) == []


def test_the_folder_of_a_dead_process_is_removed(temporary: Path, running: Running) -> None:
    other = running(HOLD_A_FOLDER, temporary)
    assert other.stdout is not None
    folder = Path(other.stdout.readline().strip())
    with Scratch() as scratch:
        assert scratch.folder != folder
        assert folder.exists(), "its owner is alive"

    other.kill()
    other.wait()
    assert list(folder.iterdir()) != []
    with Scratch() as own:
        assert {own.folder} == set(temporary.iterdir())


def test_files_of_others_are_kept(temporary: Path) -> None:
    target = temporary / "target"
    target.mkdir()
    (temporary / "hudi-index-build-link").symlink_to(target)
    (temporary / "hudi-index-build-file").touch()
    (temporary / "hudi-index-demo-1").mkdir()
    before = set(temporary.iterdir())

    assert remove_abandoned() == 0
    assert set(temporary.iterdir()) == before
