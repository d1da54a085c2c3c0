"""Storing, finding and removing the cells of entries, checked in HBase itself."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import time

import pyarrow as pa
import pytest

from hudi_index_hbase import HBaseIndexType
from hudi_index_hbase.reader import HBaseReader
from hudi_index_hbase.server import HBaseServer, server_of
from hudi_index_hbase.store import DONE, EntryKeys, TableKeys
from hudi_index_service.config import HBaseSettings
from hudi_index_service.errors import EntryInvalid, IndexServerUnavailable
from hudi_index_service.index.contract import BuiltIndex, ColumnSpec, PackedIndex, StoredColumn
from hudi_index_service.index.packed_file import pack
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from tests.at_once import at_once
from tests.hbase.conftest import Cells
from tests.index.conftest import rows_where

ROWS = 30_000
ONE, OTHER = "data-000001-one.pack", "data-000002-other.pack"
TABLE = "file:///data/messages"


def numbers(rows: int, *, step: int = 1) -> pa.Table:
    """Unique numbers, a text with a hundred distinct values, and numbers with NULLs."""
    return pa.table(
        {
            "n": pa.array([row * 7919 % rows * step for row in range(rows)]),
            "text": pa.array([f"text {row % 100:03}" for row in range(rows)]),
            "some": pa.array([None if row % 4 == 0 else row // 8 for row in range(rows)]),
        }
    )


@dataclass
class BuiltTree:
    """A tree as built, not stored yet."""

    kind: HBaseIndexType
    server: HBaseServer
    data: pa.Table
    folder: Path
    built: BuiltIndex

    def stored(self, path: str) -> tuple[PackedIndex, tuple[StoredColumn, ...]]:
        """Stores the tree for a data file; returns the arguments to open a reader with."""
        packed_path = self.folder / path.replace("/", "-")
        packed = pack(self.kind.store(self.built.files, TABLE, path), packed_path)
        index = packed.at(packed_path, rows=self.built.rows)
        columns = tuple(
            StoredColumn.of(ColumnSpec(f.name, f.type, ("key",)), self.built.statistics[f.name])
            for f in self.data.schema
        )
        return index, columns

    def open(self, path: str) -> HBaseReader:
        """Stores the tree and opens it."""
        index, columns = self.stored(path)
        reader = self.kind.open(index, columns)
        assert isinstance(reader, HBaseReader)
        return reader


MakeTree = Callable[..., BuiltTree]


@pytest.fixture
def make_tree(tmp_path: Path, hbase_settings: HBaseSettings) -> MakeTree:
    """Builds a tree; further arguments replace settings."""

    def make(data: pa.Table, **changed: object) -> BuiltTree:
        settings = hbase_settings.model_copy(update=changed)
        kind = HBaseIndexType(settings)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        specs = [ColumnSpec(f.name, f.type, kind.fields(f.name, f.type, {})) for f in data.schema]
        builder = kind.builder(specs, folder, memory_mb=32)
        for batch in data.to_batches(max_chunksize=5_000):
            builder.add(batch)
        return BuiltTree(kind, server_of(settings), data, folder, builder.finish())

    return make


def where(text: str, data: pa.Table) -> Predicate:
    return negation_normal_form(parse_predicate(text, data.schema))


def leaves_in(cells: Cells, path: str) -> dict[bytes, dict[bytes, bytes]]:
    keys = EntryKeys.of(TABLE, path)
    return {key: row for key, row in cells.all().items() if keys.prefix <= key < keys.end}


def test_storing_twice_changes_nothing(make_tree: MakeTree, cells: Cells) -> None:
    tree = make_tree(numbers(ROWS))
    tree.stored(ONE)
    before = cells.all()
    requests = tree.server.requests

    tree.stored(ONE)

    assert cells.all() == before
    assert tree.server.requests - requests <= 5, "nothing was written again"


def test_interrupted_store_is_continued(make_tree: MakeTree, cells: Cells) -> None:
    """As after a killed builder: half the leaves are there, and completion is not recorded."""
    tree = make_tree(numbers(ROWS), batch_rows=1)
    tree.stored(ONE)
    whole = cells.all()
    leaves = sorted(leaves_in(cells, ONE))
    catalog = TableKeys.of(TABLE).entry(ONE)
    cells.delete(*leaves[len(leaves) // 2 :])
    cells.put(catalog, {DONE: b""})
    requests = tree.server.requests

    tree.stored(ONE)

    assert cells.all() == whole
    written = tree.server.requests - requests
    assert len(leaves) // 2 <= written <= len(leaves) // 2 + 8, "a batch for each missing leaf"


def test_another_tree_for_the_same_data_file_replaces_it(make_tree: MakeTree, cells: Cells) -> None:
    make_tree(numbers(ROWS)).stored(ONE)

    fewer = make_tree(numbers(9_000, step=3))
    reader = fewer.open(ONE)

    apart = make_tree(numbers(9_000, step=3))
    apart.stored(OTHER)
    assert list(leaves_in(cells, ONE).values()) == list(leaves_in(cells, OTHER).values())
    leaf = where("n BETWEEN 100 AND 9000", fewer.data)
    assert reader.row_ids(leaf) == rows_where(leaf, fewer.data)


def test_removing_an_entry_removes_its_cells_only(make_tree: MakeTree, cells: Cells) -> None:
    tree = make_tree(numbers(ROWS))
    tree.stored(OTHER)
    others = cells.all()
    tree.stored(ONE)
    assert len(cells.all()) > len(others)

    tree.kind.destroy(TABLE, [ONE])

    assert cells.all() == others
    tree.kind.destroy(TABLE, [ONE, "data-000009-never-there.pack"])
    assert cells.all() == others
    tree.stored(ONE)
    tree.kind.destroy("file:///data/another", [ONE])
    assert set(cells.all()) > set(others)
    tree.kind.destroy(TABLE, [ONE, OTHER])
    assert cells.all() == {}


def test_stored_entries_are_listed_with_their_time(make_tree: MakeTree, cells: Cells) -> None:
    tree = make_tree(numbers(2_000))
    assert tree.kind.stored(TABLE) == {}
    began = time()
    tree.stored(ONE)
    tree.stored(OTHER)

    found = tree.kind.stored(TABLE)

    assert set(found) == {ONE, OTHER}
    assert began <= min(found.values()) <= max(found.values()) <= time()
    assert tree.kind.stored("file:///data/another") == {}
    cells.delete(*leaves_in(cells, ONE))
    assert set(tree.kind.stored(TABLE)) == {ONE, OTHER}, "complete or not"


def test_look_up_is_one_request_and_bounds_are_free(make_tree: MakeTree) -> None:
    tree = make_tree(numbers(ROWS), cache_mb=0)
    reader = tree.open(ONE)
    listed = ", ".join(map(str, range(0, ROWS, 500)))
    for text in (
        "n = 77", "n BETWEEN 5000 AND 5100", "n > 29000", f"n IN ({listed})", "text = 'text 007'",
        "text LIKE 'text 00%'", "some IS NULL", "n <> 5", "n NOT BETWEEN 10 AND 29000",
    ):  # fmt: skip
        leaf = where(text, tree.data)
        if leaf.children[1:]:
            leaf = leaf.children[0]
        requests = tree.server.requests
        least, most = reader.row_bounds(leaf)
        estimate = reader.estimate(leaf)
        assert tree.server.requests == requests, f"{text}: bounds sent a request to HBase"

        found = reader.row_ids(leaf)

        assert found == rows_where(leaf, tree.data), text
        assert tree.server.requests - requests == 1, text
        assert least <= len(found) <= most, text
        assert 0 <= estimate <= ROWS


def test_cells_are_cached(make_tree: MakeTree) -> None:
    tree = make_tree(numbers(ROWS))
    reader = tree.open(ONE)
    leaf = where("n BETWEEN 5000 AND 5100", tree.data)
    reader.row_ids(leaf)
    requests = tree.server.requests

    assert reader.row_ids(leaf) == rows_where(leaf, tree.data)

    assert tree.server.requests == requests


def test_concurrent_look_ups_find_the_same_rows(make_tree: MakeTree) -> None:
    tree = make_tree(numbers(ROWS), cache_mb=0)
    reader = tree.open(ONE)
    leaves = [where(f"n BETWEEN {n} AND {n + 900}", tree.data) for n in range(0, 20_000, 700)]
    expected = [rows_where(leaf, tree.data) for leaf in leaves]

    def look_up(seed: int) -> None:
        for at in random.Random(seed).sample(range(len(leaves)), len(leaves)):
            assert reader.row_ids(leaves[at]) == expected[at]

    at_once(*(partial(look_up, seed) for seed in range(6)))


def test_missing_and_damaged_cells_are_detected(make_tree: MakeTree, cells: Cells) -> None:
    tree = make_tree(numbers(ROWS), cache_mb=0)
    index, columns = tree.stored(ONE)
    reader = tree.kind.open(index, columns)
    leaf = where("n BETWEEN 5000 AND 5100", tree.data)
    keys = sorted(leaves_in(cells, ONE))
    assert tree.kind.verify(index, columns) == []

    for key in keys:
        row = cells.all()[key]
        (name, body) = next(iter(row.items()))
        cells.put(key, {name: body[:-1] + bytes([body[-1] ^ 1])})
    with pytest.raises(EntryInvalid, match=r"the leaf at \d+ is damaged"):
        reader.row_ids(leaf)
    assert "is damaged" in tree.kind.verify(index, columns)[0]

    cells.delete(*keys)
    with pytest.raises(EntryInvalid, match=r"lacks the leaf at \d+"):
        reader.row_ids(leaf)
    assert "lacks the leaf" in tree.kind.verify(index, columns)[0]


def test_missing_hbase_table_is_an_invalid_entry(make_tree: MakeTree, cells: Cells) -> None:
    tree = make_tree(numbers(2_000), cache_mb=0)
    index, columns = tree.stored(ONE)
    reader = tree.kind.open(index, columns)
    cells.drop()

    for _ in range(2):
        with pytest.raises(EntryInvalid, match=f"has no table default:{cells.table}"):
            reader.row_ids(where("n = 7", tree.data))
    assert f"has no table default:{cells.table}" in tree.kind.verify(index, columns)[0]
    tree.stored(ONE)
    assert len(reader.row_ids(where("n = 7", tree.data))) == 1


def test_entry_of_another_hbase_table_is_refused(
    make_tree: MakeTree, hbase_settings: HBaseSettings
) -> None:
    tree = make_tree(numbers(2_000))
    index, columns = tree.stored(ONE)
    other = tree.kind.__class__(hbase_settings.model_copy(update={"table": "another"}))

    with pytest.raises(EntryInvalid, match="but the settings name default:another") as refused:
        other.open(index, columns)
    assert "hbase.table" in refused.value.remedy


def test_hbase_table_is_not_created_when_disabled(make_tree: MakeTree, cells: Cells) -> None:
    tree = make_tree(numbers(2_000), create_table=False, attempts=1)

    with pytest.raises(IndexServerUnavailable, match=r"not.found|NotFound"):
        tree.stored(ONE)

    assert cells.all() == {}
