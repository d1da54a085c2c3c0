"""hudi-index-pylucene: PackedDirectory, a whole index in one checksummed file."""

from dataclasses import replace
from pathlib import Path

import lucene
import numpy as np
import pyarrow as pa
import pytest

from tests.native.lucene_index import (
    BLOCK_SIZE,
    IndexField,
    PackedFile,
    attach,
    index_batches,
    pack,
)

ROWS = 6_000


@pytest.fixture(autouse=True)
def _jvm() -> None:
    attach()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of three segments in a folder, as Lucene itself stores it."""
    attach()
    folder = tmp_path_factory.mktemp("index")
    random = np.random.default_rng(11)
    words = np.array(["summer", "is", "coming", "buying", "a", "new", "car", "home"])
    table = pa.table(
        {
            "sender": [f"user{i:03}" for i in random.integers(0, 500, ROWS)],
            "message": [" ".join(random.choice(words, 6)) for _ in range(ROWS)],
            "amount": pa.array(random.integers(0, 1_000_000, ROWS), mask=random.random(ROWS) < 0.1),
        }
    )
    fields = [
        IndexField("sender", "KEYWORD", "sender"),
        IndexField("message", "TEXT", "message"),
        IndexField("amount", "LONG", "amount"),
        IndexField("amount.null", "NULLS", "amount"),
    ]
    batches = table.to_batches(max_chunksize=2_000)
    index_batches(folder, fields, batches, segment_per_batch=True)
    return folder


@pytest.fixture(scope="module")
def packed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> PackedFile:
    return pack(folder, tmp_path_factory.mktemp("packed") / "data.bin")


def is_corruption(error: lucene.JavaError) -> bool:
    from org.apache.lucene.index import CorruptIndexException

    return bool(CorruptIndexException.instance_(error.getJavaException()))


def test_members_are_listed_with_their_lengths(folder: Path, packed: PackedFile) -> None:
    directory = packed.open()
    names = list(directory.listAll())

    assert names == sorted(file.name for file in folder.iterdir() if file.is_file())
    for name in names:
        assert directory.fileLength(name) == (folder / name).stat().st_size
    with pytest.raises(lucene.JavaError, match=r"FileNotFoundException: absent in .*data\.bin"):
        directory.fileLength("absent")


def test_bytes_and_numbers_are_read_at_every_position(folder: Path, packed: PackedFile) -> None:
    """Compared with the file's bytes, at positions on both sides of every block boundary."""
    from org.apache.lucene.store import IOContext, RandomAccessInput

    directory = packed.open()
    for name, (offset, length) in packed.members.items():
        content = (folder / name).read_bytes()
        stream = directory.openInput(name, IOContext.DEFAULT)
        at_random = RandomAccessInput.cast_(stream.randomAccessSlice(0, length))
        borders = range(-offset % BLOCK_SIZE, length, BLOCK_SIZE)
        positions = {p + d for p in [0, *borders, length - 8] for d in range(-9, 10)}
        for position in sorted(p for p in positions if 0 <= p <= length - 8):
            here = content[position : position + 8]
            for size, sequential, random_access in [
                (1, stream.readByte, at_random.readByte),
                (2, stream.readShort, at_random.readShort),
                (4, stream.readInt, at_random.readInt),
                (8, stream.readLong, at_random.readLong),
            ]:
                expected = int.from_bytes(here[:size], "little", signed=True)
                stream.seek(position)
                assert sequential() == expected, (name, position, size)
                assert stream.getFilePointer() == position + size
                assert random_access(position) == expected, (name, position, size)


def test_slices_and_clones_have_their_own_positions(folder: Path, packed: PackedFile) -> None:
    from org.apache.lucene.store import IOContext

    name, (_, length) = max(packed.members.items(), key=lambda member: member[1][1])
    content = (folder / name).read_bytes()
    assert length > 2 * BLOCK_SIZE
    whole = packed.open().openInput(name, IOContext.DEFAULT)
    whole.seek(100)
    part = whole.slice("part", 50, BLOCK_SIZE + 10)
    nested = part.slice("nested", 7, 20)
    copy = whole.clone()

    assert part.length() == BLOCK_SIZE + 10
    assert part.readByte() & 0xFF == content[50]
    assert nested.readByte() & 0xFF == content[57]
    assert copy.getFilePointer() == 100
    copy.skipBytes(BLOCK_SIZE)
    assert copy.readByte() & 0xFF == content[100 + BLOCK_SIZE]
    assert whole.getFilePointer() == 100
    assert whole.readByte() & 0xFF == content[100]

    part.seek(BLOCK_SIZE + 9)
    part.readByte()
    with pytest.raises(lucene.JavaError, match="EOFException: read past the end"):
        part.readByte()
    with pytest.raises(lucene.JavaError, match="EOFException: seek to"):
        part.seek(BLOCK_SIZE + 11)
    with pytest.raises(lucene.JavaError, match="IllegalArgumentException: slice beyond"):
        part.slice("beyond", BLOCK_SIZE, 11)


def test_closed_directories_and_inputs_refuse_to_read(packed: PackedFile) -> None:
    from org.apache.lucene.store import IOContext

    directory = packed.open()
    name = directory.listAll()[0]
    first = directory.openInput(name, IOContext.DEFAULT)
    second = directory.openInput(name, IOContext.DEFAULT)
    first.close()
    with pytest.raises(lucene.JavaError, match="AlreadyClosedException"):
        first.readByte()
    with pytest.raises(lucene.JavaError, match="AlreadyClosedException"):
        first.clone()
    second.readByte()

    directory.close()
    with pytest.raises(lucene.JavaError, match="AlreadyClosedException"):
        directory.listAll()
    with pytest.raises(lucene.JavaError, match="AlreadyClosedException"):
        directory.openInput(name, IOContext.DEFAULT)
    with pytest.raises(lucene.JavaError, match="AlreadyClosedException"):
        second.clone().readByte()


def test_packed_index_is_read_only(packed: PackedFile) -> None:
    directory = packed.open()
    with pytest.raises(lucene.JavaError, match="a packed index is read-only"):
        directory.deleteFile(directory.listAll()[0])
    with pytest.raises(lucene.JavaError, match="a packed index is read-only"):
        directory.rename("a", "b")


def test_damaged_block_is_reported_on_first_use(packed: PackedFile, tmp_path: Path) -> None:
    from org.apache.lucene.store import IOContext

    name, (offset, _) = max(packed.members.items(), key=lambda member: member[1][1])
    block = offset // BLOCK_SIZE + 1
    content = bytearray(packed.path.read_bytes())
    content[block * BLOCK_SIZE + 5] ^= 0x10
    damaged = replace(packed, path=tmp_path / "damaged.bin")
    damaged.path.write_bytes(content)

    reader = damaged.open().openInput(name, IOContext.DEFAULT)
    for _ in range(block * BLOCK_SIZE - offset):
        reader.readByte()
    with pytest.raises(lucene.JavaError, match=rf"block {block} \(bytes {block * BLOCK_SIZE} to"):
        reader.readByte()
    reader.seek((block + 1) * BLOCK_SIZE - offset)
    reader.readByte()  # the blocks around it can still be read


@pytest.mark.parametrize(
    ("offset", "length"), [(-1, 10), (0, -1), (0, 2**40), (2**40, 1), (2**63 - 1, 2**63 - 1)]
)
def test_member_outside_the_file_is_refused(packed: PackedFile, offset: int, length: int) -> None:
    outside = replace(packed, members={**packed.members, "_9.cfs": (offset, length)})
    with pytest.raises(lucene.JavaError, match=r"_9\.cfs .* lies outside the file") as caught:
        outside.open()
    assert is_corruption(caught.value)
