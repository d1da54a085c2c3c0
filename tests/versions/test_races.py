"""Files that Hudi cleans while a snapshot is made: no file group is lost silently."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_index_service.hudi import gate
from hudi_index_service.hudi.hudi_rs import opened_table
from hudi_index_service.hudi.table import HudiTable
from tests.versions.journey import Journey

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("when", ["before hudi-rs lists", "before we list", "without hudi-rs"])
def test_files_cleaned_during_a_listing(
    when: str, release: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two listings of the table, one partition is upserted six times and its file
    cleaned."""
    journey = Journey(tables, "archived", tmp_path)
    opened, before = journey.to("clustered")
    table = HudiTable(opened.hudi_table.storage)
    moments: list[str] = []

    def run_hudi() -> None:
        if not moments:
            moments.append(when)
            journey.to("archived")

    def after_hudi(call: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object, **named: object) -> object:
            run_hudi()
            return call(*arguments, **named)

        return called

    if when != "without hudi-rs":  # which alone makes the slices of merge-on-read tables
        monkeypatch.setattr(gate, "is_merge_on_read", lambda properties: True)
    if when == "before hudi-rs lists":
        slices = opened_table.OpenedTable.slices_of_hudi_rs
        monkeypatch.setattr(opened_table.OpenedTable, "slices_of_hudi_rs", after_hudi(slices))
    else:
        listed = opened_table.list_data_files
        monkeypatch.setattr(opened_table, "list_data_files", after_hudi(listed))

    found = {file.path for file in table.snapshot().base_files()}

    _, after = journey.to("archived")
    assert moments == [when]
    assert found == after.base_files
    assert len(found & before.base_files) == 1
