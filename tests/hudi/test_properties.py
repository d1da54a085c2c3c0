"""hoodie.properties: Java's format, and errors for locations without a table."""

import pytest

from hudi_index_service.errors import StorageUnsupported
from hudi_index_service.hudi import open_hudi_table
from hudi_index_service.hudi.properties import parse_properties, read_properties, split_columns
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
