"""`hudi-index init`: what it prints, when it asks, and what it defines and builds."""

import json
from pathlib import Path

import pytest
import typer

from hudi_index_service import open_table
from tests.golden.table import Golden
from tests.programs import Command


@pytest.fixture
def table(golden: Golden, tmp_path: Path) -> Path:
    return golden("names_of_cities").put(tmp_path / "table")


def test_without_a_terminal_it_only_proposes(table: Path, command: Command) -> None:
    printed = command("init", table, "--drop", "city").splitlines()

    assert printed[0].startswith(f"{table}: 1 base file, ")
    assert printed[1].startswith("btree    id (string): the record key. ")
    assert "no       city (string): left out as asked for." in printed
    assert "no       text (string): long texts, 512 bytes on average." in printed
    assert "Index by_value (btree) on id, name, amount." in printed
    assert printed[-2].startswith("To build this: time: about ")
    assert printed[-1] == (
        f"To define and build this: hudi-index init {table} --using btree --drop city --yes"
    )
    assert not (table / ".hoodie" / ".index").exists()


def test_with_yes_it_defines_and_builds(table: Path, command: Command) -> None:
    report = json.loads(
        command("init", table, "--yes", "--add", "text:analyzer=standard", "-o", "json")
    )

    assert [each["name"] for each in report["indexes"]] == ["by_value", "by_word"]
    assert (report["build"]["state"], report["build"]["built"]) == ("finished", 2)
    opened = open_table(table)
    assert opened.scan("name = 'name7'", use_index="require").count() == 1
    assert {each.definition.name: each.coverage for each in opened.status()} == {
        "by_value": 1.0,
        "by_word": 1.0,
    }

    assert command("init", table).splitlines()[-1] == "No index is proposed."


@pytest.mark.parametrize("agreed", [True, False])
def test_on_a_terminal_it_asks(
    agreed: bool, table: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_index_service.cli.advice.is_terminal", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda question, err: agreed)

    printed = command("init", table)

    assert printed.count("Index by_value (btree) on ") == 1
    assert ("1 due, 1 built, 0 failed" in printed) == agreed
    assert ("To define and build this: " in printed) != agreed
    assert len(open_table(table).indexes()) == agreed


def test_csv_lists_the_columns(table: Path, command: Command) -> None:
    lines = command("init", table, "-o", "csv").splitlines()
    assert lines[0] == "name,type,using,options,seconds,index_bytes,reason"
    assert lines[-1] == "ts,int64,,{},,,the same in all sampled rows"
