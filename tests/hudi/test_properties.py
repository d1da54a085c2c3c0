"""hoodie.properties: Java's format, locations without a table, and Hudi's own indexes."""

import json

import pytest

from hudi_index_service.errors import StorageUnsupported
from hudi_index_service.hudi import open_hudi_table
from hudi_index_service.hudi.properties import (
    OwnIndex,
    own_indexes,
    parse_properties,
    read_properties,
    split_columns,
)
from hudi_index_service.storage.store import Storage


def test_java_properties_format():
    text = rb"""
#Properties saved on 2026-11-21T03:41:42Z
! another comment
hoodie.table.name=my\ table
  hoodie.table.version : 9
hoodie.table.type MERGE_ON_READ
hoodie.table.create.schema={"type"\:"record","name"\:"t"}
hoodie.database.name=M\u00fcnchen\tx
hoodie.table.recordkey.fields=a,\
    b
hoodie.table.partition.fields=
key\=with\:separators=1
trailing\\
"""
    assert parse_properties(text) == {
        "hoodie.table.name": "my table",
        "hoodie.table.version": "9",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.create.schema": '{"type":"record","name":"t"}',
        "hoodie.database.name": "München\tx",
        "hoodie.table.recordkey.fields": "a,b",
        "hoodie.table.partition.fields": "",
        "key=with:separators": "1",
        "trailing\\": "",
    }


def test_column_lists():
    assert split_columns("") == ()
    assert split_columns("a, b") == ("a", "b")
    assert split_columns("ts:TIMESTAMP,dt:SIMPLE") == ("ts", "dt")


def test_properties_are_read_from_the_backup_while_hudi_rewrites_them(tmp_path):
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie/hoodie.properties.backup").write_text("hoodie.table.name=t\n")
    assert read_properties(Storage(tmp_path)) == {"hoodie.table.name": "t"}


def test_unsupported_stores_are_refused():
    with pytest.raises(StorageUnsupported, match="oss"):
        open_hudi_table("oss://bucket/table")
    with pytest.raises(StorageUnsupported, match="memory"):
        open_hudi_table("memory://table")


PROPERTIES = (
    "hoodie.table.name=t\nhoodie.table.metadata.partitions="
    "bloom_filters,column_stats,expr_index_lower,files,secondary_index_by_city\n"
)
DEFINITIONS = {
    "column_stats": {"indexType": "column_stats", "sourceFields": ["a", "b"], "indexOptions": {}},
    "expr_index_lower": {
        **{"indexName": "expr_index_lower", "indexType": "bloom_filters"},
        **{"sourceFields": ["name"], "indexOptions": {"expr": "lower"}},
    },
    "expr_index_in_the_making": {"indexType": "column_stats", "sourceFields": ["a"]},
}


def table(folder, definitions: str | None) -> Storage:
    (folder / ".hoodie" / ".index_defs").mkdir(parents=True)
    (folder / ".hoodie" / "hoodie.properties").write_text(PROPERTIES)
    if definitions is not None:
        (folder / ".hoodie" / ".index_defs" / "index.json").write_text(definitions)
    return Storage(folder)


def test_complete_indexes_have_their_definitions(tmp_path):
    storage = table(tmp_path, json.dumps({"indexDefinitions": DEFINITIONS}))
    assert own_indexes(storage) == (
        OwnIndex("bloom_filters", "bloom_filters"),
        OwnIndex("column_stats", "column_stats"),  # of the whole table, as Hudi shows it
        OwnIndex("expr_index_lower", "bloom_filters", ("name",), {"expr": "lower"}),
        OwnIndex("secondary_index_by_city", "secondary_index"),
    )


def test_missing_or_damaged_definitions(tmp_path, caplog):
    names = ["bloom_filters", "column_stats", "expr_index_lower", "secondary_index_by_city"]
    for number, damaged in enumerate((None, "{", "[]", '{"indexDefinitions": 7}', "\x00")):
        found = own_indexes(table(tmp_path / str(number), damaged))
        assert [each.name for each in found] == names
        assert {each.columns for each in found} == {()}
    assert caplog.text.count("cannot be read") == 3
