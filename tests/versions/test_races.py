"""What Hudi cleans while a snapshot is made is noticed: no file group is lost without a word."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_index_service.table import gate, hudi_rs
from hudi_index_service.table.hudi_rs import HudiRsTable
from tests.versions.journey import Journey

pytestmark = pytest.mark.timeout(1200)


@pytest.mark.parametrize("when", ["before hudi-rs lists", "before we list", "without hudi-rs"])
def test_cleaned_while_it_is_listed(
    when: str, release: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two looks at the table one partition is upserted six times, its file cleaned."""
    journey = Journey(tables, "archived", tmp_path)
    opened, before = journey.to("clustered")
    table = HudiRsTable(opened._table.storage)
    moments: list[str] = []

    def hudi_goes_on() -> None:
        if not moments:
            moments.append(when)
            journey.to("archived")

    def first(call: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object) -> object:
            hudi_goes_on()
            return call(*arguments)

        return called

    if when != "without hudi-rs":  # which makes the slices of merge-on-read tables alone
        monkeypatch.setattr(gate, "is_merge_on_read", lambda properties: True)
    if when == "before hudi-rs lists":
        monkeypatch.setattr(table, "_hudi_rs_slices", first(table._hudi_rs_slices))
    else:
        monkeypatch.setattr(hudi_rs, "list_data_files", first(hudi_rs.list_data_files))

    found = {file.path for file in table.snapshot().base_files()}

    _, after = journey.to("archived")
    assert moments == [when]
    assert found == after.base_files
    assert len(found & before.base_files) == 1
