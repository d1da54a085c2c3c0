"""Mistakes in Python: each raises an error with code, message and remedy in terms of Python."""

from collections.abc import Callable
from typing import Any

import pytest

from hudi_index_service import (
    Budget,
    Column,
    IndexedTable,
    IndexHook,
    IndexServiceError,
    open_table,
)
from tests.indexed import GoldenIndex
from tests.mistakes.clear import COMMANDS, STATEMENTS, assert_clear

ANALYSED = Column(name="msg", options={"analyzer": "standrad"})

# What is done with a table that has the index by_amount → code, part of the message, of the remedy.
MISTAKES: list[tuple[Callable[[Any], object], str, str, str]] = [
    # Opening.
    (lambda t: open_table(None), "TABLE_NOT_FOUND", "not by NoneType", "folder that holds"),
    (lambda t: open_table(f"{t.uri}s"), "TABLE_NOT_FOUND", "Nothing is", "Did you mean table?"),
    (lambda t: open_table("db.t"), "TABLE_NOT_FOUND", "no folder db.t", "or pass spark=<session>"),
    (lambda t: open_table("s3:"), "STORAGE_UNSUPPORTED", "no bucket", "s3://, gs://"),
    (
        lambda t: open_table(t.uri, storage_options="x"),  # type: ignore[arg-type]
        *("CONFIG_INVALID", "not a dictionary", "Write storage_options={"),
    ),
    (
        lambda t: open_table("s3://b/t", storage_options={"acces_key_id": "x"}),
        *("STORAGE_FAILED", "'acces_key_id' is not valid", "Check the location"),
    ),
    (
        lambda t: open_table(t.uri, settings={"read": {}}),  # type: ignore[arg-type]
        *("CONFIG_INVALID", "settings is dict", "Settings(read="),
    ),
    (
        lambda t: open_table(t.uri, spark="local"),  # type: ignore[arg-type]
        *("CONFIG_INVALID", "spark is str", "spark=SparkSession"),
    ),
    # Queries.
    (lambda t: t.scan("amuont = 1"), "COLUMN_NOT_FOUND", "'amuont'", "amount, and"),
    (lambda t: t.scan("amount = "), "PREDICATE_INVALID", "line 1", "Spark SQL"),
    (lambda t: t.scan(3), "PREDICATE_INVALID", "not int", "as text"),
    (lambda t: t.scan(columns="id"), "CONFIG_INVALID", "not 'id'", 'columns=["a", "b"]'),
    (lambda t: t.scan(columns=["tss"]), "COLUMN_NOT_FOUND", "'tss'", "ts, and"),
    (lambda t: t.scan(limit="3"), "CONFIG_INVALID", "limit='3'", "an integer from 0 on"),
    (lambda t: t.scan(as_of="noon"), "CONFIG_INVALID", "as_of='noon'", "yyyy-MM-dd"),
    (lambda t: t.scan(query_type="x"), "CONFIG_INVALID", "query_type='x'", "read_optimized"),
    (lambda t: t.scan(use_index=True), "CONFIG_INVALID", "use_index=True", "never or require"),
    (
        lambda t: t.scan("id = '1'", use_index="require").to_arrow(),
        *("INDEX_REQUIRED", "cannot be read through an index", 'use_index="auto"'),
    ),
    (lambda t: t.search("msg", "car"), "PREDICATE_UNSUPPORTED", "words of `msg`", "create_index("),
    (lambda t: t.search("msg", "car", k=0), "CONFIG_INVALID", "k=0", "Use 1 to"),
    (lambda t: t.tag_location("1"), "CONFIG_INVALID", "not a list of keys", "record keys"),
    (lambda t: t.partitions("mgs = 1"), "COLUMN_NOT_FOUND", "'mgs'", "msg, and"),
    # Definitions.
    (lambda t: t.create_index("x", "id"), "CONFIG_INVALID", "not 'id'", 'columns=["a", "b"]'),
    (
        lambda t: t.create_index("x", {"msg": {"analyzer": "standard"}}),
        *("CONFIG_INVALID", "not {'msg'", 'Column(name="a", options={"analyzer"'),
    ),
    (
        lambda t: t.create_index("x", ["id"], include={"msg": {}}),
        *("CONFIG_INVALID", "include takes a list", 'include=["a", "b"]'),
    ),
    (
        lambda t: t.create_index("x", ["id"], since="yesterday"),
        *("CONFIG_INVALID", "since='yesterday'", "yyyyMMddHHmmssSSS"),
    ),
    (
        lambda t: t.create_index("x", ["id"], since="20261301000000000"),
        *("CONFIG_INVALID", "is not a time", "yyyy-MM-dd"),
    ),
    (
        lambda t: t.create_index("x", [Column(name="amount", options={"key": "composite"})]),
        *("INDEX_DEFINITION_INVALID", "lucene has no composite keys", "index type btree"),
    ),
    (
        lambda t: t.create_index("x", [Column(name="id", options={"lucene.": "standard"})]),
        *("INDEX_DEFINITION_INVALID", "'lucene.' has no name", "such as lucene.analyzer"),
    ),
    (lambda t: t.create_index("x", []), "INDEX_DEFINITION_INVALID", "no column", "at least one"),
    (lambda t: t.create_index("x", [3]), "COLUMN_NOT_FOUND", "type int", "as text"),
    (lambda t: t.create_index("x-y", ["id"]), "INDEX_DEFINITION_INVALID", "'x-y'", "letters"),
    (
        lambda t: t.create_index("by_amount", ["id"]),
        *("INDEX_EXISTS", "by_amount", "pass if_not_exists=True"),
    ),
    (
        lambda t: t.create_index("x", ["id"], using="lucine"),
        *("INDEX_TYPE_UNKNOWN", "'lucine'", "Did you mean lucene?"),
    ),
    (
        lambda t: t.create_index("x", [ANALYSED]),
        *("INDEX_DEFINITION_INVALID", "'standrad'", "Did you mean standard?"),
    ),
    (
        lambda t: t.alter_index("by_amount", options={"msg": "standard"}),
        *("INDEX_DEFINITION_INVALID", "of column msg", 'options={"msg": {"analyzer"'),
    ),
    (
        lambda t: t.alter_index("by_amount", options={"msg": {"ranked": True}}),
        *("INDEX_DEFINITION_INVALID", "of column msg", 'options={"msg": {"analyzer"'),
    ),
    (
        lambda t: t.alter_index("by_amount", options=[ANALYSED]),
        *("CONFIG_INVALID", "not a dictionary", 'options={"msg"'),
    ),
    (
        lambda t: t.alter_index("by_amount", options_for_all={"ranked": True}),
        *("INDEX_DEFINITION_INVALID", "of every column", "options_for_all={"),
    ),
    (lambda t: t.alter_index("by_amount"), "INDEX_DEFINITION_INVALID", "would change", "Name"),
    (lambda t: t.drop_index(), "CONFIG_INVALID", "by its name", "one of name and columns"),
    (lambda t: t.drop_index("by_amuont"), "INDEX_NOT_FOUND", "by_amuont", "mean by_amount?"),
    (lambda t: t.drop_index(columns=["ts"]), "INDEX_NOT_FOUND", "ts", "IndexedTable.indexes"),
    # Building and keeping.
    (lambda t: t.build(strategy="some"), "CONFIG_INVALID", "'some'", "incremental, all or"),
    (lambda t: t.build(instant="now"), "CONFIG_INVALID", "instant 'now'", "requested time"),
    (lambda t: t.build(partitions="x"), "CONFIG_INVALID", "not 'x'", 'partitions=["a", "b"]'),
    (lambda t: t.build(retry_failed="x"), "CONFIG_INVALID", "retry_failed='x'", "now or backoff"),
    (lambda t: Budget(bytes="10MB"), "CONFIG_INVALID", "'10MB'", "a number above 0"),  # type: ignore[arg-type]
    (lambda t: t.refresh("nothing"), "INDEX_NOT_FOUND", "nothing", "IndexedTable.indexes"),
    (lambda t: t.builds(-1), "CONFIG_INVALID", "limit=-1", "an integer from 0 on"),
    (lambda t: t.clean(grace_seconds="1h"), "CONFIG_INVALID", "'1h'", "number of seconds"),
    (lambda t: t.retain("forever"), "CONFIG_INVALID", "policy='forever'", "file-slice, instant"),
    (lambda t: t.verify(sample=-1), "CONFIG_INVALID", "sample=-1", "0 or more"),
    (lambda t: t.propose(add="msg"), "CONFIG_INVALID", "not 'msg'", 'add=["a", "b"]'),
    # The hook.
    (lambda t: IndexHook([]), "CONFIG_INVALID", "no table to serve", "at least one"),
    (lambda t: IndexHook(t.uri), "CONFIG_INVALID", "list of names", 'tables=["a", "b"]'),
    (lambda t: IndexHook([t.uri], wait=-1), "CONFIG_INVALID", "wait=-1", "from 0 to"),
    (
        lambda t: IndexHook([t.uri], options={"hoodie.index.colums": "id"}),
        *("CONFIG_INVALID", "hoodie.index.colums", "Did you mean hoodie.index.columns?"),
    ),
    (lambda t: IndexHook([t.uri]).url, "CONFIG_INVALID", "not running", "with IndexHook([table])"),
    (
        lambda t: IndexHook([t.uri]).write_options(t.uri),
        *("CONFIG_INVALID", "not running", "with IndexHook([table])"),
    ),
    (
        lambda t: IndexHook([t.uri]).write_options("/other"),
        *("CALLBACK_REFUSED", "'/other'", "IndexHook([table, ...])"),
    ),
]


@pytest.fixture(scope="module")
def table(golden_index: GoldenIndex) -> IndexedTable:
    by_amount = {"name": "by_amount", "build": False}
    return open_table(golden_index("two_hundred_rows", ["amount", "msg"], **by_amount))


@pytest.mark.parametrize(("mistake", "code", "says", "remedy"), MISTAKES)
def test_a_mistake_raises_an_error_with_code_and_remedy(
    mistake: Callable[[Any], object], code: str, says: str, remedy: str, table: IndexedTable
) -> None:
    with pytest.raises(IndexServiceError) as raised:
        mistake(table)
    assert_clear(str(raised.value), code, says, remedy, foreign=(COMMANDS, STATEMENTS))
