"""How the row reader writes a B+ tree's leaves, and what it refuses; tests/index/btree tests what
it finds."""

import random
import struct
import zlib
from itertools import pairwise

import numpy as np
import pytest
from hudi_index_parquet import (
    SomeLeaves,
    WrittenLeaves,
    read_leaf,
    rows_between,
    rows_of_keys,
    write_leaves,
)

RECORD = bytes(37)
LEAVES = SomeLeaves(RECORD, [0])


def test_a_leaf_beyond_the_records() -> None:
    for records, number in ((b"", 0), (RECORD, 1), (RECORD[:-1], 0)):
        leaves = SomeLeaves(records, [number])
        with pytest.raises(ValueError, match=f"there is no leaf {number}"):
            rows_between([b""], leaves, [])


def test_an_interval_of_a_leaf_that_is_not_read() -> None:
    with pytest.raises(ValueError, match="there is no leaf at 1"):
        rows_between([b""], LEAVES, [(1, b"", None)])


def test_keys_beyond_the_list() -> None:
    with pytest.raises(ValueError, match="there is no key 2"):
        rows_of_keys([b""], LEAVES, b"a", np.array([0, 1]), [(0, 2)])
    with pytest.raises(ValueError, match="offsets must be in order and among the bytes"):
        rows_of_keys([b""], LEAVES, b"a", np.array([0, 2]), [(0, 1)])


def written(
    keys: list[int] | list[bytes],
    counts: list[int],
    rows: list[int],
    *,
    offset: int = 0,
    before: int = 0,
    keeps_last: bool = False,
) -> WrittenLeaves:
    each_count, row_ids = np.array(counts, np.int64), np.array(rows, np.uint32)
    texts = [key for key in keys if isinstance(key, bytes)]
    if texts:
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        content = memoryview(b"".join(texts))
        return write_leaves(
            content, ends, each_count, row_ids, offset=offset, before=before, keeps_last=keeps_last
        )
    numbers = np.array(keys, np.uint64)
    return write_leaves(
        numbers, None, each_count, row_ids, offset=offset, before=before, keeps_last=keeps_last
    )


def test_the_bytes_of_a_leaf() -> None:
    """As docs/format.md describes them."""
    leaves = written([7, 9, 300], [1, 2, 1], [5, 70_000, 70_001, 6], offset=100, before=10)

    header = struct.pack("<BBBBIQII", 2, 1, 3, 0, 5, 7, 6, 6)
    rows = b"".join((row - 5).to_bytes(3, "little") for row in (5, 70_000, 70_001, 6))
    keys = struct.pack("<3H", 0, 2, 293)
    assert leaves.bodies == header + rows + bytes([1, 2, 1]) + keys
    crc32 = zlib.crc32(leaves.bodies)
    assert leaves.records == struct.pack("<BQIIQIQ", 0, 100, 45, crc32, 4, 3, 10)
    assert leaves.starts == [0, 3]


def test_the_bytes_of_texts() -> None:
    leaves = written([b"ab", b"abc", b"abd"], [1, 1, 1], [3, 2, 1])

    header = struct.pack("<BBBBIQII", 0, 0, 1, 0, 1, 0, 12, 12)
    keys = struct.pack("<H2s3H", 2, b"ab", 0, 1, 1) + b"cd"
    assert leaves.bodies == header + bytes([2, 1, 0]) + keys


@pytest.mark.parametrize("are_texts", [False, True])
@pytest.mark.parametrize("most_rows", [1, 3, 400])
def test_leaves_hold_what_was_written(are_texts: bool, most_rows: int) -> None:
    choose = random.Random(most_rows)
    numbers = sorted({choose.randrange(2 ** choose.randrange(1, 65)) for _ in range(3_000)})
    keys = [str(n).encode() + b"x" * (n % 300) for n in numbers] if are_texts else numbers
    keys = sorted(keys)  # type: ignore[type-var]
    counts = [choose.randrange(most_rows) + 1 for _ in keys]
    rows = [choose.randrange(2**32) for _ in range(sum(counts))]
    leaves = written(keys, counts, rows)

    read_keys: list[object] = []
    read_rows: list[int] = []
    read_counts: list[int] = []
    for first, end in pairwise(range(0, len(leaves.records) + 1, 37)):
        record = struct.unpack("<BQIIQIQ", leaves.records[first:end])
        is_set, offset, length, crc32, row_count, key_count, before = record
        body = leaves.bodies[offset : offset + length]
        assert (is_set, zlib.crc32(body), before) == (0, crc32, len(read_rows))
        assert row_count <= 512 or key_count == 1
        leaf = read_leaf(body, row_count, key_count)
        if leaf.key_offsets is None:
            read_keys += np.frombuffer(leaf.keys, np.uint64).tolist()
        else:
            ends = np.frombuffer(leaf.key_offsets, np.int64).tolist()
            assert ends[-1] <= 32 * 1024 or key_count == 1
            read_keys += [leaf.keys[a:b] for a, b in pairwise(ends)]
        read_counts += np.diff(np.frombuffer(leaf.starts, np.int64)).tolist()
        read_rows += np.frombuffer(leaf.rows, np.uint32).tolist()
    assert (read_keys, read_counts, read_rows) == (keys, counts, rows)


def test_the_last_leaf_is_left_for_more_keys() -> None:
    keys, ones = list(range(1_200)), [1] * 1_200
    assert written(keys, ones, keys).starts == [0, 512, 1_024, 1_200]
    assert written(keys, ones, keys, keeps_last=True).starts == [0, 512, 1_024]
    few = written(keys[:512], ones[:512], keys[:512], keeps_last=True)
    assert few == WrittenLeaves(b"", b"", [0])


@pytest.mark.parametrize(
    ("keys", "counts", "rows", "reason"),
    [
        ([1, 2], [1], [1], "differ in number"),
        ([1, 2], [1, 1], [1], "differ in number"),
        ([2, 1], [1, 1], [1, 2], "the keys are not in order"),
        ([1], [0], [], "a key cannot have 0 rows"),
        ([1], [65_536], [1] * 65_536, "a key cannot have 65536 rows"),
        ([b"a" * 65_536], [1], [1], "a key cannot have 65536 bytes"),
    ],
)
def test_contradictory_keys_are_not_written(
    keys: list[int] | list[bytes], counts: list[int], rows: list[int], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        written(keys, counts, rows)
