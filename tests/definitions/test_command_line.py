"""Definitions on the command line."""

import json

from hudi_index_service import IndexedTable
from hudi_index_service.index.metadata.build_records import BuildRecords
from hudi_index_service.sql.index_statements import indexes_result
from hudi_index_service.storage.store import Storage
from tests.programs import Command


def test_an_index_is_created_altered_refreshed_and_dropped(
    table: IndexedTable, command: Command
) -> None:
    uri = table.uri
    command("create", uri, "i", "amount", "msg")
    command("build", uri, "--strategy", "all")

    altered = command(
        *("alter", uri, "i", "--add", "id", "--drop", "amount"),
        *("--set", "msg:analyzer=standard", "--rename-to", "j"),
    )
    assert altered == "Index j (lucene) on msg, id.\n"
    assert "2 due" in command("refresh", uri, "j", "--dry-run")
    refreshed = json.loads(command("refresh", uri, "j", "-o", "json"))
    assert (refreshed["strategy"], refreshed["built"]) == ("refresh", 2)
    assert "0 due" in command("refresh", uri, "j")
    assert table.scan("msg LIKE '%car 3'", use_index="require").count() == 9

    assert command("drop", uri, "--column", "MSG") == "Index j (lucene) on id.\n"
    assert command("drop", uri, "j") == "Index j is dropped.\n"
    assert command("show", uri) == ""
    assert command("show", uri, "-o", "text").endswith("0 rows\n")


def test_an_index_can_have_several_types(table: IndexedTable, command: Command) -> None:
    created = command("create", table.uri, "i", "amount", "--using", "lucene", "--using", "btree")
    assert created.splitlines()[0] == "Index i (lucene, btree) on amount."
    assert json.loads(command("show", table.uri))["type"] == "lucene, btree"


def test_show_states_options_and_stored_columns(table: IndexedTable, command: Command) -> None:
    created = command("create", table.uri, "i", "msg:analyzer=standard", "--include", "amount")
    assert created.splitlines()[0] == "Index i (lucene) on msg, storing amount."

    [shown] = map(json.loads, command("show", table.uri).splitlines())

    assert (shown["columns"], shown["stored"]) == ("msg", "amount")
    assert shown["options"] == {
        "msg": {"analyzer": "standard", "stored": "true"},
        "amount": {"stored": "only"},
    }
    assert "Index i (lucene) on msg, storing amount:" in command("status", table.uri)
    [status] = json.loads(command("status", table.uri, "-o", "json"))["indexes"]
    assert (status["columns"], status["stored"]) == (["msg"], ["amount"])
    [row] = indexes_result(table.indexes()).rows
    assert row["col_name"] == "msg"
    command("build", table.uri, "--strategy", "all")
    scan = table.scan("msg = 'Buying car 3'", columns=["amount"])
    assert "stored   the values of" in str(scan.explain(analyze=True))


def test_columns_that_could_not_be_purged_are_reported(
    table: IndexedTable, command: Command
) -> None:
    table.create_index("i", ["amount"])
    table.create_index("j", ["msg"])
    table.build(strategy="all").raise_for_failures()
    running = BuildRecords(Storage(table.uri), stale_seconds=60).start({})
    running.beat()

    output = command("drop", table.uri, "j", "--purge", status=1)

    assert "Index j is dropped." in output
    assert output.count("still contains msg: Build 000002, started") == 2
    running.finish({})
    assert "removed, " in command("drop", table.uri, "j", "--purge")
    assert "removed, " in command("drop", table.uri, "i", "--purge")
