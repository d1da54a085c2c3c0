"""A base file built by the service's tasks, in parts or whole, gives the same answers."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service.build.entry.task import BuildTask, TaskStatus
from hudi_index_service.build.executor import LocalExecutor
from hudi_index_service.config import Settings
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.files.local_copy import readable_index
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.storage.store import Storage
from tests.build.base_files import build_task, numbered_rows, write_base_file
from tests.index.conftest import rows_where

KIND = index_type("btree")
ROWS = numbered_rows(10_003)


@pytest.fixture(params=["local", "remote"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """A local folder, and a remote store whose files have no local path."""
    return Storage(tmp_path if request.param == "local" else f"memory://{tmp_path}")


def task_for(storage: Storage) -> BuildTask:
    base_file = write_base_file(storage, ROWS, row_group_size=2_500)
    task = build_task(storage, base_file, ROWS.schema)
    specs = tuple(ColumnSpec(f.name, f.type, KIND.fields(f.name, f.type, {})) for f in ROWS.schema)
    return replace(task, due=replace(task.due, index_type="btree", columns=specs))


def build_and_check(storage: Storage, task: BuildTask, parallelism: int, cache: Path) -> Manifest:
    """The entry's manifest, after checking that the index answers correctly."""
    (outcome,) = [each for each in LocalExecutor(parallelism).run([task]) if each is not None]
    assert outcome.status is TaskStatus.BUILT, outcome.error
    entry = EntryListing(storage, "btree").find(task.due.base_file)
    columns = entry.manifest.columns
    with readable_index(storage, entry, Settings(cache_folder=cache)) as (index, blocks):
        reader = KIND.open(index, columns)
    for where in (
        "id = 0", "id = 3334", "id = 3335", "id = 10002", "id > 5001", "sender = 'User13'",
        "amount IS NULL", "amount < 40.0", "msg LIKE 'buying car 10%'", "sender <> 'User13'",
    ):  # fmt: skip
        leaf = negation_normal_form(parse_predicate(where, pa.schema(ROWS.schema)))
        assert reader.row_ids(leaf) == rows_where(leaf, ROWS), where
    assert KIND.verify(index, columns) == []
    reader.close()
    if blocks is not None:
        blocks.close()
    return entry.manifest


def test_building_in_parts_gives_the_same_entry(storage: Storage, tmp_path: Path) -> None:
    task = task_for(storage)
    in_parts = build_and_check(storage, task, 3, tmp_path / "cache")
    storage.delete([file.path for file in storage.files(".hoodie/.index")])
    whole = build_and_check(storage, task, 1, tmp_path / "cache")
    assert [member.name for member in whole.data.members] == ["leaves", "parquet-metadata", "tree"]
    assert (whole.base_file, whole.definitions) == (in_parts.base_file, in_parts.definitions)
    for in_part, in_whole in zip(in_parts.columns, whole.columns, strict=True):
        # A value in several parts is counted in each of them.
        assert in_part.model_copy(update={"distinct": in_whole.distinct}) == in_whole
