"""Queries that begin together share the snapshot: its files are listed once. None waits."""

from pathlib import Path
from typing import Any

import pytest

from hudi_index_service.hudi import open_hudi_table
from hudi_index_service.hudi import table as table_module
from hudi_index_service.hudi.hudi_rs import opened_table
from tests.at_once import at_once
from tests.golden.table import Golden


def test_threads_share_one_snapshot(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_hudi_table(str(golden("hundred_base_files").put(tmp_path / "table")))
    table.schema()
    list_data_files, listings = opened_table.list_data_files, list[str]()

    def counted(*arguments: Any, **named: Any) -> Any:
        listings.append("once")
        return list_data_files(*arguments, **named)

    monkeypatch.setattr(opened_table, "list_data_files", counted)
    first, *others = at_once(*[table.snapshot] * 4)
    assert len(first.slices) == 100
    assert all(each is first for each in others)
    assert listings == ["once"]


def test_a_complete_timeline_is_read_without_a_pause(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause(seconds: float) -> None:
        raise AssertionError(f"a pause of {seconds} s, which gives the processor away")

    monkeypatch.setattr(table_module, "sleep", pause)
    table = open_hudi_table(str(golden("two_hundred_rows").put(tmp_path / "table")))
    assert table.snapshot() is table.snapshot()
