"""Which record keys are looked up in which base files, by minimum and maximum keys."""

import numpy as np
import pyarrow as pa
import pytest

from hudi_index_service.hudi.snapshot import BaseFile, FileSlice
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.base_file.record_keys import RecordKeys
from hudi_index_service.read.keys.groups import SliceGroup, portions, routed, slice_groups
from hudi_index_service.read.keys.key_range import FirstKeys, KeyRange

NO_INDEX = RecordKeys(pa.schema([("_hoodie_record_key", pa.string())]), {}, stored=True)


def may_hold(within: KeyRange, *keys: str) -> list[bool]:
    """Which of the keys the range may hold."""
    found: list[bool] = within.holds(pa.array(keys, pa.string())).tolist()
    return found


def test_text_keys_are_compared_by_bytes() -> None:
    within = KeyRange(b"b", "é".encode())
    assert may_hold(within, "a", "b", "bz", "é", "éa", "😀", "", "B") == [
        *(False, True, True, True, False, False, False, False)
    ]


def test_a_key_may_be_prefixed_by_its_column() -> None:
    within = KeyRange(b"b", b"c", "id:")
    assert may_hold(within, "b", "id:b", "id:d", "a", "d") == [True, True, False, False, False]


def test_integers_are_compared_as_numbers() -> None:
    within = KeyRange(-3, 20, "id:")
    keys = ["-3", "20", "id:7", "100", "-4", "07", "-0", "x", "", "+7", "7.0"]
    assert may_hold(within, *keys) == [True, True, True] + 8 * [False]
    # A number that may exceed 64 bits is not ruled out, and never an error.
    assert may_hold(within, "9" * 19, "9" * 30) == [True, False]


def test_no_keys_give_an_empty_result() -> None:
    assert may_hold(KeyRange(1, 2)) == may_hold(KeyRange(b"a", b"b")) == []


def test_a_range_around_other_ranges() -> None:
    low, high = KeyRange(b"a", b"c"), KeyRange(b"m", b"p", "id:")
    assert KeyRange.around([low, high]) == KeyRange(b"a", b"p", "id:")
    assert KeyRange.around([low]) == low
    assert KeyRange.around([low, None]) is None
    assert KeyRange.around([low, KeyRange(1, 2)]) is None
    assert KeyRange.around([]) is None


def without_index(partition: str, number: int) -> SlicePlan:
    """A slice without an entry."""
    name = f"f{number}"
    base_file = BaseFile(f"{partition}/{name}.parquet", partition, name, "1", 1)
    return SlicePlan(FileSlice(partition, name, base_file), Access.SCAN)


def test_slices_are_divided_into_groups() -> None:
    slices = [without_index(f"p{number % 3}", number) for number in range(10)]
    anywhere = slice_groups(slices, NO_INDEX, 4, by_partition=False)
    assert [group.partition for group in anywhere] == 4 * [None]
    assert sorted(n for group in anywhere for n in group.slices) == list(range(10))
    assert {len(group.slices) for group in anywhere} == {2, 3}
    by_partition = slice_groups(slices, NO_INDEX, 1, by_partition=True)
    assert [(group.partition, group.slices) for group in by_partition] == [
        ("p0", (0, 3, 6, 9)),
        ("p1", (1, 4, 7)),
        ("p2", (2, 5, 8)),
    ]
    assert slice_groups([], NO_INDEX, 4, by_partition=False) == []


def test_keys_go_to_the_groups_that_may_hold_them() -> None:
    groups = [
        SliceGroup("p0", (0,), KeyRange(b"a", b"f")),
        SliceGroup("p0", (1, 2), KeyRange(b"g", b"k")),
        SliceGroup("p1", (3,), None),
    ]
    keys_batch = pa.record_batch(
        {
            "record_key": ["b", "g", "z", "b", "z", None, "b"],
            "partition": ["p0", "p0", "p0", "p1", "p1", "p0", None],
        }
    )
    sent = {number: keys.to_pylist() for number, keys in routed(keys_batch, groups)}
    assert sent == {0: ["b"], 1: ["g"], 2: ["b", "z"]}
    anywhere = [SliceGroup(None, group.slices, group.within) for group in groups]
    keys = pa.record_batch({"record_key": ["b", "z", None]})
    sent = {number: keys.to_pylist() for number, keys in routed(keys, anywhere)}
    assert sent == {0: ["b"], 2: ["b", "z"]}


def test_keys_are_sent_in_portions() -> None:
    sent = [(number, pa.array(["k"] * 10)) for number in (0, 0, 0, 0, 0, 1, 2, 2)]
    assert [(number, len(keys)) for number, keys in portions(sent, 20)] == [
        *((0, 20), (0, 20), (0, 10), (1, 10), (2, 20))
    ]
    assert list(portions([], 20)) == []


@pytest.mark.parametrize("prefix", ["", "id:"])
def test_the_first_keys_in_a_range_are_counted(prefix: str) -> None:
    keys = pa.array([f"{'id:' if n % 3 else ''}{n * 7919 % 100:02}" for n in range(50)] + ["é", ""])
    first_keys = FirstKeys(keys)
    for least, greatest in [(b"10", b"20"), (b"", b"\xff"), (b"id:3", b"id:50"), (b"x", b"x")]:
        key_range = KeyRange(least, greatest, prefix)
        for first in (20, 52):
            count = np.count_nonzero(key_range.holds(keys[:first]))
            assert first_keys.within(key_range, first) >= count
            if not least.startswith(b"id:") and greatest != b"\xff":  # else some count twice
                assert first_keys.within(key_range, first) == count
    numbers = KeyRange(3, 30, prefix)
    assert first_keys.within(numbers, 52) == np.count_nonzero(numbers.holds(keys))
