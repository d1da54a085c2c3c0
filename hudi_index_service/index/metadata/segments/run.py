"""A routing run: sorted pairs of a value's key and a base file. They tell which files may hold a
value, or a number within a narrow range, without opening any file.

Pairs are packed bit by bit. The highest bits of a key choose one of the buckets of some 64 pairs
each; a directory says where each begins. The other bits stand in the pair, above the number of the
file. A key is a hash, or, for numbers without great gaps, the value itself less the least one.
Large runs keep only so many bits of a key that one in 32 values that are absent seems to be there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hudi_index_parquet import ParquetReadError, Routing
from pydantic import BaseModel, ConfigDict, Field

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.metadata.segments.bounds import (
    HASH_BITS,
    Keys,
    Mask,
    count_distinct,
    exact_keys,
    hashes,
    hashes_of_exact,
)
from hudi_index_service.index.number_encoding import INT64_MIN
from hudi_index_service.index.routed import Routed
from hudi_index_service.index.sorted_pairs import is_new, sorted_pairs

FULL_PAIRS = 2**20
"""Runs with at least as many pairs keep shorter keys, and are not merged again."""

_SPARE_BITS = 5  # of a short key beyond those that number the pairs
_BUCKET_BITS = 6  # pairs of a bucket, on average
_FULLEST_BUCKET = 2**10
_WIDEST = 57  # bits of a pair: with the 7 bits before its first byte they fit into 8 bytes


class RunLayout(BaseModel):
    """How a run's pairs are packed; see docs/format.md.

    Attributes:
        by_value: Whether keys are values, rather than hashes.
        base: The exact key of the least value; 0 for hashes.
        shift: The number of lowest bits that are cut off the distance from the base, or the hash.
        key_bits: The bits of a key, without those cut off.
        bucket_bits: The highest bits of a key, which choose its bucket.
        file_bits: The bits of a file's number.
        pairs: The number of pairs.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    by_value: bool
    base: Annotated[int, Field(ge=0, lt=2**64)]
    shift: Annotated[int, Field(ge=0, lt=64)]
    key_bits: Annotated[int, Field(ge=0, le=HASH_BITS)]
    bucket_bits: Annotated[int, Field(ge=0, le=32)]
    file_bits: Annotated[int, Field(ge=0, le=32)]
    pairs: Annotated[int, Field(ge=0)]

    @property
    def pair_bits(self) -> int:
        """The bits of a packed pair."""
        return self.key_bits - self.bucket_bits + self.file_bits

    @property
    def is_full(self) -> bool:
        """Whether it is too large to be merged, or has been."""
        return self.pairs >= FULL_PAIRS

    @property
    def packed_bytes(self) -> int:
        """The length of the packed pairs, with 8 bytes more that let the last ones be read."""
        return -(-self.pairs * self.pair_bits // 8) + 8

    @property
    def directory_bytes(self) -> int:
        """The length of the directory: the position of each bucket's first pair, and their end, as
        little-endian unsigned 32-bit integers."""
        return 4 * ((1 << self.bucket_bits) + 1)


@dataclass(frozen=True, slots=True)
class PackedRun:
    """A run's layout, its directory, and its packed pairs."""

    layout: RunLayout
    directory: bytes
    pairs: bytes


@dataclass(frozen=True, slots=True)
class Pairs:
    """Unpacked pairs, sorted by key, then file, without repetition.

    Attributes:
        by_value: Whether keys are exact keys, rather than hashes.
        keys, files: One of each a pair.
        cut_bits: The number of lowest bits of keys that are not known: of the hash, or of the exact
            key's distance from the least one. They are 0.
    """

    by_value: bool
    keys: Keys
    files: npt.NDArray[np.uint32]
    cut_bits: int = 0

    @classmethod
    def of_file(cls, keys: Keys, *, by_value: bool, file: int = 0) -> "Pairs":
        """The pairs of one file. The keys are sorted, without repetition."""
        return cls(by_value, keys, np.full(len(keys), file, dtype=np.uint32))

    def as_hashes(self) -> "Pairs":
        """The same pairs by hash; whole exact keys can be hashed."""
        if not self.by_value:
            return self
        assert not self.cut_bits, "keys of which only some bits are known have no hash"
        return _sorted(False, hashes_of_exact(self.keys), self.files)

    def renumbered(self, numbers: npt.NDArray[np.int64]) -> "Pairs":
        """With other numbers for the files, in the same order; pairs of files whose number is
        negative are dropped."""
        files = numbers[self.files]
        kept = files >= 0
        kept_files = files[kept].astype(np.uint32)
        return Pairs(self.by_value, self.keys[kept], kept_files, self.cut_bits)


def joined(parts: Sequence[Pairs]) -> Pairs:
    """The pairs of several runs, none of them full: by value if all are."""
    by_value = all(each.by_value for each in parts)
    parts = parts if by_value else [each.as_hashes() for each in parts]
    assert not any(each.cut_bits for each in parts), "full runs are not joined"
    keys = np.concatenate([each.keys for each in parts])
    return _sorted(by_value, keys, np.concatenate([each.files for each in parts]))


def _sorted(by_value: bool, keys: Keys, files: npt.NDArray[np.uint32]) -> Pairs:
    keys, files = sorted_pairs(keys, files)
    kept = is_new(keys) | is_new(files)
    return Pairs(by_value, keys[kept], files[kept])


# --- packing ---------------------------------------------------------------------------------


def packed(pairs: Pairs) -> PackedRun | None:
    """The pairs as a run; None for exact keys of which only some bits are known, if they lie too
    unevenly."""
    by_value = _by_value(pairs) if pairs.by_value else None
    if by_value is not None or (pairs.by_value and pairs.cut_bits):
        return by_value
    hashed = pairs.as_hashes()
    count = len(hashed.keys)
    bits = HASH_BITS if count < FULL_PAIRS else _bits(count) + _SPARE_BITS
    shift = max(HASH_BITS - bits, hashed.cut_bits)
    return _packed(hashed, base=0, shift=shift, key_bits=HASH_BITS - shift)


def _by_value(pairs: Pairs) -> PackedRun | None:
    """Packed by value; None if values lie too far apart, or so unevenly that a bucket overflows."""
    count = len(pairs.keys)
    if not count:
        return None
    base = int(pairs.keys[0])
    span = _bits(int(pairs.keys[-1]) - base + 1)
    shift = pairs.cut_bits
    if count >= FULL_PAIRS:
        shift = max(shift, span - _bits(count) - _SPARE_BITS)
        coarse = count_distinct((pairs.keys - np.uint64(base)) >> np.uint64(shift))
        if coarse < 0.9 * count_distinct(pairs.keys):
            return None
    if span - shift > HASH_BITS:
        return None
    run = _packed(pairs, base=base, shift=shift, key_bits=max(0, span - shift))
    fullest = np.diff(np.frombuffer(run.directory, dtype="<u4")).max()
    return run if fullest <= _FULLEST_BUCKET else None


def _packed(pairs: Pairs, *, base: int, shift: int, key_bits: int) -> PackedRun:
    count = len(pairs.keys)
    layout = RunLayout(
        by_value=pairs.by_value,
        base=base,
        shift=shift,
        key_bits=key_bits,
        bucket_bits=min(max(0, _bits(count) - _BUCKET_BITS), key_bits),
        file_bits=_bits(int(pairs.files.max()) + 1) if count else 0,
        pairs=count,
    )
    keys = (pairs.keys - np.uint64(base)) >> np.uint64(shift)
    kept_bits = np.uint64(key_bits - layout.bucket_bits)
    buckets = keys >> kept_bits
    counts = np.bincount(buckets.astype(np.int64), minlength=2**layout.bucket_bits)
    directory = np.concatenate(([0], np.cumsum(counts))).astype("<u4").tobytes()
    within = keys & ((np.uint64(1) << kept_bits) - np.uint64(1))
    numbers = (within << np.uint64(layout.file_bits)) | pairs.files.astype(np.uint64)
    return PackedRun(layout, directory, _pack_bits(numbers, layout.pair_bits))


def _bits(count: int) -> int:
    """The bits that tell so many things apart."""
    return (count - 1).bit_length() if count else 0


def _pack_bits(numbers: Keys, width: int) -> bytes:
    """The numbers of `width` bits each, lowest bit first, and 8 bytes of zeros."""
    assert width <= _WIDEST, "keys are cut, and files numbered, so that a pair fits"
    length = -(-len(numbers) * width // 8)
    groups = -(-len(numbers) // 8)
    padded = np.zeros((groups, 8), dtype=np.uint64)
    padded.reshape(-1)[: len(numbers)] = numbers
    # Eight numbers take `width` bytes. Each is added, byte by byte, where it begins.
    out = np.zeros((groups, width + 8), dtype=np.uint8)
    for position in range(8):
        first, offset = divmod(position * width, 8)
        shifted = padded[:, position] << np.uint64(offset)
        for byte in range(-(-(width + offset) // 8)):
            out[:, first + byte] |= (shifted >> np.uint64(8 * byte)).astype(np.uint8)
    return out[:, :width].tobytes()[:length] + bytes(8)


# --- reading ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """A packed run, ready for look-ups. Make it by `of`.

    Attributes:
        packed: Returns all packed pairs, of which some parts are needed: the first byte of each,
            and the end. The others may have any value.
    """

    layout: RunLayout
    routing: Routing
    packed: Callable[[Sequence[tuple[int, int]]], npt.NDArray[np.uint8]]

    @classmethod
    def of(
        cls,
        layout: RunLayout,
        directory: bytes,
        packed: Callable[[Sequence[tuple[int, int]]], npt.NDArray[np.uint8]],
    ) -> "Run":
        """Raises EntryInvalid if the directory does not fit the layout."""
        fields = layout.model_dump(exclude={"by_value"})
        try:
            return cls(layout, Routing(**fields, directory=directory), packed)
        except ParquetReadError as error:
            raise EntryInvalid(f"{str(error).capitalize()}.") from error

    def pairs(self) -> Pairs:
        """All pairs, unpacked."""
        layout = self.layout
        kept, files = self.routing.unpack(self.packed([(0, layout.packed_bytes)]).data)
        keys = np.frombuffer(kept, np.uint64) << np.uint64(layout.shift)
        keys += np.uint64(layout.base)
        return Pairs(layout.by_value, keys, np.frombuffer(files, np.uint32), layout.shift)

    def keys_of(self, values: pa.Array) -> Keys:
        """The keys of values in this run: exact ones if it is by value and they have some, else
        hashes.

        Args:
            values: Without NULL, of a type for which `is_routed` holds.
        """
        exact = exact_keys(values) if self.layout.by_value else None
        return hashes(values) if exact is None else exact

    def key_of(self, encoded: int) -> Keys:
        """The key of one number in this run.

        Args:
            encoded: The number, as `encode_array` encodes it.
        """
        exact = np.array([encoded - INT64_MIN], dtype=np.uint64)
        return exact if self.layout.by_value else hashes_of_exact(exact)

    def located(self, keys: Keys, files: int) -> Routed:
        """Which values files may hold.

        Args:
            keys: The values' keys in this run, in any order.
            files: The number of files.
        """
        packed = self.packed(self.routing.parts_of(keys.data))
        starts, numbers = self.routing.route(keys.data, files, packed.data)
        ends = np.frombuffer(starts, np.int32)
        return Routed(np.frombuffer(numbers, np.int32), ends[:-1], ends[1:])

    def within(self, low: int, high: int, most: int, files: int) -> Mask | None:
        """Whether each file may hold a number between two exact keys, both included. None if the
        run is not by value, or more than `most` pairs would have to be looked at."""
        if not self.layout.by_value:
            return None
        pairs, first, end = self.routing.between(low, high)
        if pairs > most:
            return None
        packed = self.packed([(first, end)] if pairs else [])
        return np.frombuffer(self.routing.route_between(low, high, files, packed.data), np.bool_)
