"""drop_index: by name, by columns, and with purge, which erases every byte."""

from pathlib import Path

import pytest

from hudi_index_service import Column, IndexedTable
from hudi_index_service.errors import ConfigInvalid, IndexNotFound
from hudi_index_service.hudi.snapshot import BaseFile, parse_path
from hudi_index_service.index.metadata.build_records import BuildRecords
from hudi_index_service.index.metadata.manifest import Manifest, entry_folder
from hudi_index_service.storage.store import Storage
from tests.build.entries import manifests
from tests.definitions.entries import columns, generations, index_files
from tests.edited_tables import make_unreadable
from tests.indexed import indexed


@pytest.fixture
def three(table: IndexedTable) -> IndexedTable:
    """Three indexes that share columns, built for all base files."""
    table.create_index("i", ["amount"])
    table.create_index("j", ["amount", "msg"])
    table.create_index("k", ["ts", "id"])
    table.build(strategy="all").raise_for_failures()
    return table


def test_an_index_is_dropped_by_name(three: IndexedTable) -> None:
    dropped = three.drop_index("j")

    assert [each.name for each in dropped.indexes] == ["j"]
    assert (dropped.narrowed, dropped.purge) == ((), None)
    assert [each.name for each in three.indexes()] == ["i", "k"]
    assert three.scan("amount = 30", use_index="require").count() == 1
    assert not three.scan("msg = 'Buying car 3'").explain().uses_index
    assert columns(three) == [["amount", "id", "msg", "ts"]] * 2


def test_columns_are_dropped_from_every_index(three: IndexedTable) -> None:
    """`i` has no other column, so the whole index is dropped."""
    dropped = three.drop_index(columns=["AMOUNT", "id"])

    assert [each.name for each in dropped.indexes] == ["i"]
    assert [(each.name, [c.name for c in each.columns]) for each in dropped.narrowed] == [
        ("j", ["msg"]),
        ("k", ["ts"]),
    ]
    assert three.indexes() == dropped.narrowed
    assert not three.scan("amount = 30").explain().uses_index
    assert three.scan("msg = 'Buying car 3'", use_index="require").count() == 9


def test_dropping_a_column_of_no_index_is_refused(three: IndexedTable) -> None:
    before = three.indexes()
    with pytest.raises(IndexNotFound, match="No index of the table has column dt"):
        three.drop_index(columns=["amount", "dt"])
    with pytest.raises(IndexNotFound, match="No index of the table has column dt"):
        three.drop_index(columns=["dt"])
    with pytest.raises(IndexNotFound, match="No index of the table has column nothing"):
        three.drop_index(columns=["nothing"], purge=True)
    assert three.indexes() == before


@pytest.mark.parametrize("arguments", [{}, {"name": "i", "columns": ["amount"]}, {"purge": True}])
def test_either_a_name_or_columns_must_be_given(
    three: IndexedTable, arguments: dict[str, object]
) -> None:
    with pytest.raises(ConfigInvalid, match="by its name, or by columns"):
        three.drop_index(**arguments)  # type: ignore[arg-type]


def bytes_below(table: IndexedTable) -> bytes:
    return b"".join(
        path.read_bytes() for path in Path(table.uri, ".hoodie/.index").rglob("*") if path.is_file()
    )


def test_purge_erases_columns_that_no_other_index_uses(three: IndexedTable) -> None:
    assert b"Buying car 3" in bytes_below(three)

    dropped = three.drop_index("j", purge=True)

    assert dropped.purge is not None
    assert dropped.purge.remaining == ()
    assert dropped.purge.build is not None
    assert len(dropped.purge.build.built) == 2
    assert columns(three) == [["amount", "id", "ts"]] * 2
    assert generations(three) == [2, 2]
    assert len(index_files(three)) == 4, "superseded generations are removed at once"
    assert b"Buying car" not in bytes_below(three)
    assert three.scan("amount = 30 AND ts = 0", use_index="require").count() == 1


def test_purge_by_columns(three: IndexedTable) -> None:
    dropped = three.drop_index(columns=["msg", "amount", "ts"], purge=True)

    assert [each.name for each in dropped.indexes] == ["i", "j"]
    assert columns(three) == [["id"]] * 2
    assert b"Buying car" not in bytes_below(three)


def test_purge_erases_fields_that_no_other_index_uses(table: IndexedTable) -> None:
    table.create_index("i", ["msg"])
    table.create_index("words", [Column(name="msg", options={"analyzer": "standard"})])
    table.build(strategy="all").raise_for_failures()

    table.drop_index("words", purge=True)

    assert [each.columns[0].fields for each in manifests(table.uri)] == [("keyword",)] * 2


def test_a_dropped_index_can_be_purged_later(three: IndexedTable) -> None:
    three.drop_index("j")
    assert b"Buying car" in bytes_below(three)

    dropped = three.drop_index("j", purge=True)

    assert dropped.indexes == ()
    assert b"Buying car" not in bytes_below(three)
    three.drop_index(columns=["amount"])
    three.drop_index(columns=["amount"], purge=True)
    assert columns(three) == [["id", "ts"]] * 2
    with pytest.raises(IndexNotFound, match="no index named never"):
        three.drop_index("never", purge=True)


def test_purge_during_a_build_reports_what_remains(three: IndexedTable) -> None:
    running = BuildRecords(Storage(three.uri), stale_seconds=60).start({"strategy": "all"})
    running.beat()

    dropped = three.drop_index("j", purge=True)

    assert dropped.purge is not None
    assert dropped.purge.build is None
    assert [each.columns for each in dropped.purge.remaining] == [("msg",), ("msg",)]
    assert all("works on" in each.reason for each in dropped.purge.remaining)
    assert [each.name for each in three.indexes()] == ["i", "k"]

    running.finish({})
    dropped = three.drop_index("j", purge=True)
    assert dropped.purge is not None
    assert dropped.purge.remaining == ()
    assert b"Buying car" not in bytes_below(three)


def test_purge_names_an_entry_that_cannot_be_rebuilt(three: IndexedTable) -> None:
    (manifest, other) = manifests(three.uri)
    base_file = Path(three.uri, manifest.base_file.path)
    repair = make_unreadable(base_file)

    dropped = three.drop_index("j", purge=True)

    assert dropped.purge is not None
    (remainder,) = dropped.purge.remaining
    assert (remainder.base_file, remainder.columns) == (manifest.base_file.path, ("msg",))
    assert remainder.reason
    repair()
    assert other.base_file.path != manifest.base_file.path
    dropped = three.drop_index("j", purge=True)
    assert dropped.purge is not None
    assert dropped.purge.remaining == ()
    assert columns(three) == [["amount", "id", "ts"]] * 2


def test_purge_removes_entries_of_base_files_outside_the_snapshot(clustered: IndexedTable) -> None:
    """Base files that clustering replaced and Hudi has not yet cleaned; no query reads them."""
    table = clustered
    indexed(table, ["msg"], name="j")
    entries = Path(table.uri, ".hoodie/.index/lucene")
    (newest,) = entries.glob(f"{max(path.name for path in entries.iterdir())}/*/*")
    old = sorted(Path(table.uri).glob("*/*.parquet"))[0]
    assert old.relative_to(table.uri).as_posix() not in {
        m.base_file.path for m in manifests(table.uri)
    }
    _create_entry_of(table, old, newest)
    assert len(manifests(table.uri)) == 3

    dropped = table.drop_index("j", purge=True)

    assert dropped.purge is not None
    assert dropped.purge.remaining == ()
    assert columns(table) == [["amount"]] * 2
    assert b"Buying car" not in bytes_below(table)


def _create_entry_of(table: IndexedTable, base_file: Path, template: Path) -> None:
    """Creates an entry for an old base file, as it had while it was in the snapshot."""
    path = base_file.relative_to(table.uri).as_posix()
    size = base_file.stat().st_size
    described = parse_path(path, size)
    assert isinstance(described, BaseFile)
    folder = Path(table.uri, entry_folder("lucene", described))
    folder.mkdir(parents=True)
    for file in template.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    manifest_path = folder / "manifest-0001.json"
    manifest = Manifest.from_json(manifest_path.read_bytes(), source="")
    named = manifest.base_file.model_copy(update={"path": path, "length": size})
    manifest_path.write_bytes(manifest.model_copy(update={"base_file": named}).to_json())
