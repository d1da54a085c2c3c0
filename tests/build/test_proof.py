"""What cannot serve is not published: build, status, EXPLAIN and verify say so alike."""

import base64
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service import open_table
from hudi_index_service.build.entry import proof, task
from hudi_index_service.errors import BuildFailed, EntryInvalid
from hudi_index_service.index.btree.index_type import BTreeIndexType
from tests.golden.table import Golden
from tests.indexed import OwnTable


@pytest.fixture
def path(golden: Golden, tmp_path: Path) -> Path:
    return golden("sixty_rows").put(tmp_path, "written")


def with_misleading_types(path: Path) -> None:
    """States types of Arrow in a base file that are not those of its columns, which Arrow ignores
    and the row reader refuses."""
    base_file = next(path.rglob("*.parquet"))
    rows = pq.read_table(base_file, partitioning=None)
    nested = pa.array([[number] for number in range(rows.num_rows)])
    rows = rows.append_column("nested", nested)
    wrong = rows.schema.set(rows.num_columns - 1, pa.field("nested", pa.int64()))
    types = base64.b64encode(wrong.serialize().to_pybytes()).decode()
    with pq.ParquetWriter(base_file, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"ARROW:schema": types})


@pytest.mark.parametrize("using", ["btree", "lucene"])
def test_a_file_whose_rows_cannot_be_read_is_told_everywhere(path: Path, using: str) -> None:
    table = open_table(path)
    table.create_index("by_id", ["id"], using=using)
    files = len(table.build(strategy="all").raise_for_failures().built)
    with_misleading_types(path)
    table = open_table(path)
    build = table.build(strategy="all")
    (failed,) = build.failed
    assert "incompatible arrow schema, expected list got Int64" in str(failed.error)
    with pytest.raises(BuildFailed, match="rows cannot be read one by one"):
        build.raise_for_failures()
    (status,) = table.status().indexes
    assert status.covered == files - 1
    explained = table.scan("id >= '0'").explain().files
    assert explained is not None
    assert (explained.covered, explained.uncovered) == (files - 1, 1)


def test_an_entry_that_cannot_serve_is_not_told_as_repaired(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_misleading_types(path)
    table = open_table(path)
    table.create_index("by_id", ["id"], using="btree")
    with monkeypatch.context() as earlier_release:
        earlier_release.setattr(proof, "Footer", bytes)
        earlier_release.setattr(task, "open_first_of_kind", lambda *_: None)
        files = len(table.build(strategy="all").raise_for_failures().built)
    checked = table.verify(repair=True)
    (problem,) = checked.problems
    assert "cannot be read with its own footer" in problem.reason
    assert (checked.entries, problem.repaired) == (files, False)


def test_an_entry_is_opened_before_it_is_published(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise EntryInvalid("it cannot be opened.")

    table = open_table(path)
    table.create_index("by_id", ["id"], using="btree")
    with monkeypatch.context() as patched:
        patched.setattr(BTreeIndexType, "open", refuse)
        build = table.build(strategy="all")
    assert build.failed
    assert not build.built
    assert not list(path.rglob("manifest-*.json"))
    assert not list(path.rglob("data-*"))
    assert table.build(strategy="all").raise_for_failures().built


def test_one_entry_of_a_kind_is_opened(
    own_table: OwnTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    really_open = BTreeIndexType.open

    def counted(self: BTreeIndexType, *arguments: object) -> object:
        opened.append(arguments)
        return really_open(self, *arguments)  # type: ignore[arg-type]

    table = own_table("hundred_base_files", ["id"], using="btree", build=False)
    monkeypatch.setattr(BTreeIndexType, "open", counted)
    some = list(table.partitions())[:30]
    assert len(table.build(strategy="all", partitions=some).raise_for_failures().built) == 30
    assert 1 <= len(opened) <= len(os.sched_getaffinity(0)), "each thread's first one at most"
