"""Hudi's own indexes, as in a table's metadata."""

import json

from hudi_index_service.hudi.properties import OwnIndex, own_indexes
from hudi_index_service.storage.store import Storage

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
