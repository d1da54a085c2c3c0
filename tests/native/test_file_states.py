"""One call tells which of many files are still as they were."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hudi_index_parquet import FileStates


def of(files: list[Path]) -> FileStates:
    return FileStates([(each, each.stat()) for each in files])


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path / f"file{number}" for number in range(3)]
    for each in made:
        each.write_bytes(b"0123456789")
    return made


def overwrite(file: Path) -> None:
    before = file.stat()
    file.write_bytes(b"9876543210")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(file: Path) -> None:
    other = file.with_suffix(".new")
    other.write_bytes(file.read_bytes())
    other.replace(file)


def truncate(file: Path) -> None:
    os.truncate(file, 3)


@pytest.mark.parametrize("change", [overwrite, replace, truncate, Path.unlink])
def test_a_file_that_changes_in_any_way_is_told(
    files: list[Path], change: Callable[[Path], None]
) -> None:
    states, every = of(files), np.arange(3, dtype=np.int32)
    assert states.unchanged(every) == bytes([1, 1, 1])
    change(files[1])
    assert states.unchanged(every) == bytes([1, 0, 1])
    assert states.unchanged(np.array([2, 1], dtype=np.int32)) == bytes([1, 0])
    assert states.unchanged(np.array([], dtype=np.int32)) == b""


def test_many_files_are_looked_at_by_several_threads(files: list[Path]) -> None:
    states = of(files * 1000)
    files[2].unlink()
    every = np.arange(3000, dtype=np.int32)
    for threads in (1, 2, 3, None):
        assert states.unchanged(every, threads=threads) == bytes([1, 1, 0]) * 1000


@pytest.mark.parametrize("position", [3, -1])
def test_positions_are_checked(files: list[Path], position: int) -> None:
    with pytest.raises(ValueError, match="beyond the files"):
        of(files).unchanged(np.array([position], dtype=np.int32))
