"""Flipped bits are detected or harmless in a file that is open; forged and misplaced leaves."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.merge import MergeSource
from hudi_index_service.index.btree.tree import (
    LEAF,
    Branch,
    Description,
    LeafPlace,
    Tree,
    branch_prefix,
    write_tree,
)
from hudi_index_service.index.contract import ColumnStatistics, PackedIndex, StoredColumn
from hudi_index_service.index.packed_file import checksums
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.predicate.expression import Predicate
from tests.index.conftest import BuildIndex, IndexedData, packed_index
from tests.index.test_damage import DATA, LEAVES


@pytest.fixture(scope="module")
def indexed(build_btree: BuildIndex) -> IndexedData:
    return build_btree(DATA, batch_rows=5000)


def test_bits_flipped_in_an_open_file_are_detected_or_harmless(
    indexed: IndexedData, tmp_path: Path
) -> None:
    path = tmp_path / "open"
    whole = indexed.index.path.read_bytes()
    path.write_bytes(whole)
    reader = indexed.kind.open(replace(indexed.index, path=path), indexed.columns)
    expected = [indexed.reader.row_ids(leaf) for leaf in LEAVES]
    with path.open("r+b") as file:
        for at in range(0, len(whole), 97):
            file.seek(at)
            file.write(bytes([whole[at] ^ 16]))
    for leaf, rows in zip(LEAVES, expected, strict=True):
        try:
            found = reader.row_ids(leaf)
        except EntryInvalid:
            continue
        assert found == rows


def test_verify_finds_errors_that_checksums_miss(indexed: IndexedData, tmp_path: Path) -> None:
    assert indexed.kind.verify(indexed.index, indexed.columns) == []
    wrong = [
        StoredColumn.of(column.spec, ColumnStatistics(column.null_count + 1))
        for column in indexed.columns
    ]
    found = indexed.kind.verify(indexed.index, wrong)
    assert found[0] == "column n is NULL in 400 rows; the manifest says 401."
    assert len(found) == len(DATA.schema)
    other = StoredColumn(name="other", type="int64", fields=("key",), null_count=0)
    assert indexed.kind.verify(indexed.index, [other]) == ["column other is missing."]
    fewer = replace(indexed.index, rows=19_999)
    assert "holds 20000 rows" in indexed.kind.verify(fewer, indexed.columns)[0]
    content = bytearray(indexed.index.path.read_bytes())
    content[indexed.index.members["leaves"][0] + 5000] ^= 1
    path = tmp_path / "damaged"
    path.write_bytes(content)
    damaged = replace(indexed.index, path=path)
    assert "damaged" in indexed.kind.verify(damaged, indexed.columns)[0]


def all_places(source: MergeSource) -> list[LeafPlace]:
    branches = [(column, branch) for column in range(len(DATA.schema)) for branch in Branch]
    return [place for branch in branches for place in source.tree.leaves(*branch)]


def with_places(
    indexed: IndexedData, folder: Path, places: list[LeafPlace], **members: bytes
) -> PackedIndex:
    """The index with other facts about its leaves, all checksums correct; such members come
    first."""
    description = MergeSource.of_part(indexed.index).description
    records = b"".join(LEAF.pack(*place[1:-1]) for place in places)
    write_tree(folder / "tree", [each.prefix + each.key for each in places], records, description)
    offset, length = indexed.index.members["leaves"]
    members["leaves"] = indexed.index.path.read_bytes()[offset : offset + length]
    files = {**members, "tree": folder / "tree"}
    return packed_index(files, folder / "forged.pack", indexed.index.rows)


def test_verify_finds_leaves_in_the_wrong_order(indexed: IndexedData, tmp_path: Path) -> None:
    """Only a bug in the builder could write this: all checksums are correct."""
    places = all_places(MergeSource.of_part(indexed.index))
    of_n = [
        at for at, place in enumerate(places) if place.prefix == branch_prefix(0, Branch.VALUES)
    ]
    one, other = places[of_n[0]], places[of_n[1]]
    places[of_n[0]] = other._replace(key=one.key, before=one.before)
    places[of_n[1]] = one._replace(key=other.key, before=other.before)
    index = with_places(indexed, tmp_path, places)
    assert checksums(index.path)[0] == index.block_crc32
    found = indexed.kind.verify(index, indexed.columns)
    assert found == ["column n has leaves that do not follow each other."]


FORGED = {
    "offset": (1, 2**31, 2**63 - 1, 2**63, 2**64 - 1),
    "length": (0, 1, 2**31, 2**32 - 1),
    "crc32": (0,),
    "rows": (0, 1, 2**31, 2**61, 2**64 - 1),
    "keys": (0, 1, 2**31, 2**32 - 1),
    "before": (1, 2**63, 2**64 - 1),
    "is_set": (False, True),
}


@pytest.mark.parametrize(("fact", "value"), [(f, v) for f, each in FORGED.items() for v in each])
def test_forged_facts_about_leaves_raise_no_other_error(
    indexed: IndexedData, tmp_path: Path, fact: str, value: int
) -> None:
    """All checksums are correct, and each leaf's place states the same."""
    places = all_places(MergeSource.of_part(indexed.index))
    forged = [place._replace(**{fact: value}) for place in places]
    # Before the leaves there may be stored values.
    index = with_places(indexed, tmp_path, forged, before=b"values")
    reader = indexed.kind.open(index, indexed.columns)
    asked: list[Callable[[Predicate], object]] = [
        reader.row_ids,
        reader.estimate,
        reader.row_bounds,
        lambda leaf: reader.candidates(leaf, 10_000),
        lambda leaf: reader.narrowed(leaf, BitMap([1, 2, 3])),
        lambda leaf: reader.value_counts("f", None, 10_000),
        lambda leaf: reader.value_counts("s", BitMap([1, 2, 3]), 10_000),
    ]
    for leaf in (*LEAVES, parse_predicate("n IN (12, 13, 5000)", DATA.schema)):
        for ask in asked:
            with suppress(EntryInvalid):
                ask(leaf)
    reader.close()
    assert all(isinstance(each, str) for each in indexed.kind.verify(index, indexed.columns))


def test_an_unknown_layout_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_index_service.index.btree.tree.LAYOUT", 3)
    description = Description(2, {"n": True})
    write_tree(tmp_path / "tree", [], b"", description)
    content = (tmp_path / "tree").read_bytes()
    assert Tree(lambda: content).description() == description
    monkeypatch.undo()
    with pytest.raises(EntryInvalid, match="has layout 3; this release reads 2"):
        Tree(lambda: content).description()
