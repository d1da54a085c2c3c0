"""Queries on columns whose values are stored beside the index read no base file, and give Spark's
answers."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.errors import (
    ColumnNotFound,
    ColumnNotIndexable,
    IndexDefinitionInvalid,
)
from hudi_index_service.index import packed_file
from hudi_index_service.index.files.stored_values import VALUES
from tests.golden.predicates import PREDICATES
from tests.indexed import indexed
from tests.read.conftest import Indexed, columns_for, unindexed_copy
from tests.same_rows import assert_same_rows

INDEX_TYPES = ["lucene", "btree"]


def stored_copy(path: Path, target: Path, using: str = "lucene") -> IndexedTable:
    """A copy of the table, whose only index stores the values of every column."""
    table = unindexed_copy(path, target)
    columns = columns_for(using)
    columns_there = {each if isinstance(each, str) else each.name for each in columns}
    others = [
        each.name
        for each in table.schema()
        if each.name not in columns_there and not pa.types.is_struct(each.type)
    ]
    return indexed(table, columns, include=others, using=using)


def erase_pages(path: Path) -> int:
    """Overwrites all pages of the base files, whose footers and lengths stay; returns how many."""
    files = [each for each in path.rglob("*.parquet") if ".hoodie" not in each.parts]
    for each in files:
        length = each.stat().st_size
        footer = pq.read_metadata(each).serialized_size + 8
        with each.open("r+b") as file:
            file.seek(4)
            file.write(b"\xff" * (length - footer - 4))
    return len(files)


@pytest.fixture(scope="module", params=INDEX_TYPES)
def erased(request, awkward, tmp_path_factory) -> IndexedTable:
    """A table whose base files can no longer be read."""
    target = tmp_path_factory.mktemp("stored") / "table"
    table = stored_copy(awkward("clustered, partitioned").path, target, request.param)
    assert erase_pages(target)
    return table


@pytest.mark.parametrize(
    "where",
    [
        "name = 'plain'",
        "price = CAST('NaN' AS DOUBLE)",
        "amount BETWEEN 30 AND 300",
        "msg LIKE 'Buying a new car 1%'",
    ],
)
def test_no_base_file_is_read(erased, awkward, where):
    columns = [each.name for each in erased.schema() if not pa.types.is_struct(each.type)]
    found = erased.scan(where, columns=columns, use_index="require").to_arrow()
    assert_same_rows(found, awkward("clustered, partitioned").answer(where).select(columns))


@pytest.mark.parametrize(
    ("using", "kind"),
    [
        ("lucene", "clustered"),
        ("btree", "half covered"),
        ("lucene", "with logs, partitioned"),
    ],
)
def test_every_predicate_gives_sparks_answer(using, kind, awkward, tmp_path):
    table_of = awkward(kind)
    with stored_copy(table_of.path, tmp_path / "table", using) as table:
        columns = [each.name for each in table.schema() if not pa.types.is_struct(each.type)]
        for where in PREDICATES:
            found = table.scan(where, columns=columns).to_arrow()
            assert_same_rows(found, table_of.answer(where).select(columns))


def small(awkward: Callable[[str], Indexed], target: Path, include: list[str]) -> IndexedTable:
    """A copy of the table with an index on one column."""
    table = unindexed_copy(awkward("clustered").path, target)
    return indexed(table, ["name"], name="by_name", include=include)


WHERE = "name = 'plain'"
ONLY = {"stored": "only"}


def test_explain_says_that_no_base_file_was_read(awkward, tmp_path):
    with small(awkward, tmp_path / "table", ["amount"]) as table:
        covered = table.scan(WHERE, columns=["name", "amount"]).explain(analyze=True)
        assert "stored   the values of 1 base file in the index" in str(covered)
        assert covered.to_dict()["actual"]["stored"] == 1
        other = table.scan(WHERE, columns=["name", "price"]).explain(analyze=True)
        assert "stored  " not in str(other)
        assert other.to_dict()["actual"]["stored"] == 0


def test_rows_are_read_from_the_base_file_if_stored_values_are_damaged(
    awkward, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(packed_file, "BLOCK_SIZE", 512)  # else all members are in one block
    path = tmp_path / "table"
    with small(awkward, path, ["amount"]) as table:
        (data,) = path.rglob("data-*.pack")
        content = bytearray(data.read_bytes())
        content[600:700] = bytes(byte ^ 0xFF for byte in content[600:700])
        data.write_bytes(content)
        scan = table.scan(WHERE, columns=["name", "amount"], use_index="require")
        assert_same_rows(
            scan.to_arrow(), awkward("clustered").answer(WHERE).select(["name", "amount"])
        )
        assert "are not used" in caplog.text
        assert scan.statistics.pages > 0


def test_a_column_is_stored_and_dropped_again(awkward, tmp_path):
    path = tmp_path / "table"
    with small(awkward, path, []) as table:
        stored = {"name": {"stored": "true"}}
        table.alter_index("by_name", add=[Column(name="msg", options=ONLY)], options=stored)
        table.refresh("by_name").raise_for_failures()
        scan = table.scan(WHERE, columns=["name", "msg"])
        assert_same_rows(
            scan.to_arrow(), awkward("clustered").answer(WHERE).select(["name", "msg"])
        )
        assert scan.statistics.slices[0].stored
        assert stored_columns(path) == ["msg", "name"]
        table.drop_index(columns=["msg"], purge=True)
        assert stored_columns(path) == ["name"]
        assert len(list(path.rglob("data-*.pack"))) == 1
        assert_same_rows(
            scan.to_arrow(), awkward("clustered").answer(WHERE).select(["name", "msg"])
        )
        assert not scan.statistics.slices[0].stored
        assert [each.name for each in table.indexes()[0].columns] == ["name"]
        table.drop_index(columns=["name"])
        assert table.indexes() == ()


def stored_columns(path: Path) -> list[str]:
    """The columns whose values the newest data file holds."""
    document = max(path.rglob("manifest-*.json"))
    data = json.loads(document.read_text())["data"]
    first = data["members"][0]
    assert (first["name"], first["offset"]) == (VALUES, 0)
    values = pa.BufferReader((document.parent / data["name"]).read_bytes()[: first["length"]])
    return list(pq.read_schema(values).names)


@pytest.mark.parametrize(
    ("columns", "include", "error", "message"),
    [
        (["name"], ["place"], ColumnNotIndexable, "cannot be stored"),
        (["name"], ["place.City"], IndexDefinitionInvalid, "Store the whole column place"),
        (["name"], ["name"], IndexDefinitionInvalid, "names column name twice"),
        ([], ["name"], IndexDefinitionInvalid, "none of its columns is indexed"),
        (["name"], ["missing"], ColumnNotFound, "missing"),
        ([Column(name="name", options={"stored": "yes"})], [], IndexDefinitionInvalid, "'yes'"),
        (
            ["msg", Column(name="name", options={"stored": "only", "analyzer": "standard"})],
            [],
            IndexDefinitionInvalid,
            "it has no option 'analyzer'",
        ),
    ],
)
def test_values_that_cannot_be_stored(awkward, tmp_path, columns, include, error, message):
    path = shutil.copytree(awkward("clustered").path, tmp_path / "table")
    with open_table(path) as table:
        before = table.indexes()
        with pytest.raises(error) as raised:
            table.create_index("i", columns, include=include)
        assert message in str(raised.value)
        assert table.indexes() == before


def test_values_from_before_a_change_of_type_are_not_used(golden, tmp_path):
    shape = golden("fields_changed")
    path = shape.put(tmp_path, "written")
    with indexed(path, ["id"], include=["cost", "many"]) as table:
        shape.put(path)
        scan = table.scan("id < 'zzz'", columns=["id", "cost", "many"])
        assert_same_rows(scan.to_arrow(), shape.rows().select(["id", "cost", "many"]))
