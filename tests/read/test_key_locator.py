"""Record keys located in many slices at once, as by a Spark task."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi_index_parquet import ParquetReadError, read_columns

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.read.base_file.key_join import KeyJoin
from hudi_index_service.read.keys.key_routes import KeyRoutes
from hudi_index_service.read.keys.tag_location import RequestedKeys
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.statistics import ReadStatistics
from tests.read.key_locations import Location, by_spark, key_search, locations


def located(table: IndexedTable, search_keys: pa.StringArray) -> pa.Table:
    """The locations of keys as a task finds them."""
    plan, locator = key_search(table).planned(partitioned=False)
    statistics = ReadStatistics()
    statistics.start(plan.slices)
    routes = KeyRoutes(locator.keys, search_keys)
    found = locator.locate(dict(enumerate(plan.slices)), routes, statistics)
    return RequestedKeys(pa.table({"record_key": search_keys})).named(found)


@pytest.fixture
def truth(golden) -> dict[str, Location]:
    """Where the keys of `many` are, by Spark."""
    return {key: place for (_, key), place in by_spark(golden("hundred_base_files").rows()).items()}


def test_the_keys_of_many_base_files_are_hashed_together(truth, many, monkeypatch):
    calls: list[int] = []

    def index_in(rows, value_set):
        calls.append(len(rows))
        return pc.index_in(rows, value_set=value_set)

    monkeypatch.setattr(
        "hudi_index_service.read.base_file.key_join.pc", SimpleNamespace(index_in=index_in)
    )
    monkeypatch.setattr("hudi_index_service.read.keys.key_routes.bounds_of", lambda *_: None)
    search_keys = pa.array([*truth, *(f"absent{number}" for number in range(100_000))])
    with open_table(many) as table:
        found = located(table, search_keys)
    assert dict(locations(found)) == truth
    assert found.num_rows == len(truth)
    assert len(calls) == 1
    assert len(truth) <= calls[0] < 1.2 * len(truth), "few rows with other keys"


def test_rows_are_joined_in_portions(monkeypatch):
    monkeypatch.setattr("hudi_index_service.read.base_file.key_join.FEWEST_ROWS", 4)
    join = KeyJoin(pa.array(["a", "b", ""]), 1)
    for first in range(0, 12, 3):
        join.add(pa.array(["b", "x", "a"]), np.arange(first, first + 3))
    keys, rows = join.found()
    assert keys.tolist() == [1, 0] * 4
    assert rows.tolist() == [0, 2, 3, 5, 6, 8, 9, 11]
    keys, rows = KeyJoin(pa.nulls(0, pa.string()), 1).found()
    assert len(keys) == len(rows) == 0


def test_small_base_files_are_read_together_and_doubtful_ones_alone(
    truth, many, tmp_path, recorded, monkeypatch
):
    path = Path(shutil.copytree(many, tmp_path / "table"))
    calls: list[int] = []

    def read_together(files, columns):
        calls.append(len(files))
        if doubtful in [str(file) for file, _ in files]:
            raise ParquetReadError("as if")
        return read_columns(files, columns)

    alone = recorded(SliceReader, "candidates", lambda _, plan, __: plan.file_slice.name)
    monkeypatch.setattr("hudi_index_service.read.keys.key_locator.read_columns", read_together)
    monkeypatch.setattr("hudi_index_service.read.keys.key_routes.bounds_of", lambda *_: None)
    search_keys = pa.array([*truth, *(f"absent{number}" for number in range(10_000))])
    with open_table(path) as table:
        plan, _ = key_search(table).planned(partitioned=False)
        doubtful = str(path / plan.slices[40].file_slice.name)
        found = located(table, search_keys)
    assert dict(locations(found)) == truth
    assert calls == [32, 32, 32, 4]
    assert alone == [each.file_slice.name for each in plan.slices[32:64]]


def test_base_files_that_cannot_hold_any_of_many_keys_are_not_read(many, monkeypatch):
    def fail(*_):
        raise AssertionError("a base file is read")

    monkeypatch.setattr(SliceReader, "candidates", fail)
    monkeypatch.setattr("hudi_index_service.read.keys.key_locator.read_columns", fail)
    monkeypatch.setattr("hudi_index_service.read.keys.key_locator.read_files", fail)
    with open_table(many) as table:
        beyond = pa.array([f"x{number}" for number in range(100_000)])
        assert located(table, beyond).num_rows == 0
