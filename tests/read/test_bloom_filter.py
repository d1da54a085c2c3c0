"""Hudi's Bloom filters of record keys, read without Java, answer as Hudi's own class does."""

import base64

import numpy as np
import pyarrow as pa
import pytest

from hudi_index_service.read.keys.bloom_filter import KeyFilter

pytestmark = pytest.mark.fast

KEYS = [
    "1",
    "22",
    "333",
    "4444",
    "55555",
    "ünïcödé",  # bytes with the high bit set, at each position
    "é",
    "aé",
    "aéb",
    "abé",
    "😀 emoji",
    "id:1,day:2026-01-01",
    "x" * 3000,
    *(f"key-{number}" for number in range(2000)),
    *(f"{number * 7919:08x}-d41d-8cd9" for number in range(2000)),
]
OTHERS = [f"other-{number}" for number in range(3000)] + [str(number) for number in range(3000)]


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
@pytest.mark.parametrize(("entries", "wrong"), [(1000, 0.05), (60_000, 1e-9)])
def test_a_filter_answers_as_hudis_class_does(kind, entries, wrong, spark):
    jvm = spark.sparkContext._jvm
    factory = jvm.org.apache.hudi.common.bloom.BloomFilterFactory
    hudis = factory.createBloomFilter(entries, wrong, 3000, kind)
    for key in KEYS:
        hudis.add(key)
    ours = KeyFilter.of_footer(
        {
            b"org.apache.hudi.bloomfilter": hudis.serializeToString().encode(),
            b"hoodie_bloom_filter_type_code": kind.encode(),
        }
    )
    assert ours.may_hold(pa.array(KEYS)).all()
    assert ours.may_hold(pa.array(["longer than a key", *KEYS])[1:]).all(), "a slice of an array"
    expected = [hudis.mightContain(key) for key in OTHERS]
    assert ours.may_hold(pa.array(OTHERS)).tolist() == expected
    assert ours.may_hold_any(pa.array([*OTHERS, KEYS[-1]]))
    # Three of OTHERS are in KEYS; an overfull filter gives false positives, a good one none.
    assert sum(expected) == 3 if wrong < 0.05 else sum(expected) > 3


@pytest.mark.parametrize(
    ("code", "stored"),
    [
        (b"CUCKOO_V1", b"AAAA"),
        (b"SIMPLE", b"not base64!"),
        (b"SIMPLE", base64.b64encode(b"\xff\xff\xff\xff\x00\x00\x00\x05\x01\x00\x00\x10\x00")),
        (b"SIMPLE", base64.b64encode(b"\xff\xff\xff\xff\x00\x00\x00\x05\x00\x00\x00\x00\x08\x00")),
        (b"DYNAMIC_V0", base64.b64encode(b"\xff\xff\xff\xff\x00\x00")),
        (
            b"DYNAMIC_V0",
            base64.b64encode(b"\xff\xff\xff\xff\x00\x00\x00\x05\x01\x00\x00\x00\x08" + bytes(12)),
        ),
    ],
    ids=["newer kind", "not base64", "missing bits", "other hash", "truncated", "no filter"],
)
def test_an_unreadable_filter_rules_nothing_out(code, stored):
    footer = {b"org.apache.hudi.bloomfilter": stored, b"hoodie_bloom_filter_type_code": code}
    assert KeyFilter.of_footer(footer).may_hold(pa.array(KEYS)).all()
    assert KeyFilter.of_footer(None).may_hold(pa.array(KEYS)).all()


def test_keys_outside_the_key_range_are_ruled_out():
    keys = pa.array(["a", "b", "bb", "c", "d", "😀", "\uffee"])
    footer = {b"hoodie_min_record_key": b"b", b"hoodie_max_record_key": b"c"}
    may = KeyFilter.of_footer(footer).may_hold(keys)
    assert keys.filter(pa.array(may)).to_pylist() == ["b", "bb", "c"]
    # Java compares by UTF-16, in which the emoji sorts before U+FFEE.
    footer = {b"hoodie_max_record_key": "\uffee".encode()}
    assert KeyFilter.of_footer(footer).may_hold(keys).all()


def test_an_empty_filter_rules_out_all_keys_but_an_empty_one():
    one = _empty_filter(bits=64)
    part = pa.array(["long before", "key", "key2", None])[1:3]
    assert KeyFilter.of_footer(one).may_hold(part).tolist() == [False, False]
    assert not KeyFilter.of_footer(one).may_hold_any(part)
    assert np.array_equal(KeyFilter.of_footer(one).may_hold(pa.array([""])), [True])


def _empty_filter(bits: int) -> dict[bytes, bytes]:
    header = b"\xff\xff\xff\xff" + (3).to_bytes(4) + b"\x01" + bits.to_bytes(4)
    return {b"org.apache.hudi.bloomfilter": base64.b64encode(header + bytes(bits // 8))}
