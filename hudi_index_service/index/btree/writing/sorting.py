"""Sorts a column's values with their row ids."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_numbers, numbers_array
from hudi_index_service.index.btree.keys import ByteKeys
from hudi_index_service.index.btree.writing.groups import Groups, grouped

_BITS = 64
_SAMPLE = 100_000
_REPEATED = 0.04  # share of a sample from which on sorting only the distinct values pays


def sorted_numbers(keys: np.ndarray, rows: np.ndarray, *, unique: bool) -> Groups:
    """Groups of number keys with a row id each; see `grouped`."""
    if not len(keys):
        return Groups(keys, np.zeros(0, dtype=np.int64), rows)
    least, row_bits = keys.min(), int(rows.max()).bit_length()
    shift = np.uint64(row_bits)
    if int(keys.max() - least).bit_length() + row_bits <= _BITS:
        # Key and row in one number: no order to keep and to apply to the rows.
        both = np.sort(((keys - least) << shift) | rows)
        keys = (both >> shift) + least
        rows = (both & ((np.uint64(1) << shift) - np.uint64(1))).astype(np.uint32)
        return grouped(keys, rows, unique=unique)
    order = np.argsort(keys)
    keys, rows = keys[order], rows[order]
    begins = np.empty(len(keys), dtype=np.uint64)
    begins[0] = 0
    begins[1:] = keys[1:] != keys[:-1]
    # Equal keys came in any order: sort the row ids within each.
    within = np.sort((np.cumsum(begins, dtype=np.uint64) << np.uint64(32)) | rows)
    return grouped(keys, within.astype(np.uint32), unique=unique)


def sorted_bytes(arrays: Sequence[pa.Array], rows: np.ndarray, *, unique: bool) -> Groups:
    """Like `sorted_numbers`, for byte keys; the rows of equal keys come in ascending order."""
    kind = pa.large_binary()
    array = pa.concat_arrays([pa.nulls(0, kind), *(each.cast(kind) for each in arrays)])
    if not len(array):
        return Groups(ByteKeys.of(array), np.zeros(0, dtype=np.int64), rows)
    if _repeats(array):
        encoded = array.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary)
        ranks = np.empty(len(order), dtype=np.uint64)
        ranks[as_numbers(order)] = np.arange(len(order), dtype=np.uint64)
        groups = sorted_numbers(ranks[as_numbers(encoded.indices)], rows, unique=unique)
        keys = ByteKeys.of(encoded.dictionary.take(order))
        return Groups(keys, groups.counts, groups.rows)
    order = pc.sort_indices(array)
    return grouped(ByteKeys.of(array.take(order)), rows[as_numbers(order)], unique=unique)


def _repeats(array: pa.Array) -> bool:
    """Whether there are noticeably fewer distinct values than values."""
    step = -(-len(array) // _SAMPLE)
    sample = array.take(numbers_array(np.arange(0, len(array), step)))
    return int(pc.count_distinct(sample).as_py()) <= (1 - _REPEATED) * len(sample)
