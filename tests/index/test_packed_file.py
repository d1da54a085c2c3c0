"""Packed files: damage is refused, never answered from, and never fatal."""

import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import PackedIndex
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.packed_file import BLOCK_SIZE, checksums, pack, read_member
from hudi_index_service.predicate.expression import (
    BoundColumn,
    IsNull,
)
from tests.index.conftest import BuildIndex, IndexedData, packed_index

MEMBERS = {"b": b"second" * 50_000, "a": b"first", "empty": b"", "c": b"x" * (2 * BLOCK_SIZE)}


@pytest.fixture
def packed(tmp_path: Path) -> PackedIndex:
    return packed_index(MEMBERS, tmp_path / "data.pack", 0)


def test_members_are_read_back_aligned_and_in_order(packed: PackedIndex) -> None:
    assert list(packed.members) == ["a", "b", "c", "empty"]
    assert all(offset % 64 == 0 for offset, _ in packed.members.values())
    assert {name: read_member(packed, name) for name in MEMBERS} == MEMBERS
    assert packed.path.stat().st_size == packed.length


def test_files_and_bytes_pack_alike(tmp_path: Path) -> None:
    files = {}
    for name, content in MEMBERS.items():
        files[name] = tmp_path / name
        files[name].write_bytes(content)
    one, other = tmp_path / "1.pack", tmp_path / "2.pack"
    named = {"name": other.name}
    assert pack(files, one).model_copy(update=named) == pack(MEMBERS, other)


def test_checksums_cover_each_block_and_the_whole(packed: PackedIndex) -> None:
    content = packed.path.read_bytes()
    crc32s, sha256 = checksums(packed.path)
    assert crc32s == tuple(
        zlib.crc32(content[at : at + BLOCK_SIZE]) for at in range(0, len(content), BLOCK_SIZE)
    )
    assert len(sha256) == 64


def test_an_absent_member_is_refused(packed: PackedIndex) -> None:
    with pytest.raises(EntryInvalid, match="has no member absent"):
        read_member(packed, "absent")


@pytest.mark.parametrize("name", ["b", "c"])
def test_a_flipped_bit_damages_only_its_own_member(packed: PackedIndex, name: str) -> None:
    offset, length = packed.members[name]
    content = bytearray(packed.path.read_bytes())
    content[offset + length // 2] ^= 0x10
    packed.path.write_bytes(content)

    with pytest.raises(EntryInvalid, match=r"block \d+ is damaged"):
        read_member(packed, name)
    assert read_member(packed, "a") == b"first"


def test_a_truncated_file_is_damaged(packed: PackedIndex) -> None:
    packed.path.write_bytes(packed.path.read_bytes()[: BLOCK_SIZE + 7])
    with pytest.raises(EntryInvalid, match="is damaged"):
        read_member(packed, "c")


@pytest.fixture(scope="module")
def people(build_index: BuildIndex) -> IndexedData:
    rows = range(20_000)
    return build_index(
        pa.table(
            {
                "name": [None if i % 11 == 0 else f"user{i * 7919 % 20_000}" for i in rows],
                "age": [None if i % 13 == 0 else i * 31 % 97 for i in rows],
            }
        ),
        options={"name": {"analyzer": "standard"}},
    )


def test_truncated_lucene_files_are_refused(people: IndexedData, tmp_path: Path) -> None:
    content = people.index.path.read_bytes()
    path = tmp_path / "cut.pack"
    for length in (0, 1, BLOCK_SIZE, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(EntryInvalid):
            index_type("lucene").open(replace(people.index, path=path), people.columns)


def test_a_refused_index_is_closed(people: IndexedData, tmp_path: Path) -> None:
    path = tmp_path / "other.pack"
    path.write_bytes(people.index.path.read_bytes())
    with pytest.raises(EntryInvalid, match="holds 20000 rows, not 19999"):
        index_type("lucene").open(replace(people.index, path=path, rows=19_999), people.columns)
    some = {name: span for name, span in people.index.members.items() if ".si" not in name}
    for members in (some, {}):
        index = replace(people.index, path=path, members=members)
        with pytest.raises(EntryInvalid, match="cannot be read"):
            index_type("lucene").open(index, people.columns)
    assert path not in open_files()


def open_files() -> set[Path]:
    """The files that this process has open, including those of its JVM."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(descriptor.readlink())
    return found


def test_a_closed_reader_refuses_look_ups(build_index: BuildIndex) -> None:
    indexed = build_index(pa.table({"c": ["a"]}))
    indexed.reader.close()
    indexed.reader.close()
    with pytest.raises(EntryInvalid, match="cannot be read"):
        indexed.reader.row_ids(IsNull(BoundColumn("c", pa.string())))
