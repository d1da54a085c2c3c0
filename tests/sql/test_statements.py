"""Every index statement end to end, on real Hudi tables, by name and by path."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from hudi_index_service import open_table
from hudi_index_service.errors import (
    BuildNotFound,
    IndexDefinitionInvalid,
    IndexExists,
    IndexNotFound,
    NotAHudiTable,
    StatementInvalid,
    TableNotFound,
)
from hudi_index_service.index.metadata.build_records import BuildRecords
from tests.hudi_tables import run_clustering

pytestmark = pytest.mark.fast

INDEXES = ["index_name", "index_type", "col_name", "options", "created", "managed_by"]
ENTRIES = [
    *("build_id", "index_type", "base_file", "columns", "status"),
    *("row_count", "index_bytes", "seconds", "error"),
]
DROPPED = ["index_name", "dropped", "not_purged"]
INDEXING = [
    *("index_name", "index_type", "base_files", "covered", "index_bytes", "builds"),
    *("due", "lag_instants", "lag_seconds", "partitions", "outliving_entries", "outliving_bytes"),
]
BUILD = [
    *("build_id", "state", "strategy", "started", "finished", "host", "pid", "due", "built"),
    *("failed", "seconds", "stopped_by", "cancel_requested", "files", "files_done", "row_count"),
    *("rows_done", "rows_per_second", "eta_seconds", "error", "entries"),
]


def test_create_optimize_show_and_drop(session, messages):
    """Each statement names the table in another way."""
    by_name, by_path = messages.name, f"'{messages}'"
    in_database, as_hudis = f"`spark_catalog`.default.`{by_name}`", f"hudi.`{messages}`"
    before = datetime.now(UTC)
    created = session.sql(
        f"CREATE INDEX by_msg ON {in_database} "
        "USING lucene (msg OPTIONS(analyzer='standard'), AMOUNT);"
    )
    assert created.columns == INDEXES
    (row,) = created.collect()
    assert row[:4] == ("by_msg", "lucene", "msg,amount", {"msg": {"analyzer": "standard"}})
    # Stored in milliseconds.
    assert before - timedelta(milliseconds=1) < row.created.astimezone(UTC) <= datetime.now(UTC)
    assert row.managed_by == "index service"

    for reference in (by_name, in_database, by_path, as_hudis):
        assert session.sql(f"SHOW INDEXES FROM {reference}").collect() == [row]

    due = session.sql(f"OPTIMIZE TABLE {as_hudis} STRATEGY ALL DRY RUN")
    assert due.columns == ENTRIES
    assert [(r.build_id, r.status, r.row_count) for r in due.collect()] == [(None, "due", None)] * 2

    built = session.sql(f"OPTIMIZE TABLE {by_path} STRATEGY ALL")
    assert built.columns == ENTRIES
    entries = sorted(built.collect(), key=lambda entry: entry.base_file)
    assert [(r.build_id, r.columns, r.status, r.row_count, r.error) for r in entries] == [
        ("000001", ["amount", "msg"], "built", 10, None)
    ] * 2
    assert [r.base_file.split("/")[0] for r in entries] == ["2026-01-01", "2026-01-02"]
    assert all(r.index_bytes > 0 and r.seconds > 0 for r in entries)

    indexing = session.sql(f"SHOW INDEXING {by_name}")
    assert indexing.columns == INDEXING
    (status,) = indexing.collect()
    assert status[:4] == ("by_msg", "lucene", 2, 2)
    assert status.index_bytes == sum(r.index_bytes for r in entries)
    (build,) = status.builds
    assert (build.build_id, build.state, build.strategy) == ("000001", "finished", "all")
    assert (build.due, build.built, build.failed) == (2, 2, 0)
    assert build.started <= build.finished

    with open_table(messages) as table:
        found = table.scan("msg = 'Buying car 3'", columns=["id"], use_index="require").to_arrow()
    assert sorted(found["id"].to_pylist()) == ["10", "17", "3"]

    dropped = session.sql(f"DROP INDEX by_msg ON {as_hudis}")
    assert dropped.columns == DROPPED
    assert [tuple(r) for r in dropped.collect()] == [("by_msg", True, None)]
    assert session.sql(f"SHOW INDEXES IN TABLE {by_name}").collect() == []


def test_empty_results_have_their_columns(session, messages):
    indexes = session.sql(f"SHOW INDEXES FROM {messages.name}")
    entries = session.sql(f"OPTIMIZE TABLE {messages.name}")
    indexing = session.sql(f"SHOW INDEXING {messages.name}")
    assert (indexes.columns, indexes.collect()) == (INDEXES, [])
    assert (entries.columns, entries.collect()) == (ENTRIES, [])
    assert (indexing.columns, indexing.collect()) == (INDEXING, [])


def test_if_not_exists_returns_the_existing_definition(session, messages):
    create = f"ON {messages.name} USING lucene"
    first = session.sql(f"CREATE INDEX by_id {create} (id)").collect()
    assert session.sql(f"CREATE INDEX IF NOT EXISTS by_id {create} (msg)").collect() == first
    with pytest.raises(IndexExists):
        session.sql(f"CREATE INDEX by_id {create} (msg)")


def test_drop_with_purge_removes_the_entries(session, messages):
    session.sql(f"CREATE INDEX by_id ON {messages.name} USING lucene (id)")
    session.sql(f"OPTIMIZE TABLE {messages.name} STRATEGY ALL")
    entries = messages / ".hoodie" / ".index" / "lucene"
    assert len(list(entries.rglob("manifest-*.json"))) == 2
    dropped = session.sql(f"DROP INDEX by_id ON {messages.name} PURGE").collect()
    assert [tuple(row) for row in dropped] == [("by_id", True, [])]
    assert list(entries.rglob("manifest-*.json")) == []


def test_refresh_rebuilds_an_altered_index(session, messages):
    session.sql(f"CREATE INDEX by_id ON {messages.name} USING lucene (id, amount)")
    refresh = f"REFRESH INDEX by_id ON TABLE {messages.name}"
    assert session.sql(refresh).collect() == [], "there is no entry, and no table service ran"
    session.sql(f"OPTIMIZE TABLE {messages.name} STRATEGY ALL")

    altered = session.sql(
        f"ALTER INDEX by_id ON {messages.name} ADD (msg OPTIONS(analyzer='simple')) DROP (AMOUNT)"
    )

    assert altered.columns == INDEXES
    (row,) = altered.collect()
    assert row[:4] == ("by_id", "lucene", "id,msg", {"msg": {"analyzer": "simple"}})
    assert session.sql(f"SHOW INDEXES FROM {messages.name}").collect() == [row]
    refreshed = session.sql(refresh)
    assert refreshed.columns == ENTRIES
    assert [(r.status, r.columns) for r in refreshed.collect()] == [("built", ["id", "msg"])] * 2
    assert session.sql(refresh).collect() == []
    session.sql(f"ALTER INDEX by_id ON {messages.name} SET (msg) RENAME TO other")
    assert session.sql(f"OPTIMIZE TABLE {messages.name} STRATEGY REFRESH DRY RUN").count() == 2
    with pytest.raises(IndexNotFound, match="by_id"):
        session.sql(f"ALTER INDEX by_id ON {messages.name} DROP (id)")


def test_options_of_the_statement_apply_to_all_columns(session, messages):
    session.sql(
        f"CREATE INDEX by_msg ON {messages.name} USING lucene (msg OPTIONS(analyzer='simple'))"
    )

    (row,) = session.sql(
        f"ALTER INDEX by_msg ON {messages.name} ADD (dt OPTIONS(analyzer='simple')) "
        "SET OPTIONS(analyzer='standard', ranked=true)"
    ).collect()

    # As in CREATE INDEX, the statement's options apply to every column, and a column's own options
    # in the same statement override them. Earlier options of a column are replaced.
    assert row.options == {
        "msg": {"analyzer": "standard", "ranked": "true"},
        "dt": {"analyzer": "simple", "ranked": "true"},
    }
    alter = f"ALTER INDEX by_msg ON {messages.name}"
    with pytest.raises(IndexDefinitionInvalid, match="Nothing about index by_msg would change"):
        session.sql(f"{alter} SET OPTIONS(ranked='true')")
    with pytest.raises(IndexDefinitionInvalid, match="'colour'"):
        session.sql(f"{alter} SET OPTIONS(colour='red')")
    (row,) = session.sql(f"{alter} SET (dt)").collect()
    assert row.options == {"msg": {"analyzer": "standard", "ranked": "true"}}


def test_show_and_cancel_a_build(session, messages):
    name, path = f"spark_catalog.default.`{messages.name}`", f"hudi.`{messages}`"
    session.sql(f"CREATE INDEX by_id ON {name} USING lucene (id)")
    nothing = session.sql(f"CANCEL INDEXING '{messages}'")
    assert nothing.columns == ["build_id", "requested"]
    assert [tuple(row) for row in nothing.collect()] == [(None, False)]
    with pytest.raises(BuildNotFound, match="000001"):
        session.sql(f"SHOW INDEXING {name} BUILD '000001'")

    session.sql(f"OPTIMIZE TABLE {path} STRATEGY ALL")

    shown = session.sql(f"SHOW INDEXING {path} BUILD 1")
    assert shown.columns == BUILD
    (build,) = shown.collect()
    assert (build.build_id, build.state, build.strategy) == ("000001", "finished", "all")
    assert (build.due, build.built, build.failed, build.files_done) == (2, 2, 0, 2)
    assert (build.pid, build.cancel_requested, build.error) == (os.getpid(), False, None)
    assert sorted((e.base_file[:10], e.status, e.row_count) for e in build.entries) == [
        ("2026-01-01", "built", 10),
        ("2026-01-02", "built", 10),
    ]

    # Another build, as if another process were running it.
    with open_table(messages) as table:
        BuildRecords(table.hudi_table.storage, stale_seconds=600).start({"due": 2})
    cancelled = session.sql(f"CANCEL INDEXING TABLE {name}").collect()
    assert [tuple(row) for row in cancelled] == [("000002", True)]
    (build,) = session.sql(f"SHOW INDEXING {name} BUILD '000002'").collect()
    assert (build.state, build.cancel_requested, build.files, build.entries) == (
        *("running", True, None),
        [],
    )


def test_drop_by_columns(session, messages):
    session.sql(f"CREATE INDEX one ON {messages.name} USING lucene (id)")
    session.sql(f"CREATE INDEX two ON {messages.name} USING lucene (id, msg)")
    session.sql(f"OPTIMIZE TABLE {messages.name} STRATEGY ALL")

    dropped = session.sql(f"DROP INDEX ON {messages.name} (id) PURGE")

    assert dropped.columns == DROPPED
    assert [tuple(row) for row in dropped.collect()] == [("one", True, []), ("two", False, [])]
    assert [r.col_name for r in session.sql(f"SHOW INDEXES FROM {messages.name}").collect()] == [
        "msg"
    ]
    (status,) = session.sql(f"SHOW INDEXING {messages.name}").collect()
    assert (status.index_name, status.covered) == ("two", 2)
    with pytest.raises(IndexNotFound, match="column amount"):
        session.sql(f"DROP INDEX ON {messages.name} (amount)")


@pytest.mark.slow
def test_optimize_builds_what_clustering_wrote(session, messages):
    session.sql(f"CREATE INDEX by_id ON {messages.name} USING lucene (id)")
    assert session.sql(f"OPTIMIZE TABLE {messages.name} STRATEGY INCREMENTAL").collect() == []
    run_clustering(session.spark, messages)
    built = session.sql(f"OPTIMIZE TABLE {messages.name}").collect()
    assert [(r.status, r.row_count) for r in built] == [("built", 10), ("built", 10)]


def test_table_name_in_the_current_database(session, messages):
    session.spark.sql("CREATE DATABASE other")
    session.spark.sql(f"CREATE TABLE other.copy USING hudi LOCATION '{messages}'")
    session.spark.sql("USE other")
    try:
        session.sql("CREATE INDEX by_id ON copy USING lucene (id)")
        with pytest.raises(TableNotFound):
            session.sql(f"SHOW INDEXING {messages.name}")
    finally:
        session.spark.sql("USE default")
        session.spark.sql("DROP TABLE other.copy")
        session.spark.sql("DROP DATABASE other")
    assert [r.index_name for r in session.sql(f"SHOW INDEXING {messages.name}").collect()] == [
        "by_id"
    ]


STATEMENTS = [
    "CREATE INDEX i ON {} USING lucene (id)",
    "OPTIMIZE TABLE {}",
    "SHOW INDEXING {}",
    "SHOW INDEXING {} BUILD '000001'",
    "CANCEL INDEXING {}",
    "ALTER INDEX i ON {} SET OPTIONS(analyzer='simple')",
    "DROP INDEX i ON {} PURGE",
]


@pytest.mark.parametrize(
    "table",
    [
        *("nowhere", "no_database.nowhere", "no_catalog.default.nowhere", "'/no/such/folder'"),
        *("hudi.`/no/such/folder`", "hudi.nowhere"),
    ],
)
def test_unknown_table(session, table):
    for statement in STATEMENTS:
        with pytest.raises(TableNotFound):
            session.sql(statement.format(table))


def test_views_and_tables_of_other_formats_are_refused(session, messages, tmp_path):
    spark = session.spark
    plain = tmp_path / "plain"
    spark.sql(f"CREATE TABLE plain USING parquet LOCATION '{plain}' AS SELECT 1 AS id")
    spark.sql(f"CREATE VIEW seen AS TABLE {messages.name}")
    # Shadows the table, as in a query.
    spark.range(1).createTempView(messages.name)
    try:
        for table in ["plain", "seen", messages.name, f"'{plain}'"]:
            for statement in STATEMENTS:
                with pytest.raises(NotAHudiTable):
                    session.sql(statement.format(table))
    finally:
        spark.catalog.dropTempView(messages.name)
        spark.sql("DROP VIEW seen")
        spark.sql("DROP TABLE plain")


def test_syntax_error_prevents_any_change(session, messages):
    session.sql(f"CREATE INDEX i ON {messages.name} USING lucene (id)")
    with pytest.raises(StatementInvalid, match="line 2, column 1 "):
        session.sql(f"DROP INDEX i ON {messages.name}\nCASCADE")
    with pytest.raises(StatementInvalid, match="takes no parameters"):
        session.sql(f"DROP INDEX i ON {messages.name}", args={"a": 1})
    assert len(session.sql(f"SHOW INDEXES FROM {messages.name}").collect()) == 1
