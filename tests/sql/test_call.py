"""CALL runs Hudi's procedures, and the index follows after a table service."""

from decimal import Decimal

import pytest
from py4j.protocol import Py4JJavaError

from hudi_index_service import open_table
from hudi_index_service.errors import StatementInvalid
from hudi_index_service.sql.call import call_statement, serviced_table
from hudi_index_service.sql.grammar import TableName, TablePath
from tests.hudi_tables import hudi_options, numbered_rows, write
from tests.indexed import covered

NASTY = [
    "it's",
    "'; DROP TABLE t; --",
    "a\\",
    "\\' OR 1=1",
    "x', path => '/etc",
    'double "quotes" and `ticks`',
    "line\nbreak\ttab\r",
    "nul\0nul",
    "100% _under_ ${var} :name ? {t}",
    "žluťoučký 馬 🐎",
    "",
]


def test_clustering_by_name_builds_entries_for_the_new_files(session, messages):
    open_table(messages).create_index("by_msg", ["msg"])

    result = session.call("run_clustering", table=messages.name, op="scheduleAndExecute")

    assert "timestamp" in result.columns
    assert len(result.collect()) == 1
    assert covered(messages) == 2
    assert open_table(messages).scan("msg = 'Buying car 3'", use_index="require").count() == 3


def test_compaction_of_a_table_whose_path_contains_a_quote(session, spark, tmp_path):
    path = tmp_path / "it's a table"
    options = hudi_options("mor", "MERGE_ON_READ")
    write(numbered_rows(spark, 0, 20), path, options, "insert")
    write(numbered_rows(spark, 0, 20, version=1), path, options)
    open_table(path).create_index("by_msg", ["msg"])

    result = session.call(
        "run_compaction",
        op="scheduleAndExecute",
        path=str(path),
        options="hoodie.compact.inline.max.delta.commits=1",
    )

    assert len(result.collect()) == 1
    assert covered(path) == 1
    assert open_table(path).scan("amount = 31", use_index="never").count() == 1


def test_failed_build_does_not_hide_the_result(session, messages, caplog):
    open_table(messages).create_index("by_msg", ["msg"])
    builds = messages / ".hoodie" / ".index" / "_service" / "builds"
    builds.write_text("A file stands where the build's record has to go.")

    result = session.sql(f"CALL run_clustering(path => '{messages}', op => 'scheduleAndExecute');")

    assert len(result.collect()) == 1
    assert f"The build after the table service on {messages} failed: STORAGE_" in caplog.text


def test_other_procedures_are_passed_through_without_a_build(session, messages):
    open_table(messages).create_index("by_msg", ["msg"])

    commits = session.call("show_commits", table=messages.name, limit=5)

    assert [row.action for row in commits.collect()] == ["commit"]
    assert open_table(messages).builds() == []


def test_error_of_the_procedure_is_raised_without_a_build(session, messages):
    with pytest.raises(Py4JJavaError, match="not supported on a CopyOnWrite table"):
        session.call("run_compaction", op="scheduleAndExecute", table=messages.name)
    assert open_table(messages).builds() == []


@pytest.mark.parametrize("text", NASTY)
def test_argument_is_escaped_as_one_literal(spark, text):
    statement = call_statement("p", {"a": text})

    literal = statement.removeprefix("CALL p(a => ").removesuffix(")")
    assert spark.sql(f"SELECT {literal} AS value").first().value == text


def test_numbers_and_booleans_are_written_as_literals():
    arguments = {"n": -3, "yes": True, "d": Decimal("1.50"), "f": 1e-7}
    assert call_statement("db.p", arguments) == (
        "CALL db.p(n => -3, yes => true, d => 1.50, f => 0.0000001)"
    )


@pytest.mark.parametrize(
    ("procedure", "arguments"),
    [
        ("p(); DROP TABLE t", {}),
        ("", {}),
        ("p", {"a => 1, b": 2}),
        ("p", {"a": None}),
        ("p", {"a": float("nan")}),
        ("p", {"a": ["x"]}),
        ("p", {"a": Decimal("1e500000000")}),
        ("p", {"a": Decimal("1e-500000000")}),
        ("p", {"a": 10**5000}),
    ],
)
def test_invalid_procedure_names_and_arguments_are_refused(session, procedure, arguments):
    with pytest.raises(StatementInvalid):
        session.call(procedure, **arguments)


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("call run_clustering(table => 't', op => 'schedule')", TableName(("t",))),
        ("/* nightly */ CALL system.run_clustering ( 'db.t' ) ;", TableName(("db", "t"))),
        ("call run_compaction('run', 't')", TableName(("t",))),
        ("call run_compaction(op => 'run', path => '/a b')", TablePath("/a b")),
        ("call run_clustering(predicate => concat('a', 'b'), table => 't')", TableName(("t",))),
        ("call show_commits(table => 't')", None),
        ("call run_clustering(table => 1 + 1)", None),
        ("call run_clustering(table => 't'", None),
        ("call run_clustering(table => 't", None),
        ("call", None),
    ],
)
def test_table_is_found_in_a_call_statement(statement, table):
    assert serviced_table(statement) == table
