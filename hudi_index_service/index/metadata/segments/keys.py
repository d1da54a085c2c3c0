"""Numbers that stand for the values of a column in a routing run.

An *exact* key is the value itself, moved into the unsigned 64-bit integers in Spark's order, which
only numbers, dates and the like have (`number_encoding`). A *hash* has `HASH_BITS` bits. Of numbers
it is drawn from the exact key, so that -0.0 and 0.0, and all NaNs, have one hash. Of texts and
binary values it is a polynomial of their bytes modulo 2^64 (of UTF-8 for texts). Both go through
the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), and the highest bits are kept.

Hashes are part of the disk format. Equal hashes of different values cost a look-up, not an answer.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hudi_index_parquet import polynomials

from hudi_index_service.arrow import as_numbers
from hudi_index_service.index.column_kinds import is_number
from hudi_index_service.index.number_encoding import INT64_MIN, encode_array

HASH_BITS = 48

Keys: TypeAlias = npt.NDArray[np.uint64]

_INCREMENT = 0x9E3779B97F4A7C15
_SIGN = np.uint64(1 << 63)


def is_routed(type: pa.DataType) -> bool:
    """Whether values of this type have keys: not arrays, structs and decimals beyond 18 digits."""
    return is_number(type) or _is_bytes(type)


def _is_bytes(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_binary(type))


def distinct(keys: Keys) -> Keys:
    """The keys, sorted, each once. Faster than `numpy.unique`, which hashes them first."""
    ordered = np.sort(keys)
    is_first = np.ones(len(ordered), dtype=bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def count_distinct(ordered: Keys) -> int:
    """The number of different keys among sorted ones."""
    return int(np.count_nonzero(np.diff(ordered))) + 1 if len(ordered) else 0


def exact_keys(values: pa.Array) -> Keys | None:
    """The exact keys of values without NULL; None for a type that has none."""
    if not is_number(values.type):
        return None
    encoded = as_numbers(encode_array(values))
    return encoded.view(np.uint64) ^ _SIGN


def exact_key(encoded: int) -> int:
    """The exact key of one number, encoded as `encode_array` does."""
    return encoded - INT64_MIN


def hashes(values: pa.Array) -> Keys:
    """The hashes of values without NULL, of a type for which `is_routed` holds."""
    exact = exact_keys(values)
    if exact is None:
        binary = values.view(pa.binary())  # texts of Spark are not always UTF-8
        exact = np.frombuffer(polynomials(binary), dtype="<u8").astype(np.uint64, copy=False)
    return hashes_of_exact(exact)


def hashes_of_exact(exact: Keys) -> Keys:
    """The hashes of numbers, by their exact keys."""
    mixed = exact + np.uint64(_INCREMENT)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(64 - HASH_BITS)
