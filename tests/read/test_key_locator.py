"""Record keys located in many slices at once, as by a Spark task."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi_index_parquet import ParquetReadError, read_columns

from hudi_index_service import open_table
from hudi_index_service.optimizer.plan import QueryPlan, SlicePlan
from hudi_index_service.read.keys.key_locator import KeyLocator
from hudi_index_service.read.keys.key_range import KeyRange
from hudi_index_service.read.keys.searched_slice import PackedSlices, SearchedSlice
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.statistics import SliceStatistics
from tests.golden.table import Golden
from tests.read.key_locations import by_spark, key_search, locations


def searched(plan: QueryPlan, locator: KeyLocator) -> list[SearchedSlice]:
    """The slices of a plan, to be searched."""
    return [SearchedSlice.of(each, locator.keys) for each in plan.slices]


def test_the_keys_of_many_base_files_are_hashed_together(
    golden: Golden, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def index_in(rows: pa.ChunkedArray, value_set: pa.StringArray) -> pa.ChunkedArray:
        calls.append(len(rows))
        return pc.index_in(rows, value_set=value_set)

    monkeypatch.setattr(
        "hudi_index_service.read.keys.rows_of_slices.pc", SimpleNamespace(index_in=index_in)
    )
    monkeypatch.setattr(KeyRange, "of_base_file", lambda *_: None)
    places = by_spark(golden("hundred_base_files").rows())
    truth = {key: place for (_, key), place in places.items()}
    search_keys = pa.array([*truth, *(f"absent{number}" for number in range(100_000))])
    with open_table(many) as table:
        plan, locator = key_search(table).planned(partitioned=False)
        parts = list(locator.locate_all(searched(plan, locator), search_keys))
    located_rows = pa.concat_tables([each for _, each in parts])
    assert dict(locations(located_rows)) == truth
    assert located_rows.num_rows == len(truth)
    assert search_keys.take(np.concatenate([each for each, _ in parts])).equals(
        located_rows.column("record_key").combine_chunks()
    )
    assert len(calls) == 1
    assert len(truth) <= calls[0] < 1.2 * len(truth), "few rows with other keys"


def test_small_base_files_are_read_together_and_doubtful_ones_alone(
    golden: Golden, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copytree(many, tmp_path / "table"))
    calls: list[int] = []
    alone: list[str] = []

    def read_together(files: list[tuple[Path, int]], columns: list[str]) -> object:
        calls.append(len(files))
        if doubtful in [str(file) for file, _ in files]:
            raise ParquetReadError("as if")
        return read_columns(files, columns)

    def candidates(reader: SliceReader, plan: SlicePlan, statistics: SliceStatistics) -> object:
        alone.append(plan.file_slice.name)
        return original(reader, plan, statistics)

    original = SliceReader.candidates
    monkeypatch.setattr(SliceReader, "candidates", candidates)
    monkeypatch.setattr("hudi_index_service.read.keys.key_locator.read_columns", read_together)
    monkeypatch.setattr(KeyRange, "of_base_file", lambda *_: None)
    truth = {
        key: place for (_, key), place in by_spark(golden("hundred_base_files").rows()).items()
    }
    search_keys = pa.array([*truth, *(f"absent{number}" for number in range(10_000))])
    with open_table(path) as table:
        plan, locator = key_search(table).planned(partitioned=False)
        doubtful = str(path / plan.slices[40].file_slice.name)
        parts = list(locator.locate_all(searched(plan, locator), search_keys))
    assert dict(locations(pa.concat_tables([each for _, each in parts]))) == truth
    assert calls == [32, 32, 32, 4]
    assert alone == [each.file_slice.name for each in plan.slices[32:64]]


def test_no_plan_is_unpickled_to_read_the_keys_of_small_base_files(
    golden: Golden, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = by_spark(golden("hundred_base_files").rows())
    truth = {key: place for (_, key), place in places.items()}
    search_keys = pa.array([*truth, *(f"absent{number}" for number in range(10_000))])
    with open_table(many) as table:
        plan, locator = key_search(table).planned(partitioned=False)
        packed = PackedSlices.of(plan.slices, locator.keys)
        assert [each.plan() for each in packed.unpacked()] == list(plan.slices)
        monkeypatch.setattr(KeyRange, "of_base_file", lambda *_: None)
        slices = replace(PackedSlices.of(plan.slices, locator.keys), plans=b"").unpacked()
        parts = list(locator.locate_all(slices, search_keys))
    assert dict(locations(pa.concat_tables([each for _, each in parts]))) == truth


def test_base_files_that_cannot_hold_any_of_many_keys_are_not_read(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a base file is read")

    monkeypatch.setattr(SliceReader, "candidates", fail)
    monkeypatch.setattr("hudi_index_service.read.keys.key_locator.read_columns", fail)
    with open_table(many) as table:
        plan, locator = key_search(table).planned(partitioned=False)
        beyond = pa.array([f"x{number}" for number in range(100_000)])
        assert (
            sum(part.num_rows for _, part in locator.locate_all(searched(plan, locator), beyond))
            == 0
        )
