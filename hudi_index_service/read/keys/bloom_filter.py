"""Checks which record keys a base file may hold, by the data that Hudi writes into its footer: the
least and the greatest key, and a Bloom filter.

The filters are those of Hudi's `SimpleBloomFilter` and `HoodieDynamicBoundedBloomFilter`: the
base64 of the output of Hadoop's `BloomFilter.write`, big-endian, with the bits in order from the
lowest of the first byte. A key sets the bits ``abs(h % size)`` for a chain of MurmurHash2 values h,
each the seed of the next.
A filter of a newer kind rules nothing out.
"""

import base64
import binascii
import logging
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_numbers, as_truths, numbers_array, text_scalar

log = logging.getLogger(__name__)

_FILTER = b"org.apache.hudi.bloomfilter"
_TYPE_CODE = b"hoodie_bloom_filter_type_code"
_LEAST = b"hoodie_min_record_key"
_GREATEST = b"hoodie_max_record_key"

_VERSION = -1
_MURMUR_HASH = 1
_FACTOR = np.uint32(0x5BD1E995)
_FIRST_KEYS = 256
_KEYS_AT_ONCE = 65_536

Hashes = np.ndarray[tuple[int], np.dtype[np.uint32]]
Positions = np.ndarray[tuple[int], np.dtype[np.int64]]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class _Filter:
    """One Bloom filter of `size` bits, of which each key sets `hashes`."""

    hashes: int
    size: int
    bits: np.ndarray[tuple[int], np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """The bounds and filters of record keys in a footer. Make it by `of_footer`."""

    least: str | None
    greatest: str | None
    filters: tuple[_Filter, ...] | None

    @classmethod
    def of_footer(cls, metadata: Mapping[bytes, bytes] | None) -> "KeyFilter":
        """The filter of a base file, from the key-value metadata of its footer; missing or unknown
        parts rule nothing out."""
        metadata = metadata or {}
        least, greatest = metadata.get(_LEAST), metadata.get(_GREATEST)
        return cls(
            None if least is None else least.decode(errors="replace"),
            None if greatest is None else greatest.decode(errors="replace"),
            _filters(metadata),
        )

    def may_hold(self, keys: pa.StringArray) -> Mask:
        """For each non-NULL key, whether the file may hold it; False is certain."""
        possible = np.ones(len(keys), dtype=bool)
        if self.least is not None and _orders_alike(self.least):
            possible &= as_truths(pc.greater_equal(keys, text_scalar(self.least)))
        if self.greatest is not None and _orders_alike(self.greatest):
            possible &= as_truths(pc.less_equal(keys, text_scalar(self.greatest)))
        if self.filters is not None:
            left = np.flatnonzero(possible)
            possible[left] = _may_hold(self.filters, keys.take(numbers_array(left)))
        return possible

    def may_hold_any(self, keys: pa.StringArray) -> bool:
        """Whether the file may hold any of the keys; checks few keys if it does."""
        more = range(_KEYS_AT_ONCE, len(keys) + _KEYS_AT_ONCE, _KEYS_AT_ONCE)
        ends = pairwise((0, _FIRST_KEYS, *more))
        return any(self.may_hold(keys[start:end]).any() for start, end in ends)


def _orders_alike(bound: str) -> bool:
    """Whether comparing keys with this one gives the same order in UTF-8 and UTF-16; Hudi uses one
    or the other. Only characters from the surrogates on differ."""
    return all(ord(character) < 0xD800 for character in bound)


# --- reading a filter ------------------------------------------------------------------------


def _filters(metadata: Mapping[bytes, bytes]) -> tuple[_Filter, ...] | None:
    """The Bloom filters, any of which may have a key; None if there is no filter of a known
    type."""
    stored, code = metadata.get(_FILTER), metadata.get(_TYPE_CODE, b"SIMPLE")
    if stored is None or code not in (b"SIMPLE", b"DYNAMIC_V0"):
        return None
    number = 1
    try:
        data = BytesIO(base64.b64decode(stored, validate=True))
        if code == b"DYNAMIC_V0":
            _header(data)
            _, _, number = _integers(">iii", data)
        return tuple(_filter(data) for _ in range(number)) or None
    except (binascii.Error, struct.error, ValueError) as error:
        log.warning("A base file's Bloom filter cannot be read and is ignored: %s", error)
        return None


def _filter(data: BytesIO) -> _Filter:
    hashes, size = _header(data)
    length = (size + 7) // 8
    return _Filter(hashes, size, np.frombuffer(data.read(length), np.uint8, length))


def _header(data: BytesIO) -> tuple[int, int]:
    """The number of hashes and of bits."""
    version, hashes, kind, size = _integers(">iibi", data)
    if version != _VERSION or kind != _MURMUR_HASH or hashes <= 0 or size <= 0:
        raise ValueError(f"version {version}, hash {kind}, {hashes} hashes of {size} bits")
    return hashes, size


def _integers(layout: str, data: BytesIO) -> tuple[int, ...]:
    return struct.unpack(layout, data.read(struct.calcsize(layout)))


# --- testing keys ----------------------------------------------------------------------------


def _may_hold(filters: tuple[_Filter, ...], keys: pa.StringArray) -> Mask:
    values = keys.cast(pa.binary())
    lengths = as_numbers(pc.binary_length(values))
    possible = np.ones(len(keys), dtype=bool)  # filters neither hold nor reject empty keys
    for length in np.unique(lengths[lengths > 0]):
        same = np.flatnonzero(lengths == length)
        hashed_keys = _HashedKeys.of(values.take(numbers_array(same)), int(length))
        possible[same] = np.logical_or.reduce([hashed_keys.may_be_in(each) for each in filters])
    return possible


@dataclass(frozen=True, slots=True)
class _HashedKeys:
    """Keys of one length in bytes, prepared for MurmurHash2 with any seed.

    Attributes:
        words: Mixed words of four bytes each; one row per word, one column per key.
        tail: The up to three remaining bytes; None if there are none.
    """

    length: int
    words: np.ndarray[tuple[int, int], np.dtype[np.uint32]]
    tail: Hashes | None

    @classmethod
    def of(cls, values: pa.BinaryArray, length: int) -> "_HashedKeys":
        # After `take`, the array starts where its buffer does, and has no gaps.
        flat = np.frombuffer(values.buffers()[2], np.uint8, length * len(values))
        table = flat.reshape(len(values), length)
        whole = length - length % 4
        words = np.ascontiguousarray(table[:, :whole]).view("<u4").T.astype(np.uint32)
        words = words * _FACTOR
        words = (words ^ (words >> np.uint32(24))) * _FACTOR
        tail: Hashes | None = None
        if length % 4:
            # Java's bytes are signed, and the sign is extended.
            last = table[:, whole:].view(np.int8).astype(np.int32).view(np.uint32)
            tail = np.zeros(len(values), np.uint32)
            for byte in range(length % 4):
                # Of three bytes the first is the highest; of one, the only one is the lowest.
                tail ^= last[:, byte] << np.uint32(8 * (length % 4 - 1 - byte))
        return cls(length, words, tail)

    def may_be_in(self, bloom_filter: _Filter) -> Mask:
        """For each key, whether all of its bits are set in the filter."""
        mask = np.zeros(self.words.shape[1], dtype=bool)
        left = np.arange(len(mask))
        seeds = np.zeros(len(mask), np.uint32)
        for _ in range(bloom_filter.hashes):
            seeds = self._hash(left, seeds)
            bits = np.abs(seeds.view(np.int32).astype(np.int64)) % bloom_filter.size
            hits = (bloom_filter.bits[bits >> 3] >> (bits & 7).astype(np.uint8)) & 1 == 1
            left, seeds = left[hits], seeds[hits]
        mask[left] = True
        return mask

    def _hash(self, keys: Positions, seeds: Hashes) -> Hashes:
        hashes = seeds ^ np.uint32(self.length)
        for group in self.words:
            hashes = (hashes * _FACTOR) ^ group[keys]
        if self.tail is not None:
            hashes = (hashes ^ self.tail[keys]) * _FACTOR
        hashes = (hashes ^ (hashes >> np.uint32(13))) * _FACTOR
        return hashes ^ (hashes >> np.uint32(15))
