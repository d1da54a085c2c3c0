"""alter_index: what changes, which existing entries remain usable, and what is refused."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.errors import (
    ColumnNotFound,
    ColumnNotIndexable,
    IndexChanged,
    IndexDefinitionInvalid,
    IndexExists,
    IndexNotFound,
)
from hudi_index_service.index.metadata.definitions import (
    DEFINITIONS_FOLDER,
    DefinitionStore,
    IndexDefinition,
    SeenTimeline,
)
from hudi_index_service.storage.store import Storage
from tests.definitions.entries import index_files
from tests.indexed import OwnTable, indexed

ANALYZED = {"analyzer": "standard"}


def names(definition: IndexDefinition) -> list[str]:
    return [column.name for column in definition.columns]


def test_columns_and_options_can_be_changed(table: IndexedTable) -> None:
    first = table.create_index("i", ["amount", "msg"])

    changed = table.alter_index("i", add=["TS"], drop=["Amount"], options={"MSG": ANALYZED})

    assert changed.columns == (Column(name="msg", options=ANALYZED), Column(name="ts"))
    assert (changed.version, changed.created, changed.seen) == (2, first.created, first.seen)
    assert table.indexes() == (changed,)
    again = table.alter_index("i", add=[Column(name="msg"), "amount"])
    assert again.columns == (Column(name="msg"), Column(name="ts"), Column(name="amount"))
    assert open_table(table.uri).indexes() == (again,)


def test_unchanged_columns_use_existing_entries(table: IndexedTable) -> None:
    indexed(table, ["amount", "msg"])
    built = index_files(table)

    table.alter_index("i", add=["ts"], drop=["amount"])

    assert table.scan("msg = 'Buying car 3'", use_index="require").count() == 9
    assert not table.scan("amount = 30").explain().uses_index
    assert table.scan("amount = 30").count() == 1
    assert table.scan("ts = 0").count() == 60
    assert index_files(table) == built


def test_an_option_that_adds_a_field_needs_a_refresh(table: IndexedTable) -> None:
    """An entry of an analyzed column needs both words and keyword: until it is refreshed, that
    column is scanned, and the others use the index."""
    indexed(table, ["amount", "msg"])

    table.alter_index("i", options={"msg": ANALYZED})

    assert table.scan("amount = 30", use_index="require").count() == 1
    assert table.scan("msg = 'Buying car 3' AND amount = 9", use_index="require").count() == 1
    assert table.scan("msg LIKE '%car 3'").count() == 9
    table.refresh("i").raise_for_failures()
    assert table.scan("msg LIKE '%car 3'", use_index="require").count() == 9


def test_removing_a_field_by_option_keeps_entries_usable(table: IndexedTable) -> None:
    indexed(table, [Column(name="msg", options=ANALYZED)])

    table.alter_index("i", options={"msg": {}})

    assert table.scan("msg = 'Buying car 3'", use_index="require").count() == 9


def test_a_renamed_index_keeps_its_entries(table: IndexedTable) -> None:
    before = table.create_index("i", ["amount"])
    table.build(strategy="all").raise_for_failures()
    built = index_files(table)

    renamed = table.alter_index("i", rename_to="by_amount")

    assert (renamed.columns, renamed.seen, renamed.created) == (
        before.columns,
        before.seen,
        before.created,
    )
    assert table.indexes() == (renamed,)
    assert table.scan("amount = 30", use_index="require").count() == 1
    assert table.build(strategy="all").due == ()
    assert table.refresh("by_amount").due == ()
    table.clean()
    assert index_files(table) == built
    with pytest.raises(IndexNotFound, match="no index named i"):
        table.refresh("i")


def test_a_rename_can_change_columns_and_reuse_a_dropped_name(table: IndexedTable) -> None:
    table.create_index("old", ["ts"])
    table.drop_index("old")
    table.create_index("i", ["amount"])

    renamed = table.alter_index("i", rename_to="old", add=["msg"], drop=["amount"])

    assert (renamed.name, renamed.version, names(renamed)) == ("old", 3, ["msg"])
    assert table.indexes() == (renamed,)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"add": ["nothing"]}, ColumnNotFound, "no column 'nothing'"),
        ({"drop": ["id"]}, ColumnNotFound, "Index i has no column id"),
        ({"options": {"id": ANALYZED}}, ColumnNotFound, "Index i has no column id"),
        ({"drop": ["amount"], "options": {"amount": {}}}, ColumnNotFound, "no column amount"),
        ({"drop": ["amount", "msg"]}, IndexDefinitionInvalid, "left without an indexed column"),
        ({"add": ["amount"]}, IndexDefinitionInvalid, "has column amount already"),
        ({"add": ["ts", "TS"]}, IndexDefinitionInvalid, "names column ts twice"),
        ({"add": ["amount"], "drop": ["amount"]}, IndexDefinitionInvalid, "amount twice"),
        ({"drop": ["amount", "AMOUNT"]}, IndexDefinitionInvalid, "amount twice"),
        ({"options": {"amount": ANALYZED}}, IndexDefinitionInvalid, "only string columns"),
        ({"options": {"msg": {"colour": "red"}}}, IndexDefinitionInvalid, "'colour'"),
        ({}, IndexDefinitionInvalid, "Nothing about index i would change"),
        ({"rename_to": "i"}, IndexDefinitionInvalid, "Nothing about index i would change"),
        ({"rename_to": "taken"}, IndexExists, "has an index named taken"),
        ({"rename_to": "a b"}, IndexDefinitionInvalid, "'a b' cannot name an index"),
        ({"add": ["tags"]}, ColumnNotFound, "no column 'tags'"),
    ],
)
def test_a_refused_change_leaves_definitions_unchanged(
    table: IndexedTable, change: Mapping[str, Any], error: type[Exception], message: str
) -> None:
    table.create_index("i", ["amount", "msg"])
    table.create_index("taken", ["ts"])
    before = table.indexes()

    with pytest.raises(error, match=message):
        table.alter_index("i", **change)

    assert table.indexes() == before


def test_a_column_of_an_unsupported_type_is_refused(own_table: OwnTable) -> None:
    table = own_table("names_of_cities", ["name"], using="btree", build=False)
    with pytest.raises(ColumnNotIndexable, match="odd"):
        table.alter_index("i", add=["odd"])


class Interfering(Storage):
    """Calls `before` just before a document is created, to interfere concurrently."""

    before: Callable[[str], None] = staticmethod(lambda path: None)

    def create(self, path: str, data: bytes | Path) -> None:
        self.before(path)
        super().create(path, data)


@pytest.fixture
def storage(tmp_path: Path) -> Interfering:
    return Interfering(tmp_path)


@pytest.fixture
def other(storage: Interfering) -> DefinitionStore:
    """A concurrent client's store."""
    return DefinitionStore(Storage(storage.uri))


@pytest.fixture
def created(other: DefinitionStore) -> IndexDefinition:
    seen = SeenTimeline(start="1", instants=("1",))
    return other.create("i", ("lucene",), [Column(name="a")], seen)


def once(storage: Interfering, at: str, do: Callable[[], object]) -> None:
    """Calls `do` before the definition file `at` is created, once."""

    def before(path: str) -> None:
        if path == f"{DEFINITIONS_FOLDER}/{at}":
            storage.before = lambda path: None
            do()

    storage.before = before


def test_the_loser_of_a_race_gets_an_error(
    storage: Interfering, other: DefinitionStore, created: IndexDefinition
) -> None:
    winner = [Column(name="a"), Column(name="b")]
    once(storage, "i-0002.json", lambda: other.change(created, winner))

    with pytest.raises(IndexChanged, match="Index i was changed concurrently"):
        DefinitionStore(storage).change(created, [Column(name="c")])

    assert [each.columns for each in other.live()] == [tuple(winner)]


@pytest.mark.parametrize("winner", ["change", "rename"])
def test_a_rename_that_loses_a_race_leaves_the_new_name_free(
    storage: Interfering, other: DefinitionStore, created: IndexDefinition, winner: str
) -> None:
    columns = [Column(name="a"), Column(name="b")]
    won = {
        "change": lambda: other.change(created, columns),
        "rename": lambda: other.rename(created, "k", columns),
    }
    once(storage, "i-0002.json", won[winner])

    with pytest.raises(IndexChanged):
        DefinitionStore(storage).rename(created, "j", created.columns)

    name = {"change": "i", "rename": "k"}[winner]
    assert [(each.name, each.columns) for each in other.live()] == [(name, tuple(columns))]


def test_a_rename_to_a_name_taken_concurrently_is_refused(
    storage: Interfering, other: DefinitionStore, created: IndexDefinition
) -> None:
    columns = [Column(name="z")]
    once(storage, "j-0001.json", lambda: other.create("j", ("lucene",), columns, created.seen))

    with pytest.raises(IndexExists, match="just created concurrently"):
        DefinitionStore(storage).rename(created, "j", created.columns)

    assert [(each.name, names(each)) for each in other.live()] == [("i", ["a"]), ("j", ["z"])]


def test_dropping_wins_over_a_concurrent_change(
    storage: Interfering, other: DefinitionStore, created: IndexDefinition
) -> None:
    once(storage, "i-0002.json", lambda: other.change(created, [Column(name="b")]))

    assert names(DefinitionStore(storage).drop("i")) == ["b"]

    assert other.live() == ()


class Killed(BaseException):
    """Stands for the end of the process."""


def test_an_interrupted_rename_is_completed_by_repeating_it(
    storage: Interfering, other: DefinitionStore, created: IndexDefinition
) -> None:
    def kill() -> None:
        raise Killed

    once(storage, "i-0002.json", kill)
    with pytest.raises(Killed):
        DefinitionStore(storage).rename(created, "j", created.columns)
    assert [(each.name, names(each)) for each in other.live()] == [("i", ["a"]), ("j", ["a"])]

    renamed = other.rename(created, "j", created.columns)

    assert other.live() == (renamed,)
    assert (renamed.name, renamed.version) == ("j", 1)


def test_both_names_of_an_interrupted_rename_use_the_entries(
    table: IndexedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed(table, ["amount"])
    built = index_files(table)
    create = Storage.create

    def killed(self: Storage, path: str, data: bytes | Path) -> None:
        if path.endswith("/i-0002.json"):
            raise Killed
        create(self, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "create", killed)
        with pytest.raises(Killed):
            table.alter_index("i", rename_to="j")

    assert [each.name for each in table.indexes()] == ["i", "j"]
    assert table.scan("amount = 30", use_index="require").count() == 1
    assert table.build(strategy="all").due == ()
    table.drop_index("i")
    table.clean()
    assert table.scan("amount = 30", use_index="require").count() == 1
    assert index_files(table) == built
