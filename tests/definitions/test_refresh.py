"""refresh: entries are brought up to date with the definitions, touching only what changed."""

import os
from pathlib import Path

import pytest

from hudi_index_service import Column, IndexedTable
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import IndexNotFound
from tests.definitions.conftest import OpenCopy
from tests.definitions.entries import columns, generations, held, index_files

FIRST = "2026-01-01"


def partitions(table: IndexedTable, name: str) -> list[str]:
    """Where the base files lie that a refresh would build for."""
    return sorted(each.base_file.partition for each in table.refresh(name, dry_run=True).due)


def test_an_added_column_makes_new_generations_of_the_entries_there_are(
    table: IndexedTable,
) -> None:
    table.create_index("i", ["amount"])
    table.build(strategy="all", partitions=[FIRST]).raise_for_failures()
    before = index_files(table)
    table.alter_index("i", add=["msg"])

    build = table.refresh("i").raise_for_failures()

    assert build.strategy is Strategy.REFRESH
    assert [each.base_file.partition for each in build.due] == [FIRST], "where there is no entry"
    assert columns(table) == [["amount", "msg"]]
    assert generations(table) == [2]
    after = index_files(table)
    assert {path: after[path] for path in before} == before, "nothing is ever replaced"
    assert len(after) == len(before) + 2
    assert table.builds()[0].started["strategy"] == "refresh"


def test_what_is_right_is_not_touched(table: IndexedTable) -> None:
    table.create_index("i", ["amount"])
    table.create_index("words", [Column(name="msg", options={"analyzer": "standard"})])
    table.build(strategy="all", partitions=[FIRST]).raise_for_failures()
    table.alter_index("i", add=["ts"])
    table.build(strategy="all").raise_for_failures()
    before = index_files(table)

    assert table.refresh("i").due == ()
    assert table.refresh("words").due == ()
    assert table.build(strategy="refresh").due == ()

    assert index_files(table) == before
    assert generations(table) == [2, 1]


def test_only_entries_that_lack_something_are_built(table: IndexedTable) -> None:
    table.create_index("i", ["amount"])
    table.build(strategy="all").raise_for_failures()
    table.alter_index("i", add=["ts"])
    table.build(strategy="all", partitions=[FIRST]).raise_for_failures()

    assert partitions(table, "i") == ["2026-01-02"]
    table.refresh("i").raise_for_failures()
    assert generations(table) == [2, 2]


def test_dropped_columns_and_fields_leave_the_entries(table: IndexedTable) -> None:
    table.create_index("i", ["amount", "ts", Column(name="msg", options={"analyzer": "simple"})])
    table.build(strategy="all").raise_for_failures()
    table.alter_index("i", drop=["ts"], options={"msg": {}})
    number = ("number",)
    both = {"amount": number, "msg": ("keyword", "text:simple"), "ts": number}
    assert held(table) == [both, both]

    table.refresh("i").raise_for_failures()
    table.clean()

    assert held(table) == [{"amount": number, "msg": ("keyword",)}] * 2
    assert generations(table) == [2, 2]
    assert len(index_files(table)) == 4, "manifest and data of each entry"


def test_what_a_dropped_index_left_goes_with_the_next_generation(table: IndexedTable) -> None:
    table.create_index("i", ["amount"])
    table.create_index("gone", ["msg", "amount"])
    table.build(strategy="all").raise_for_failures()
    table.drop_index("gone")
    table.create_index("late", ["ts"])

    table.build(strategy="all").raise_for_failures()

    assert columns(table) == [["amount", "ts"]] * 2


def test_columns_of_other_indexes_stay_and_are_not_added(table: IndexedTable) -> None:
    table.create_index("i", ["amount"])
    table.create_index("other", ["msg"])
    table.build(strategy="all", partitions=[FIRST]).raise_for_failures()
    table.alter_index("i", add=["ts"])
    table.alter_index("other", add=["id"])

    table.refresh("i").raise_for_failures()

    assert columns(table) == [["amount", "msg", "ts"]]
    assert table.scan("msg = 'Buying car 3' AND dt = '2026-01-01'").explain().uses_index


def test_what_incremental_wants_is_built_too(open_copy: OpenCopy) -> None:
    """2026-01-02's base file was clustered since `early` was defined, 2026-01-01's not."""
    table = open_copy("clustered")
    assert partitions(table, "early") == ["2026-01-02"]
    table.build(strategy="all", partitions=[FIRST]).raise_for_failures()
    table.alter_index("early", add=["msg"])

    table.refresh("early").raise_for_failures()

    assert columns(table) == [["amount", "msg"]] * 2
    assert generations(table) == [2, 1]


def test_the_strategy_refresh_is_for_all_indexes(table: IndexedTable) -> None:
    table.create_index("i", ["amount"])
    table.create_index("j", ["msg"])
    table.build(strategy="all").raise_for_failures()
    table.alter_index("i", add=["ts"])
    table.alter_index("j", add=["id"])

    build = table.build(strategy="refresh", partitions=[FIRST]).raise_for_failures()

    assert len(build.built) == 1
    assert columns(table) == [["amount", "id", "msg", "ts"], ["amount", "msg"]]


def test_while_a_definition_cannot_be_read_nothing_is_taken_from_entries(
    table: IndexedTable,
) -> None:
    table.create_index("i", ["amount", "ts"])
    table.create_index("damaged", ["msg"])
    table.build(strategy="all").raise_for_failures()
    table.alter_index("i", drop=["ts"])
    path = Path(table.uri, ".hoodie/.index/_service/definitions/damaged-0001.json")
    definition = path.read_bytes()
    path.write_bytes(definition[:-40])

    assert table.refresh("i").due == ()
    table.alter_index("i", add=["id"])
    table.refresh("i").raise_for_failures()
    assert columns(table) == [["amount", "id", "msg", "ts"]] * 2

    path.write_bytes(definition)
    os.utime(path, (0, 0))
    table.refresh("i").raise_for_failures()
    assert columns(table) == [["amount", "id", "msg"]] * 2


def test_an_unknown_index(table: IndexedTable) -> None:
    with pytest.raises(IndexNotFound, match="no index named i"):
        table.refresh("i")
