"""A local copy of a table's timeline, for merges and for stores that hudi-rs cannot open."""

from pathlib import Path

import pytest

from hudi_index_service.hudi.completeness import list_data_files
from hudi_index_service.hudi.hudi_rs.timeline_copy import TimelineCopy
from hudi_index_service.hudi.timeline import list_timeline
from hudi_index_service.storage.store import Storage
from tests.golden.table import Golden


@pytest.fixture
def storage(golden: Golden, tmp_path: Path) -> Storage:
    """A merge-on-read table of version 6, with log files."""
    return Storage(golden("version_6").put(tmp_path / "table"))


@pytest.fixture
def copy(storage: Storage) -> TimelineCopy:
    made = TimelineCopy.of(storage, 6, list_timeline(storage, 6).version)
    assert made is not None
    return made


def test_file_is_there_until_its_last_holder_is_done(storage: Storage, copy: TimelineCopy) -> None:
    listing = list_data_files(storage, partitioned=True)
    paths = [each.path for each in (*listing.base_files, *listing.log_files)]
    with copy.holding(paths):
        with copy.holding(paths[:1]):
            assert all((copy.folder / each).is_file() for each in paths)
        assert all((copy.folder / each).is_file() for each in paths)
    assert not any((copy.folder / each).exists() for each in paths)


def test_no_copy_of_another_timeline(storage: Storage) -> None:
    assert TimelineCopy.of(storage, 6, "another") is None
