"""Verifies a packed tree: reads every leaf, and compares it with its neighbors and the
manifest."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice, pairwise

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from hudi_index_service.arrow import binary_array
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.btree.fields import has_number_keys, trees_of
from hudi_index_service.index.btree.keys import Keys, key_bytes
from hudi_index_service.index.btree.leaf_file import LeafStore
from hudi_index_service.index.btree.merge import MergeSource
from hudi_index_service.index.btree.tree import Branch, LeafPlace
from hudi_index_service.index.contract import PackedIndex, StoredColumn
from hudi_index_service.index.stored_column import is_array

_AT_ONCE = 64  # leaves


def check_index(index: PackedIndex, columns: Sequence[StoredColumn]) -> list[str]:
    """The defects of the index, one sentence each; see `IndexType.verify`."""
    try:
        with ExitStack() as stack:
            source = MergeSource.of_part(index)
            stack.callback(source.close)
            return list(findings(source, index.rows, columns))
    except EntryInvalid as error:
        return [error.message]


def findings(source: MergeSource, rows: int, columns: Sequence[StoredColumn]) -> Iterator[str]:
    """The defects of a tree and its leaves, wherever the leaves are stored.

    Raises:
        EntryInvalid: a leaf cannot be read.
    """
    numbers = {name: n for n, name in enumerate(source.description.columns)}
    for column in trees_of(columns):
        if column.name not in numbers:
            yield f"column {column.name} is missing."
            continue
        if source.description.columns[column.name] != has_number_keys(column.type):
            yield f"column {column.name} has keys of another kind."
            continue
        yield from _of_column(source, rows, column, numbers[column.name])


def _of_column(source: MergeSource, rows: int, column: StoredColumn, number: int) -> Iterator[str]:
    nulls = source.rows(number, Branch.NULLS)
    if len(nulls) != column.null_count:
        yield (
            f"column {column.name} is NULL in {len(nulls)} rows; the manifest says "
            f"{column.null_count}."
        )
    values, last = 0, b""
    row_ids = BitMap(nulls)
    for place in _leaf_places(source, number):
        try:
            keys, ids = _checked_leaf(source.leaves, place)
        except EntryInvalid as error:
            yield f"column {column.name}: {error.message}"
            return
        first = key_bytes(keys, 0)
        if place.before != values or first != place.key or (values and first <= last):
            yield f"column {column.name} has leaves that do not follow each other."
            return
        values, last = values + place.rows, key_bytes(keys, len(keys) - 1)
        row_ids |= ids
    if row_ids and row_ids.max() >= rows:
        yield f"column {column.name} has rows that the base file does not have."
    if not is_array(column.type) and (values + len(nulls), len(row_ids)) != (rows, rows):
        yield f"column {column.name} has {values} values and {len(nulls)} NULLs in {rows} rows."


def _leaf_places(source: MergeSource, column: int) -> Iterator[LeafPlace]:
    """The leaves of a column's values, fetched in batches."""
    places = iter(source.tree.leaves(column))
    while batch := list(islice(places, _AT_ONCE)):
        source.leaves.expect(batch)
        yield from batch


def _checked_leaf(leaves: LeafStore, place: LeafPlace) -> tuple[Keys, BitMap]:
    """A leaf's keys and rows.

    Raises:
        EntryInvalid: it is damaged, or out of order.
    """
    if place.is_set:
        return binary_array([place.key], pa.large_binary()), leaves.set(place)
    leaf = leaves.packed(place)
    keys, rows = leaf.keys, leaf.rows
    if any(first >= second for first, second in pairwise(keys.to_pylist())):
        raise EntryInvalid(f"the keys of the leaf at {place.offset} are out of order.")
    begins = np.zeros(len(rows) + 1, dtype=bool)
    begins[leaf.starts] = True
    if not (begins[1:-1] | (rows[1:] > rows[:-1])).all():
        raise EntryInvalid(f"the rows of the leaf at {place.offset} are out of order.")
    return keys, BitMap(rows)
