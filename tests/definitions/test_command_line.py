"""Definitions on the command line."""

import json

from typer.testing import CliRunner

from hudi_index_service import IndexedTable
from hudi_index_service.cli import app
from hudi_index_service.index.metadata.build_records import BuildRecords
from hudi_index_service.sql.index_statements import indexes_result
from hudi_index_service.storage.store import Storage


def run(*arguments: str, code: int = 0) -> str:
    """The output of a command, both streams."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def test_an_index_is_created_altered_refreshed_and_dropped(table: IndexedTable) -> None:
    uri = table.uri
    run("create", uri, "i", "amount", "msg")
    run("build", uri, "--strategy", "all")

    altered = run(
        *("alter", uri, "i", "--add", "id", "--drop", "amount"),
        *("--set", "msg:analyzer=standard", "--rename-to", "j"),
    )
    assert altered == "Index j (lucene) on msg, id.\n"
    assert "2 due" in run("refresh", uri, "j", "--dry-run")
    refreshed = json.loads(run("refresh", uri, "j", "-o", "json"))
    assert (refreshed["strategy"], refreshed["built"]) == ("refresh", 2)
    assert "0 due" in run("refresh", uri, "j")
    assert table.scan("msg LIKE '%car 3'", use_index="require").count() == 9

    assert run("drop", uri, "--column", "MSG") == "Index j (lucene) on id.\n"
    assert run("drop", uri, "j") == "Index j is dropped.\n"
    assert run("show", uri) == ""
    assert run("show", uri, "-o", "text").endswith("0 rows\n")


def test_an_index_can_have_several_types(table: IndexedTable, sorted_values: str) -> None:
    created = run("create", table.uri, "i", "amount", "--using", "lucene", "--using", sorted_values)
    assert created.splitlines()[0] == "Index i (lucene, sorted) on amount."
    assert json.loads(run("show", table.uri))["type"] == "lucene, sorted"


def test_show_states_options_and_stored_columns(table: IndexedTable) -> None:
    run("create", table.uri, "i", "msg:analyzer=standard", "--include", "amount")

    [shown] = map(json.loads, run("show", table.uri).splitlines())

    assert (shown["columns"], shown["stored"]) == ("msg", "amount")
    assert shown["options"] == {
        "msg": {"analyzer": "standard", "stored": "true"},
        "amount": {"stored": "only"},
    }
    assert "Index i (lucene) on msg, storing amount:" in run("status", table.uri)
    [status] = json.loads(run("status", table.uri, "-o", "json"))["indexes"]
    assert (status["columns"], status["stored"]) == (["msg"], ["amount"])
    [row] = indexes_result(table.indexes()).rows
    assert row["col_name"] == "msg"


def test_an_index_can_store_values(table: IndexedTable) -> None:
    created = run("create", table.uri, "i", "amount", "--include", "msg", "--include", "id")
    assert created.splitlines()[0] == "Index i (lucene) on amount, storing msg, id."
    run("build", table.uri, "--strategy", "all")
    scan = table.scan("amount = 3.0", columns=["msg", "id"])
    assert "stored   the values of" in str(scan.explain(analyze=True))


def test_columns_that_could_not_be_purged_are_reported(table: IndexedTable) -> None:
    table.create_index("i", ["amount"])
    table.create_index("j", ["msg"])
    table.build(strategy="all").raise_for_failures()
    running = BuildRecords(Storage(table.uri), stale_seconds=60).start({})
    running.beat()

    output = run("drop", table.uri, "j", "--purge", code=1)

    assert "Index j is dropped." in output
    assert output.count("still contains msg: Build 000002, started") == 2
    running.finish({})
    assert "removed, " in run("drop", table.uri, "j", "--purge")
    assert "removed, " in run("drop", table.uri, "i", "--purge")
