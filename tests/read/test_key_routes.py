"""Which record keys are looked up in which base files, by least and greatest values."""

import pyarrow as pa
import pytest

from hudi_index_service.hudi.snapshot import BaseFile, FileSlice
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.base_file.record_keys import RecordKeys
from hudi_index_service.read.keys.key_routes import (
    Bounds,
    SliceGroup,
    SoughtKeys,
    key_values,
    routed,
    slice_groups,
)
from hudi_index_service.read.keys.spark import portions

NO_INDEX = RecordKeys(pa.schema([("_hoodie_record_key", pa.string())]), {}, stored=True)


def text_or_number(type: pa.DataType, column: str = "id") -> RecordKeys:
    """Keys of one column, stored in no row."""
    return RecordKeys(pa.schema([(column, type)]), {column: pa.field(column, type)}, stored=False)


def may_hold(keys: RecordKeys, bounds: Bounds, *search_keys: str) -> list[bool]:
    """Which of the keys a file may hold in whose first key column all values lie in bounds."""
    values = next(key_values(keys, pa.array(search_keys, pa.string())))
    possible = set(SoughtKeys(values, values.within(bounds)).keys.tolist())
    return [number in possible for number in range(len(search_keys))]


def test_text_keys_are_compared_by_bytes():
    assert may_hold(NO_INDEX, (b"b", "é".encode()), "a", "b", "bz", "é", "éa", "😀", "", "B") == [
        *(False, True, True, True, False, False, False, False)
    ]


def test_a_key_may_be_prefixed_by_its_column():
    keys = text_or_number(pa.string())
    found = may_hold(keys, (b"b", b"c"), "b", "id:b", "id:d", "a", "d")
    assert found == [True, True, False, False, False]


@pytest.mark.parametrize("type", [pa.int32(), pa.int64()], ids=str)
def test_integers_are_compared_as_numbers(type):
    keys = ["-3", "20", "id:7", "100", "-4", "07", "-0", "x", "", "+7", "7.0", str(7 + 2**32)]
    assert may_hold(text_or_number(type), (-3, 20), *keys) == [True, True, True] + 9 * [False]
    # A number that may exceed 64 bits is not ruled out, and never an error.
    assert may_hold(text_or_number(type), (-3, 20), "9" * 19, "9" * 30) == [True, False]


def test_many_keys_within_the_bounds_of_few_rows_are_not_sorted(monkeypatch):
    monkeypatch.setattr("hudi_index_service.read.keys.key_routes.VALUES_SAMPLED", 2_048)
    values = next(key_values(NO_INDEX, pa.array([f"k{number:04}" for number in range(4_096)])))
    assert len(values.within((b"k1000", b"k3999"), rows=500)) == 4_096
    assert len(values.within((b"k1000", b"k3999"), rows=4_000)) == 3_000
    assert len(values.within((b"k1000", b"k1009"), rows=5)) == 10


def test_no_keys_give_an_empty_result():
    assert may_hold(NO_INDEX, (b"a", b"b")) == []
    assert may_hold(text_or_number(pa.int64()), (1, 2)) == []


def without_index(partition: str, number: int) -> SlicePlan:
    """A slice without an entry."""
    name = f"f{number}"
    base_file = BaseFile(f"{partition}/{name}.parquet", partition, name, "1", 1)
    return SlicePlan(FileSlice(partition, name, base_file), Access.SCAN)


def test_slices_are_divided_into_groups():
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


def test_keys_go_to_the_groups_that_may_hold_them():
    key = "_hoodie_record_key"
    groups = [
        SliceGroup("p0", (0,), (key, (b"a", b"f"))),
        SliceGroup("p0", (1, 2), (key, (b"g", b"k"))),
        SliceGroup("p1", (3,), None),
    ]
    keys_batch = pa.record_batch(
        {
            "record_key": ["b", "g", "z", "b", "z", None, "b"],
            "partition": ["p0", "p0", "p0", "p1", "p1", "p0", None],
        }
    )
    sent = {number: keys.to_pylist() for number, keys in routed(keys_batch, groups, NO_INDEX)}
    assert sent == {0: ["b"], 1: ["g"], 2: ["b", "z"]}
    anywhere = [SliceGroup(None, group.slices, group.within) for group in groups]
    batch = pa.record_batch({"record_key": ["b", "z", None]})
    sent = {number: keys.to_pylist() for number, keys in routed(batch, anywhere, NO_INDEX)}
    assert sent == {0: ["b"], 2: ["b", "z"]}


def test_keys_are_sent_in_portions():
    ten_keys = pa.record_batch({"record_key": ["k"] * 10})
    sent = [(number, ten_keys) for number in (0, 0, 0, 0, 0, 1, 2, 2)]
    assert [(number, len(keys.table)) for number, keys in portions(sent, 20)] == [
        *((0, 20), (0, 20), (0, 10), (1, 10), (2, 20))
    ]
    assert list(portions([], 20)) == []
