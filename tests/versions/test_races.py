"""Files that Hudi cleans while a snapshot is made: no file group is lost silently."""

from pathlib import Path

import pytest

from hudi_index_service.hudi import opened_table
from hudi_index_service.hudi.completeness import Listing
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.storage.store import Storage
from tests.versions.journey import Journey

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def test_files_cleaned_during_a_listing(
    release: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two listings of the table, one partition is upserted six times and its file
    cleaned."""
    journey = Journey(tables, "archived", tmp_path)
    opened, before = journey.to("clustered")
    table = HudiTable(opened.hudi_table.storage)
    listed = opened_table.list_data_files

    def listed_after_hudi(storage: Storage, *, partitioned: bool) -> Listing:
        journey.to("archived")
        return listed(storage, partitioned=partitioned)

    monkeypatch.setattr(opened_table, "list_data_files", listed_after_hudi)

    found = {file.path for file in table.snapshot().base_files()}

    _, after = journey.to("archived")
    assert found == after.base_files
    assert len(found & before.base_files) == 1
