"""Which record keys a base file may hold, by what Hudi writes into its footer: the least and the
greatest key, and a Bloom filter.

The filters are those of Hudi's `SimpleBloomFilter` and `HoodieDynamicBoundedBloomFilter`: base64 of
what Hadoop's `BloomFilter.write` writes, big-endian, the bits from the lowest of the first byte on.
A key sets the bits ``abs(h % size)`` for a chain of MurmurHash2 values h, each the seed of the
next.
A filter of a newer kind rules nothing out.
"""

import base64
import binascii
import logging
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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

Bits = np.ndarray[tuple[int], np.dtype[np.uint8]]
Hashes = np.ndarray[tuple[int], np.dtype[np.uint32]]
Positions = np.ndarray[tuple[int], np.dtype[np.int64]]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class _Filter:
    """One Bloom filter: `size` bits, of which each key sets as many as `hashes`."""

    hashes: int
    size: int
    bits: Bits


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """What a footer says of the file's record keys. Make it by `of_footer`."""

    least: str | None
    greatest: str | None
    filters: tuple[_Filter, ...] | None

    @classmethod
    def of_footer(cls, metadata: Mapping[bytes, bytes] | None) -> "KeyFilter":
        """The filter of a base file, by the key-value metadata of its footer; what is not there, or
        not known here, rules nothing out."""
        metadata = metadata or {}
        least, greatest = metadata.get(_LEAST), metadata.get(_GREATEST)
        return cls(
            None if least is None else least.decode(errors="replace"),
            None if greatest is None else greatest.decode(errors="replace"),
            _filters(metadata),
        )

    def may_hold(self, keys: pa.StringArray) -> Mask:
        """For each key, none of them NULL, whether the file may hold it; False means surely not."""
        possible = np.zeros(len(keys), dtype=bool)
        for some, may in self._portions(keys):
            possible[some] = may
        return possible

    def may_hold_any(self, keys: pa.StringArray) -> bool:
        """Whether the file may hold any of the keys; looks at few where it does."""
        return any(may.any() for _, may in self._portions(keys))

    def _portions(self, keys: pa.StringArray) -> Iterator[tuple[Positions, Mask]]:
        """Positions of keys, and for each whether the file may hold it; those left out it does not
        hold."""
        within = np.ones(len(keys), dtype=bool)
        if self.least is not None and _orders_alike(self.least):
            within &= _numpy(pc.greater_equal(keys, self.least))
        if self.greatest is not None and _orders_alike(self.greatest):
            within &= _numpy(pc.less_equal(keys, self.greatest))
        left, start, at_once = np.flatnonzero(within), 0, _FIRST_KEYS
        while start < len(left):
            some = left[start : start + at_once]
            if self.filters is None:
                yield some, np.ones(len(some), dtype=bool)
            else:
                yield some, _may_hold(self.filters, keys.take(pa.array(some)))
            start, at_once = start + at_once, _KEYS_AT_ONCE


def _orders_alike(bound: str) -> bool:
    """Whether keys are below or above this one in UTF-8 as they are in UTF-16: Hudi compares by one
    or the other. Only characters from the surrogates on stand differently."""
    return all(ord(character) < 0xD800 for character in bound)


def _numpy(mask: pa.BooleanArray) -> Mask:
    found: Mask = mask.to_numpy(zero_copy_only=False)
    return found


# --- reading a filter ------------------------------------------------------------------------


def _filters(metadata: Mapping[bytes, bytes]) -> tuple[_Filter, ...] | None:
    """The Bloom filters, any of which may have a key; None if there is none that is known here."""
    stored, code = metadata.get(_FILTER), metadata.get(_TYPE_CODE, b"SIMPLE")
    if stored is None or code not in (b"SIMPLE", b"DYNAMIC_V0"):
        return None
    try:
        reader = _Reader(base64.b64decode(stored, validate=True))
        filters = (reader.filter(),) if code == b"SIMPLE" else tuple(reader.dynamic())
    except (binascii.Error, struct.error, ValueError) as error:
        log.warning("A base file's Bloom filter is not understood, and passed over: %s", error)
        return None
    return filters


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def _read(self, layout: str) -> tuple[int, ...]:
        found: tuple[int, ...] = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return found

    def _header(self) -> tuple[int, int]:
        version, hashes, kind, size = self._read(">iibi")
        if version != _VERSION or kind != _MURMUR_HASH or hashes <= 0 or size <= 0:
            raise ValueError(f"version {version}, hash {kind}, {hashes} hashes of {size} bits")
        return hashes, size

    def filter(self) -> _Filter:
        hashes, size = self._header()
        length = (size + 7) // 8
        bits = np.frombuffer(self._data, np.uint8, length, self._position)
        self._position += length
        return _Filter(hashes, size, bits)

    def dynamic(self) -> Iterator[_Filter]:
        self._header()
        _, _, filters = self._read(">iii")
        for _ in range(filters):
            yield self.filter()


# --- asking it -------------------------------------------------------------------------------


def _may_hold(filters: tuple[_Filter, ...], keys: pa.StringArray) -> Mask:
    values = keys.cast(pa.binary())
    lengths = _lengths(values)
    possible = np.ones(len(keys), dtype=bool)  # an empty key is in no filter, nor refused by one
    for length in np.unique(lengths[lengths > 0]):
        same = np.flatnonzero(lengths == length)
        hashed = _HashedKeys.of(values.take(pa.array(same)), int(length))
        possible[same] = np.logical_or.reduce([hashed.found_in(each) for each in filters])
    return possible


def _lengths(values: pa.BinaryArray) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    lengths: np.ndarray[tuple[int], np.dtype[np.int32]] = pc.binary_length(values).to_numpy()
    return lengths


@dataclass(frozen=True, slots=True)
class _HashedKeys:
    """Keys of one length in bytes, prepared for MurmurHash2 with any seed.

    Attributes:
        words: Of each group of four bytes, mixed: one row a group, one column a key.
        tail: Of the up to three bytes behind them; None if there are none.
    """

    length: int
    words: np.ndarray[tuple[int, int], np.dtype[np.uint32]]
    tail: Hashes | None

    @classmethod
    def of(cls, values: pa.BinaryArray, length: int) -> "_HashedKeys":
        # Taken anew, the array starts where its buffer does, and has no gaps.
        flat = np.frombuffer(values.buffers()[2], np.uint8, length * len(values))
        table = flat.reshape(len(values), length)
        whole = length - length % 4
        words = np.ascontiguousarray(table[:, :whole]).view("<u4").T.astype(np.uint32)
        words = words * _FACTOR
        words = (words ^ (words >> np.uint32(24))) * _FACTOR
        tail: Hashes | None = None
        if length % 4:
            # Java's bytes have a sign, which spreads upwards.
            last = table[:, whole:].view(np.int8).astype(np.int32).view(np.uint32)
            tail = np.zeros(len(values), np.uint32)
            for byte in range(length % 4):
                # Of three bytes the first is the highest; of one, the only one is the lowest.
                tail ^= last[:, byte] << np.uint32(8 * (length % 4 - 1 - byte))
        return cls(length, words, tail)

    def found_in(self, one: _Filter) -> Mask:
        """For each key, whether all its bits are set in the filter."""
        found = np.zeros(self.words.shape[1], dtype=bool)
        left = np.arange(len(found))
        seeds = np.zeros(len(found), np.uint32)
        for _ in range(one.hashes):
            seeds = self._hash(left, seeds)
            bits = np.abs(seeds.view(np.int32).astype(np.int64)) % one.size
            hits = (one.bits[bits >> 3] >> (bits & 7).astype(np.uint8)) & 1 == 1
            left, seeds = left[hits], seeds[hits]
        found[left] = True
        return found

    def _hash(self, keys: Positions, seeds: Hashes) -> Hashes:
        hashes = seeds ^ np.uint32(self.length)
        for group in self.words:
            hashes = (hashes * _FACTOR) ^ group[keys]
        if self.tail is not None:
            hashes = (hashes ^ self.tail[keys]) * _FACTOR
        hashes = (hashes ^ (hashes >> np.uint32(13))) * _FACTOR
        return hashes ^ (hashes >> np.uint32(15))
