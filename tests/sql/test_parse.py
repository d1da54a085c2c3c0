"""The grammar of the index statements, without Spark."""

import re
from pathlib import Path

import pytest

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import StatementInvalid
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.sql import statements
from hudi_index_service.sql.build_statements import CancelIndexing, OptimizeTable, ShowIndexing
from hudi_index_service.sql.grammar import TableName, TablePath
from hudi_index_service.sql.index_statements import (
    AlterIndex,
    CreateIndex,
    DropColumns,
    DropIndex,
    RefreshIndex,
    ShowIndexes,
)
from hudi_index_service.sql.statements import EXPLAIN, EXPLAIN_ANALYZE, parse_statement

T = TableName(("t",))
_JAVA = Path("native/spark_rule/java/hudiindex/spark/statements/FirstWords.java")


@pytest.mark.parametrize(
    ("query", "statement"),
    [
        (
            "CREATE INDEX i ON t USING lucene (sender)",
            CreateIndex("i", T, ("lucene",), (Column(name="sender"),)),
        ),
        (
            "create index if not exists i on table db.t using LUCENE "
            "(msg OPTIONS(analyzer='simple'), `a b`, a.b) OPTIONS (analyzer = 'standard')",
            CreateIndex(
                "i",
                TableName(("db", "t")),
                ("LUCENE",),
                (
                    Column(name="msg", options={"analyzer": "simple"}),
                    Column(name="a b", options={"analyzer": "standard"}),
                    Column(name="a.b", options={"analyzer": "standard"}),
                ),
                if_not_exists=True,
            ),
        ),
        (
            "CREATE INDEX i ON t USING lucene (c) OPTIONS (a.b = 1.5, 'c d' true, e='it\\'s')",
            CreateIndex(
                "i",
                T,
                ("lucene",),
                (Column(name="c", options={"a.b": "1.5", "c d": "true", "e": "it's"}),),
            ),
        ),
        (
            "CREATE INDEX i ON t USING btree (a, b) INCLUDE (c, d.e) OPTIONS (key = 'composite')",
            CreateIndex(
                "i",
                T,
                ("btree",),
                tuple(Column(name=name, options={"key": "composite"}) for name in ("a", "b")),
                include=("c", "d.e"),
            ),
        ),
        (
            "CREATE INDEX i ON t USING lucene, `b-tree` (a)",
            CreateIndex("i", T, ("lucene", "b-tree"), (Column(name="a"),)),
        ),
        (
            "ALTER INDEX i ON TABLE t ADD (a.b, c OPTIONS(analyzer='simple')) DROP (d, `e.f`) "
            "SET (g OPTIONS(h=1), k) RENAME TO j",
            AlterIndex(
                "i",
                T,
                add=(Column(name="a.b"), Column(name="c", options={"analyzer": "simple"})),
                drop=("d", "`e.f`"),
                set=(Column(name="g", options={"h": "1"}), Column(name="k")),
                rename_to="j",
            ),
        ),
        (
            "ALTER INDEX i ON t SET OPTIONS(analyzer = 'simple', 'a b' 1)",
            AlterIndex("i", T, options={"analyzer": "simple", "a b": "1"}),
        ),
        (
            "ALTER INDEX i ON t ADD (a) SET OPTIONS(k='v') RENAME TO j",
            AlterIndex("i", T, (Column(name="a"),), options={"k": "v"}, rename_to="j"),
        ),
        ("alter index i on t rename to add", AlterIndex("i", T, rename_to="add")),
        ("ALTER INDEX i ON t DROP (a)", AlterIndex("i", T, drop=("a",))),
        ("DROP INDEX ON t (a, b.c)", DropColumns(T, ("a", "b.c"))),
        ("DROP INDEX ON TABLE t (a) PURGE", DropColumns(T, ("a",), purge=True)),
        ("OPTIMIZE TABLE t STRATEGY REFRESH", OptimizeTable(T, Strategy.REFRESH)),
        ("DROP INDEX i ON t", DropIndex("i", T)),
        ("DROP INDEX if ON t", DropIndex("if", T)),
        ("DROP INDEX IF EXISTS if ON t", DropIndex("if", T, True)),
        ("DROP INDEX IF EXISTS i ON TABLE t PURGE", DropIndex("i", T, True, True)),
        ("SHOW INDEXES FROM t", ShowIndexes(T)),
        ("SHOW INDEXES IN TABLE t", ShowIndexes(T)),
        ("REFRESH INDEX i ON TABLE t", RefreshIndex("i", T)),
        ("OPTIMIZE TABLE t", OptimizeTable(T, Strategy.INCREMENTAL)),
        ("OPTIMIZE TABLE t STRATEGY INCREMENTAL", OptimizeTable(T, Strategy.INCREMENTAL)),
        ("OPTIMIZE TABLE t STRATEGY ALL DRY RUN", OptimizeTable(T, Strategy.ALL, dry_run=True)),
        ("OPTIMIZE TABLE t DRY RUN", OptimizeTable(T, dry_run=True)),
        ("SHOW INDEXING t", ShowIndexing(T)),
        ("SHOW INDEXING FROM TABLE t", ShowIndexing(T)),
        ("show indexing t build '000012'", ShowIndexing(T, "000012")),
        ("SHOW INDEXING IN t BUILD 12", ShowIndexing(T, "000012")),
        ("SHOW INDEXING build", ShowIndexing(TableName(("build",)))),
        ("CANCEL INDEXING t", CancelIndexing(T)),
        ("cancel indexing table db.t", CancelIndexing(TableName(("db", "t")))),
    ],
)
def test_index_statements(query, statement):
    assert parse_statement(query) == statement


@pytest.mark.parametrize(
    ("written", "table"),
    [
        ("t", T),
        ("`my-db`.`a``b`", TableName(("my-db", "a`b"))),
        ("spark_catalog.db.t", TableName(("spark_catalog", "db", "t"))),
        ("1st.2nd", TableName(("1st", "2nd"))),
        ("table", TableName(("table",))),
        ("table.index", TableName(("table", "index"))),
        ("'/data/messages'", TablePath("/data/messages")),
        ('"s3://bucket/messages"', TablePath("s3://bucket/messages")),
        ("hudi.`/data/messages`", TablePath("/data/messages")),
        ("HUDI.`s3://bucket/messages`", TablePath("s3://bucket/messages")),
        ("hudi.messages", TableName(("hudi", "messages"))),
    ],
)
def test_table_by_name_or_by_path(written, table):
    assert parse_statement(f"SHOW INDEXING {written}") == ShowIndexing(table)


@pytest.mark.parametrize(
    "query",
    [
        "  \n\tDROP INDEX i ON t",
        "DROP INDEX i ON t;",
        "DROP INDEX i ON t ; ;\n",
        "-- why\nDROP /* this */ INDEX -- one\n i ON t -- now",
        "/* a /* nested */ comment */DROP INDEX i ON t",
        "drop\nindex\ni\non\nt",
        "DROP -- a comment goes on after a backslash \\\nx\nINDEX i ON t -- \\\n PURGE",
    ],
)
def test_blanks_comments_and_semicolons_are_skipped(query):
    assert parse_statement(query) == DropIndex("i", T)


@pytest.mark.parametrize(
    "query",
    [
        "",
        ";",
        "SELECT 1",
        "(SELECT 1)",
        "SELECT 'DROP INDEX i ON t'",
        "-- DROP INDEX i ON t",
        "/* DROP INDEX i ON t",
        "-- a comment goes on after a backslash \\\nDROP INDEX i ON t",
        "DROP TABLE index",
        "DROP",
        "SHOW TABLES",
        "OPTIMIZE t",
        "CREATE INDEXES i ON t",
        "CANCEL t",
        "this is no SQL ' at all",
    ],
)
def test_other_statements_are_passed_to_spark(query):
    assert parse_statement(query) is None


@pytest.mark.parametrize(
    "query",
    [
        "CREATE INDEX i ON t (id)",
        "CREATE INDEX IF NOT EXISTS record_index ON TABLE db.t (id)",
        "CREATE INDEX i ON t USING column_stats(ts) OPTIONS(expr='from_unixtime', format='yyyy')",
        "CREATE INDEX ts_hour ON hudi_table \n  USING column_stats(ts) \n  options(expr='hour');",
        "CREATE INDEX indexName ON tableIdentifier (primaryKey1, primaryKey2)",
        "CREATE INDEX i ON t (a OPTIONS(k='v'), b) OPTIONS (k = 'v')",
        "CREATE INDEX i ON t USING Bloom_Filters(name) OPTIONS(expr='lower')",
        "CREATE INDEX i ON t USING record_index (id)",
        "CREATE INDEX i ON t USING secondary_index (city)",
    ],
)
def test_indexes_of_hudis_own_types_are_passed_to_hudi(query):
    assert parse_statement(query) is None


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("DROP INDEX ON t (a) CASCADE", "PURGE or the end expected at line 1, column 21"),
        ("DROP INDEX IF EXISTS ON t", "Index name expected at line 1, column 22"),
        ("DROP INDEX IF EXISTS 7 ON t", "Index name expected at line 1, column 22"),
        ("DROP INDEX i t", "ON expected at line 1, column 14 of the statement, found 't'"),
        ("DROP INDEX my-index ON t", "ON expected at line 1, column 14"),
        ("DROP INDEX i ON ''", "TABLE, table name or 'path' expected at line 1, column 17"),
        ("DROP INDEX i\n  ON db.", "Name expected at line 2, column 9 of the statement, found its"),
        ("ALTER INDEX i ON t RENAME j", "TO expected at line 1, column 27 of the statement, f"),
        ("ALTER INDEX i ON t DROP (a) ADD (b)", "SET, RENAME TO or the end expected at line 1"),
        ("ALTER INDEX i ON t ADD a", "( expected at line 1, column 24"),
        ("ALTER INDEX ON t ADD (a)", "Index name expected at line 1, column 13"),
        ("DROP INDEX i ON t CASCADE", "PURGE or the end expected at line 1, column 19"),
        ("DROP INDEX i ON t PURGE PURGE", "The end expected at line 1, column 25"),
        ("DROP INDEX 'i' ON t", "IF EXISTS, ON or index name expected at line 1, column 12"),
        ("SHOW INDEXES t", "FROM or IN expected at line 1, column 14"),
        ("OPTIMIZE TABLE", "Table name or 'path' expected at line 1, column 15"),
        ("OPTIMIZE TABLE t STRATEGY fast", "INCREMENTAL, ALL or REFRESH expected at"),
        ("OPTIMIZE TABLE t FOR", "WHERE, STRATEGY, DRY RUN or the end expected at line 1, col"),
        ("OPTIMIZE TABLE t STRATEGY ALL WHERE true", "DRY RUN or the end expected at line 1, col"),
        ("OPTIMIZE TABLE t DRY RUN STRATEGY ALL", "The end expected at line 1, column 26"),
        ("CREATE INDEX i ON t USING lucene ()", "Column name expected at line 1, column 35"),
        ("CREATE INDEX i ON t\nUSING lucene (a,\n)", "Column name expected at line 3, column 1"),
        ("CREATE INDEX i ON t USING lucene (a b)", "OPTIONS, , or ) expected at line 1, column 37"),
        ("CREATE INDEX i ON t USING lucene (lower(a))", "OPTIONS, , or ) expected at line 1, col"),
        (
            "CREATE INDEX i ON t USING lucene (a) x",
            "INCLUDE, OPTIONS or the end expected at line 1, column 38",
        ),
        ("CREATE INDEX i ON t USING lucene (a) INCLUDE b", "( expected at line 1, column 46"),
        ("CREATE INDEX i ON t USING lucene (a OPTIONS(k=))", "Quoted value, number, true or false"),
        ("CREATE INDEX i ON t WITH (a)", "USING or ( expected at line 1, column 21"),
        ("CREATE INDEX i ON '/data/t' (a)", "USING expected at line 1, column 29"),
        ("ALTER INDEX i ON t SET a", "OPTIONS or ( expected at line 1, column 24"),
        ("ALTER INDEX i ON t SET OPTIONS(k='v') ADD (a)", "RENAME TO or the end expected at"),
        ("SHOW INDEXING t BUILDS", "BUILD or the end expected at line 1, column 17"),
        ("SHOW INDEXING t BUILD 'a'", "Build id, such as '000001', expected at line 1, column 23"),
        ("SHOW INDEXING t BUILD 1.5", "Build id, such as '000001', expected at line 1, column 23"),
        ("SHOW INDEXING t BUILD 1 2", "The end expected at line 1, column 25"),
        ("CANCEL INDEXING t now", "The end expected at line 1, column 19"),
        ("DROP INDEX i {# hidden #} ON t", "ON expected at line 1, column 14 of the statement, fo"),
        (
            "DROP INDEX i\u00a0ON t",
            "Unexpected character '\\xa0' at line 1, column 13 of the state",
        ),
        (
            "DROP INDEX i ON t\v",
            "Unexpected character '\\x0b' at line 1, column 18 of the statemen",
        ),
        ("DROP INDEX IF EX\u0131STS i ON t", "Unexpected character 'ı' at line 1, column 17 of th"),
        (
            "DROP INDEX i ON t\u00e9",
            "Unexpected character 'é' at line 1, column 18 of the statemen",
        ),
        ("DROP INDEX i ON 'unclosed", 'Unterminated text "\'" at line 1, column 17 of the statem'),
        ("DROP INDEX i ON `unclosed", "Unterminated text '`' at line 1, column 17 of the stateme"),
        ("DROP INDEX i ON t /* unclosed", "Unterminated comment at line 1, column 19 of the state"),
        (
            "DROP INDEX i ON t; DROP TABLE t",
            "End of the statement expected after the ; at line 1, co",
        ),
    ],
)
def test_syntax_errors_have_a_position_and_what_was_expected(query, message):
    with pytest.raises(StatementInvalid) as caught:
        parse_statement(query)
    assert caught.value.message.startswith(message)
    assert caught.value.code == "STATEMENT_INVALID"


STATEMENTS = [
    "CREATE INDEX IF NOT EXISTS i ON TABLE db . t USING lucene , btree "
    "( a . b OPTIONS ( k . l = 'v' , m = 1 ) , c ) OPTIONS ( 'k' = true )",
    "CREATE INDEX i ON '/t' USING lucene ( a )",
    "ALTER INDEX i ON TABLE t ADD ( a OPTIONS ( k = 'v' ) , b ) DROP ( c , d . e ) "
    "SET ( f OPTIONS ( k = 'v' ) ) RENAME TO j",
    "ALTER INDEX i ON t SET OPTIONS ( k = 'v' , l = 2 ) RENAME TO j",
    "DROP INDEX IF EXISTS i ON TABLE t PURGE",
    "DROP INDEX ON TABLE t ( a , b . c ) PURGE",
    "SHOW INDEXES FROM TABLE hudi . `/t`",
    "SHOW INDEXES IN t",
    "REFRESH INDEX i ON TABLE t",
    "OPTIMIZE TABLE db . t WHERE true",
    "OPTIMIZE TABLE db . t STRATEGY INCREMENTAL DRY RUN",
    "OPTIMIZE TABLE t STRATEGY ALL",
    "SHOW INDEXING FROM TABLE t BUILD '000001'",
    "SHOW INDEXING IN t",
    "CANCEL INDEXING TABLE db . t",
    "EXPLAIN ANALYZE INDEX SELECT",
]
# The words with which an error message describes these tokens.
KINDS = {
    "name": ("i", "j", "t", "db", "a", "b", "c", "d", "e", "f", "k", "l", "m", "hudi", "`/t`"),
    "path": ("'/t'",),
    "index type": ("lucene", "btree", "hbase"),
    "value": ("'v'", "1", "2", "true", "="),
    "option name": ("'k'",),
    "INCREMENTAL": ("INCREMENTAL", "ALL"),
    "Build id": ("'000001'",),
    "Predicate": ("true",),
    "Query": ("SELECT",),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_errors_name_every_valid_next_token(statement):
    words = statement.split(" ")
    first = 3 if words[0] == "EXPLAIN" else 2
    for number in range(first, len(words)):
        before, following = " ".join(words[:number]), words[number]
        last = words[number - 1]
        # A name may continue after any part, and a table may be called table.
        if following == "." or last == "TABLE":
            continue
        for wrong, found, column in (("", "its end", 1), (" @", "'@'", 2), (" ''", "\"''\"", 2)):
            if wrong == "" and is_complete(before):
                continue
            if wrong == " ''" and last in ("=", "k", "l", "m", "'k'", "INDEX"):
                continue  # an empty string is a value
            if wrong and last == "WHERE":
                continue
            with pytest.raises(StatementInvalid) as caught:
                parse_statement(before + wrong)
            message = caught.value.message
            expected, _, place = message.partition(" expected at ")
            position = f"line 1, column {len(before) + column} of the statement, found {found}"
            assert place.startswith(position), message
            kinds = [kind for kind in KINDS if following in KINDS[kind]]
            assert any(kind.lower() in expected.lower() for kind in [following, *kinds]), message


def is_complete(query):
    """Whether the statement is valid as it is."""
    try:
        parse_statement(query)
    except StatementInvalid:
        return False
    return True


def test_the_parser_of_spark_knows_the_same_first_words():
    java = (Path(__file__).resolve().parents[2] / _JAVA).read_text()
    listed = re.findall(r'List\.of\(("[^)]*")\)', java)
    words = {tuple(re.findall(r'"(\w+)"', each)) for each in listed}
    assert words == {*statements.STATEMENTS, EXPLAIN, EXPLAIN_ANALYZE}
