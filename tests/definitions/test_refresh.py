"""refresh: entries are brought up to date with the definitions; only changed ones are rebuilt."""

import os
from pathlib import Path

from hudi_index_service import Column, IndexedTable
from hudi_index_service.build.strategy import Strategy
from tests.definitions.entries import columns, fields_by_column, generations, index_files
from tests.indexed import indexed

FIRST = "2026-01-01"


def partitions(table: IndexedTable, name: str) -> list[str]:
    """The partitions of the base files that a refresh would index."""
    return sorted(each.base_file.partition for each in table.refresh(name, dry_run=True).due)


def test_an_added_column_rebuilds_only_existing_entries(
    table: IndexedTable,
) -> None:
    table.create_index("i", ["amount"])
    table.build(strategy="all", partitions=[FIRST]).raise_for_failures()
    before = index_files(table)
    table.alter_index("i", add=["msg"])

    build = table.refresh("i").raise_for_failures()

    assert build.strategy is Strategy.REFRESH
    assert [each.base_file.partition for each in build.due] == [FIRST], "the other has no entry"
    assert columns(table) == [["amount", "msg"]]
    assert generations(table) == [2]
    after = index_files(table)
    assert {path: after[path] for path in before} == before, "existing files are unchanged"
    assert len(after) == len(before) + 2
    assert table.builds()[0].started["strategy"] == "refresh"


def test_up_to_date_entries_are_not_rebuilt(table: IndexedTable) -> None:
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


def test_only_incomplete_entries_are_built(table: IndexedTable) -> None:
    indexed(table, ["amount"])
    table.alter_index("i", add=["ts"])
    table.build(strategy="all", partitions=[FIRST]).raise_for_failures()

    assert partitions(table, "i") == ["2026-01-02"]
    table.refresh("i").raise_for_failures()
    assert generations(table) == [2, 2]


def test_dropped_columns_and_fields_are_removed_from_entries(table: IndexedTable) -> None:
    indexed(table, ["amount", "ts", Column(name="msg", options={"analyzer": "simple"})])
    table.alter_index("i", drop=["ts"], options={"msg": {}})
    number = ("number",)
    both = {"amount": number, "msg": ("keyword", "text:simple"), "ts": number}
    assert fields_by_column(table) == [both, both]

    table.refresh("i").raise_for_failures()
    table.clean()

    assert fields_by_column(table) == [{"amount": number, "msg": ("keyword",)}] * 2
    assert generations(table) == [2, 2]
    assert len(index_files(table)) == 4, "manifest and data file of each entry"


def test_columns_of_other_indexes_are_kept_and_not_added(table: IndexedTable) -> None:
    table.create_index("i", ["amount"])
    table.create_index("other", ["msg"])
    table.build(strategy="all", partitions=[FIRST]).raise_for_failures()
    table.alter_index("i", add=["ts"])
    table.alter_index("other", add=["id"])

    table.refresh("i").raise_for_failures()

    assert columns(table) == [["amount", "msg", "ts"]]
    assert table.scan("msg = 'Buying car 3' AND dt = '2026-01-01'").explain().uses_index


def test_refresh_builds_what_incremental_would_build(clustered: IndexedTable) -> None:
    """After `early` was defined, 2026-01-02's base file was clustered and 2026-01-01's was not."""
    table = clustered
    assert partitions(table, "early") == ["2026-01-02"]
    table.build(strategy="all", partitions=[FIRST]).raise_for_failures()
    table.alter_index("early", add=["msg"])

    table.refresh("early").raise_for_failures()

    assert columns(table) == [["amount", "msg"]] * 2
    assert generations(table) == [2, 1]


def test_the_refresh_strategy_covers_all_indexes(table: IndexedTable) -> None:
    table.create_index("i", ["amount"])
    table.create_index("j", ["msg"])
    table.build(strategy="all").raise_for_failures()
    table.alter_index("i", add=["ts"])
    table.alter_index("j", add=["id"])

    build = table.build(strategy="refresh", partitions=[FIRST]).raise_for_failures()

    assert len(build.built) == 1
    assert columns(table) == [["amount", "id", "msg", "ts"], ["amount", "msg"]]


def test_an_unreadable_definition_prevents_removal_of_columns(
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
