"""alter_index: what changes, what entries built before still serve, and what is refused."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.definitions import (
    DEFINITIONS_FOLDER,
    DefinitionStore,
    IndexDefinition,
    SeenTimeline,
)
from hudi_index_service.errors import (
    ColumnNotFound,
    ColumnNotIndexable,
    IndexChanged,
    IndexDefinitionInvalid,
    IndexExists,
    IndexNotFound,
)
from hudi_index_service.storage import Storage
from tests.definitions.entries import index_files

ANALYSED = {"analyzer": "standard"}


def names(definition: IndexDefinition) -> list[str]:
    return [column.name for column in definition.columns]


def test_columns_are_added_dropped_and_get_other_options(table: IndexedTable) -> None:
    first = table.create_index("i", ["amount", "msg"])

    changed = table.alter_index("i", add=["TS"], drop=["Amount"], options={"MSG": ANALYSED})

    assert changed.columns == (Column(name="msg", options=ANALYSED), Column(name="ts"))
    assert (changed.version, changed.created, changed.seen) == (2, first.created, first.seen)
    assert table.indexes() == (changed,)
    again = table.alter_index("i", add=[Column(name="msg"), "amount"])
    assert again.columns == (Column(name="msg"), Column(name="ts"), Column(name="amount"))
    assert open_table(table.uri).indexes() == (again,)


def test_columns_that_still_match_serve_from_old_entries(table: IndexedTable) -> None:
    table.create_index("i", ["amount", "msg"])
    table.build(strategy="all").raise_for_failures()
    built = index_files(table)

    table.alter_index("i", add=["ts"], drop=["amount"])

    assert table.scan("msg = 'Buying car 3'", use_index="require").count() == 9
    assert not table.scan("amount = 30").explain().uses_index
    assert table.scan("amount = 30").count() == 1
    assert table.scan("ts = 0").count() == 60
    assert index_files(table) == built


def test_an_option_that_adds_a_field_asks_for_a_refresh(table: IndexedTable) -> None:
    """Of an analysed column an entry must hold words and keyword: until it is refreshed, the
    column is scanned, the others serve."""
    table.create_index("i", ["amount", "msg"])
    table.build(strategy="all").raise_for_failures()

    table.alter_index("i", options={"msg": ANALYSED})

    assert table.scan("amount = 30", use_index="require").count() == 1
    assert table.scan("msg = 'Buying car 3' AND amount = 9", use_index="require").count() == 1
    assert table.scan("msg LIKE '%car 3'").count() == 9
    table.refresh("i").raise_for_failures()
    assert table.scan("msg LIKE '%car 3'", use_index="require").count() == 9


def test_an_option_that_takes_a_field_away_changes_nothing_for_queries(table: IndexedTable) -> None:
    table.create_index("i", [Column(name="msg", options=ANALYSED)])
    table.build(strategy="all").raise_for_failures()

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


def test_a_rename_can_change_columns_as_well_and_take_an_old_name(table: IndexedTable) -> None:
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
        ({"options": {"id": ANALYSED}}, ColumnNotFound, "Index i has no column id"),
        ({"drop": ["amount"], "options": {"amount": {}}}, ColumnNotFound, "no column amount"),
        ({"drop": ["amount", "msg"]}, IndexDefinitionInvalid, "left without a column"),
        ({"add": ["amount"]}, IndexDefinitionInvalid, "has column amount already"),
        ({"add": ["ts", "TS"]}, IndexDefinitionInvalid, "names column ts twice"),
        ({"add": ["amount"], "drop": ["amount"]}, IndexDefinitionInvalid, "amount twice"),
        ({"drop": ["amount", "AMOUNT"]}, IndexDefinitionInvalid, "amount twice"),
        ({"options": {"amount": ANALYSED}}, IndexDefinitionInvalid, "only string columns"),
        ({"options": {"msg": {"colour": "red"}}}, IndexDefinitionInvalid, "'colour'"),
        ({}, IndexDefinitionInvalid, "Nothing about index i would change"),
        ({"rename_to": "i"}, IndexDefinitionInvalid, "Nothing about index i would change"),
        ({"rename_to": "taken"}, IndexExists, "has an index named taken"),
        ({"rename_to": "a b"}, IndexDefinitionInvalid, "'a b' cannot name an index"),
        ({"add": ["tags"]}, ColumnNotFound, "no column 'tags'"),
    ],
)
def test_what_is_refused_changes_nothing(
    table: IndexedTable, change: Mapping[str, Any], error: type[Exception], message: str
) -> None:
    table.create_index("i", ["amount", "msg"])
    table.create_index("taken", ["ts"])
    before = table.indexes()

    with pytest.raises(error, match=message):
        table.alter_index("i", **change)

    assert table.indexes() == before


def test_an_unknown_index(table: IndexedTable) -> None:
    with pytest.raises(IndexNotFound, match="no index named i"):
        table.alter_index("i", add=["amount"])


def test_a_type_that_cannot_hold_the_column(table: IndexedTable, sorted_values: str) -> None:
    table.create_index("i", ["amount"], using=sorted_values)
    with pytest.raises(ColumnNotIndexable, match="msg has type string"):
        table.alter_index("i", add=["msg"])


class Interfering(Storage):
    """Does something of somebody else's just before a document is created."""

    before: Callable[[str], None] = staticmethod(lambda path: None)

    def create(self, path: str, data: bytes | Path) -> None:
        self.before(path)
        super().create(path, data)


@pytest.fixture
def storage(tmp_path: Path) -> Interfering:
    return Interfering(tmp_path)


@pytest.fixture
def other(storage: Interfering) -> DefinitionStore:
    """Somebody else."""
    return DefinitionStore(Storage(storage.uri))


@pytest.fixture
def made(other: DefinitionStore) -> IndexDefinition:
    seen = SeenTimeline(start="1", instants=("1",))
    return other.create("i", ("lucene",), [Column(name="a")], seen)


def once(storage: Interfering, at: str, do: Callable[[], object]) -> None:
    """Lets `do` happen before the creation of the definition file `at`."""

    def before(path: str) -> None:
        if path == f"{DEFINITIONS_FOLDER}/{at}":
            storage.before = lambda path: None
            do()

    storage.before = before


def test_the_loser_of_a_race_is_told(
    storage: Interfering, other: DefinitionStore, made: IndexDefinition
) -> None:
    winner = [Column(name="a"), Column(name="b")]
    once(storage, "i-0002.json", lambda: other.change(made, winner))

    with pytest.raises(IndexChanged, match="Index i was changed by somebody else"):
        DefinitionStore(storage).change(made, [Column(name="c")])

    assert [each.columns for each in other.live()] == [tuple(winner)]


def test_a_rename_that_loses_a_race_leaves_the_new_name_free(
    storage: Interfering, other: DefinitionStore, made: IndexDefinition
) -> None:
    winner = [Column(name="a"), Column(name="b")]
    once(storage, "i-0002.json", lambda: other.change(made, winner))

    with pytest.raises(IndexChanged):
        DefinitionStore(storage).rename(made, "j", made.columns)

    assert [(each.name, each.columns) for each in other.live()] == [("i", tuple(winner))]


def test_two_renames_at_once_make_one_index(
    storage: Interfering, other: DefinitionStore, made: IndexDefinition
) -> None:
    once(storage, "i-0002.json", lambda: other.rename(made, "k", made.columns))

    with pytest.raises(IndexChanged):
        DefinitionStore(storage).rename(made, "j", made.columns)

    assert [each.name for each in other.live()] == ["k"]


def test_a_name_taken_at_the_same_moment(
    storage: Interfering, other: DefinitionStore, made: IndexDefinition
) -> None:
    columns = [Column(name="z")]
    once(storage, "j-0001.json", lambda: other.create("j", ("lucene",), columns, made.seen))

    with pytest.raises(IndexExists, match="made at the same moment"):
        DefinitionStore(storage).rename(made, "j", made.columns)

    assert [(each.name, names(each)) for each in other.live()] == [("i", ["a"]), ("j", ["z"])]


def test_dropping_wins_over_a_change_at_the_same_moment(
    storage: Interfering, other: DefinitionStore, made: IndexDefinition
) -> None:
    once(storage, "i-0002.json", lambda: other.change(made, [Column(name="b")]))

    assert names(DefinitionStore(storage).drop("i")) == ["b"]

    assert other.live() == ()


class Killed(BaseException):
    """The process ends here."""


def test_a_rename_killed_half_way_loses_nothing_and_is_finished_by_the_same_call(
    storage: Interfering, other: DefinitionStore, made: IndexDefinition
) -> None:
    def kill() -> None:
        raise Killed

    once(storage, "i-0002.json", kill)
    with pytest.raises(Killed):
        DefinitionStore(storage).rename(made, "j", made.columns)
    assert [(each.name, names(each)) for each in other.live()] == [("i", ["a"]), ("j", ["a"])]

    renamed = other.rename(made, "j", made.columns)

    assert other.live() == (renamed,)
    assert (renamed.name, renamed.version) == ("j", 1)


def test_both_names_of_a_rename_killed_half_way_answer_right(
    table: IndexedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.create_index("i", ["amount"])
    table.build(strategy="all").raise_for_failures()
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
