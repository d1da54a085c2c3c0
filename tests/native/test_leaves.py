"""What the row reader refuses of a B+ tree's leaves; tests/index/btree tests what it finds."""

import numpy as np
import pytest
from hudi_index_parquet import SomeLeaves, rows_between, rows_of_keys

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


def test_bytes_without_the_checksum_of_the_record() -> None:
    assert rows_between([b"x"], LEAVES, [(0, b"", None)]) is None
