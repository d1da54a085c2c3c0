"""Sorts pairs of a key and the number of a row or a file, which indexes and routing runs consist
of."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Keys: TypeAlias = npt.NDArray[np.uint64]
Ids: TypeAlias = npt.NDArray[np.uint32]

_BITS = 64


def sorted_pairs(keys: Keys, ids: Ids) -> tuple[Keys, Ids]:
    """Pairs of a key and a number, in order of both."""
    if not len(keys):
        return keys, ids
    least, id_bits = keys.min(), int(ids.max()).bit_length()
    shift = np.uint64(id_bits)
    if int(keys.max() - least).bit_length() + id_bits <= _BITS:
        # Both in one number: no order to keep and to apply, and several times as fast.
        both = np.sort(((keys - least) << shift) | ids)
        ids = (both & ((np.uint64(1) << shift) - np.uint64(1))).astype(np.uint32)
        return (both >> shift) + least, ids
    order = np.argsort(keys)
    keys, ids = keys[order], ids[order]
    # Equal keys came in any order: sort the numbers within each.
    number_of_key = np.cumsum(is_new(keys), dtype=np.uint64)
    return keys, np.sort((number_of_key << np.uint64(32)) | ids).astype(np.uint32)


def is_new(ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """For each of some sorted numbers, whether it differs from the one before."""
    is_first = np.ones(len(ordered), dtype=bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return is_first
