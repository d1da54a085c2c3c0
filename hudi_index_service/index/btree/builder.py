"""Builds a tree from Arrow record batches: sorts runs that fit into memory, and merges them."""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from hudi_index_service.arrow import as_numbers, as_truths, numbers_array
from hudi_index_service.index.btree.fields import KEY, composite_keys, composites, has_number_keys
from hudi_index_service.index.btree.keys import byte_keys, number_keys
from hudi_index_service.index.btree.merge import MergeSource, merge
from hudi_index_service.index.btree.tree import Branch
from hudi_index_service.index.btree.writer import Groups, TreeWriter, grouped
from hudi_index_service.index.contract import BuiltIndex, ColumnSpec, ColumnStatistics
from hudi_index_service.index.sorted_pairs import sorted_pairs
from hudi_index_service.index.stored_column import is_array
from hudi_index_service.predicate.evaluate import element_rows

_MIB = 2**20
_SAMPLE = 100_000
_REPEATED = 0.04  # share of a sample from which on sorting only the distinct values pays
_SORTING = 3  # sorting needs this many times a column's bytes in addition


@dataclass(slots=True)
class _Tree:
    """The keys of one tree added since the last run was written.

    Attributes:
        name: The column, or the field of a composite key.
        type: The type of the column; bytes for a composite key.
        places: The places of its columns in a batch.
    """

    name: str
    type: pa.DataType
    places: tuple[int, ...]
    keys: list[np.ndarray | pa.Array] = field(default_factory=list)
    rows: list[range | np.ndarray] = field(default_factory=list)
    held_bytes: int = 0
    nulls: BitMap = field(default_factory=BitMap)
    null_elements: BitMap = field(default_factory=BitMap)
    cut: int = 0

    def add(self, batch: pa.RecordBatch, first_row: int) -> None:
        """Adds a batch's values."""
        columns = [batch.column(place) for place in self.places]
        array = columns[0] if len(columns) == 1 else composite_keys(columns)
        rows: range | np.ndarray = range(first_row, first_row + len(array))
        if array.null_count:
            self.nulls |= _rows_where(array.is_null(), rows)
        if is_array(self.type):
            rows = _ids(rows)[element_rows(array)]
            array = pc.list_flatten(array)
            if array.null_count:
                self.null_elements |= _rows_where(array.is_null(), rows)
        if array.null_count:
            rows = _ids(rows)[as_truths(array.is_valid())]
            array = array.drop_null()
        if has_number_keys(self.type):
            keys: np.ndarray | pa.Array = number_keys(array)
        else:
            keys, cut = byte_keys(array)
            self.cut += cut
        self.keys.append(keys)
        self.rows.append(rows)
        self.held_bytes += int(keys.nbytes) + (0 if isinstance(rows, range) else rows.nbytes)

    def sort(self) -> Groups:
        """Sorts the values with their rows, and releases them."""
        keys, rows = self.keys, self.rows
        self.keys, self.rows, self.held_bytes = [], [], 0
        unique = is_array(self.type)
        row_ids = np.concatenate([np.zeros(0, dtype=np.uint32), *map(_ids, rows)])
        if has_number_keys(self.type):
            numbers = np.concatenate(keys) if keys else np.zeros(0, dtype=np.uint64)
            return sorted_numbers(numbers, row_ids, unique=unique)
        return sorted_bytes(keys, row_ids, unique=unique)


def _ids(rows: range | np.ndarray) -> np.ndarray:
    if isinstance(rows, range):
        return np.arange(rows.start, rows.stop, dtype=np.uint32)
    return rows


def _rows_where(mask: pa.Array, rows: range | np.ndarray) -> BitMap:
    row_ids: np.ndarray = _ids(rows)[as_truths(mask)]
    return BitMap(np.unique(row_ids))


class BTreeBuilder:
    """See `hudi_index_service.index.contract.IndexBuilder`.

    Values are held until sorting them takes `memory_mb`. They are then sorted and written as a
    separate index, a run. At the end, all runs are merged.
    """

    def __init__(
        self, columns: Sequence[ColumnSpec], folder: Path, *, memory_mb: int, threads: int = 1
    ) -> None:
        self._columns = tuple(columns)
        self._nulls = dict.fromkeys((spec.name for spec in columns), 0)
        self._trees = list(_trees(columns))
        self._folder = folder
        self._most_bytes = memory_mb * _MIB
        self._threads = threads
        self._rows = self._rows_in_runs = 0
        self._runs: list[Path] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the next rows."""
        for spec, array in zip(self._columns, batch.columns, strict=True):
            self._nulls[spec.name] += array.null_count
        for tree in self._trees:
            tree.add(batch, self._rows - self._rows_in_runs)
        self._rows += batch.num_rows
        if self._sorting_bytes() > self._most_bytes:
            self._write_run()

    def _sorting_bytes(self) -> int:
        """The bytes needed to sort the held keys."""
        sizes = sorted((tree.held_bytes for tree in self._trees), reverse=True)
        return sum(sizes) + _SORTING * sum(sizes[: self._threads])

    def _write_run(self) -> None:
        folder = self._folder / f"run-{len(self._runs):04d}"
        folder.mkdir()
        self._write(folder)
        self._runs.append(folder)
        self._rows_in_runs = self._rows

    def _write(self, folder: Path) -> tuple[dict[str, Path], dict[str, int]]:
        """Sorts and writes the held keys. Returns the files, and the number of keys by tree."""
        writer = TreeWriter(folder)
        try:
            distinct = {}
            for tree, groups in self._sorted_trees():
                writer.begin_column(tree.name, has_number_keys=has_number_keys(tree.type))
                writer.nulls(Branch.NULLS, tree.nulls)
                writer.nulls(Branch.NULL_ELEMENTS, tree.null_elements)
                tree.nulls, tree.null_elements = BitMap(), BitMap()
                distinct[tree.name] = writer.values((groups,))
            return writer.finish(self._rows - self._rows_in_runs), distinct
        finally:
            writer.close()

    def _sorted_trees(self) -> Iterator[tuple[_Tree, Groups]]:
        """The trees, in order, with their sorted keys; several are sorted concurrently."""
        if self._threads == 1:
            yield from ((tree, tree.sort()) for tree in self._trees)
            return
        with ThreadPoolExecutor(self._threads) as threads:
            ahead = [threads.submit(tree.sort) for tree in self._trees[: self._threads]]
            for number, tree in enumerate(self._trees):
                yield tree, ahead.pop(0).result()
                following = number + self._threads
                if following < len(self._trees):
                    ahead.append(threads.submit(self._trees[following].sort))

    def finish(self) -> BuiltIndex:
        """Completes the index."""
        files: dict[str, Path]
        if self._runs:
            if any(tree.keys for tree in self._trees):
                self._write_run()
            sources = [MergeSource.of_folder(run) for run in self._runs]
            try:
                files, distinct = merge(sources, self._folder)
            finally:
                for source in sources:
                    source.close()
            for run in self._runs:
                shutil.rmtree(run)
        else:
            files, distinct = self._write(self._folder)
        return BuiltIndex(
            files=files,
            rows=self._rows,
            statistics={
                spec.name: ColumnStatistics(
                    null_count=self._nulls[spec.name],
                    distinct=distinct.get(spec.name),
                    truncated=max(
                        (tree.cut for tree in self._trees if place in tree.places), default=0
                    ),
                )
                for place, spec in enumerate(self._columns)
            },
        )

    def abort(self) -> None:
        """Releases memory; the caller removes the folder."""
        for tree in self._trees:
            tree.keys, tree.rows = [], []


def _trees(columns: Sequence[ColumnSpec]) -> Iterator[_Tree]:
    """The trees of an index: one for each column with keys of its own, and for each composite
    key."""
    place_of = {spec.name: place for place, spec in enumerate(columns)}
    for place, spec in enumerate(columns):
        if KEY in spec.fields:
            yield _Tree(spec.name, spec.type, (place,))
    for name, key in composites(columns).items():
        yield _Tree(name, pa.large_binary(), tuple(place_of[column] for column in key))


def sorted_numbers(keys: np.ndarray, rows: np.ndarray, *, unique: bool) -> Groups:
    """Groups of number keys with a row id each; see `grouped`."""
    keys, rows = sorted_pairs(keys, rows)
    return grouped(numbers_array(keys), rows, unique=unique)


def sorted_bytes(arrays: Sequence[pa.Array], rows: np.ndarray, *, unique: bool) -> Groups:
    """Like `sorted_numbers`, for byte keys; the rows of equal keys come in ascending order."""
    kind = pa.large_binary()
    array = pa.concat_arrays([pa.nulls(0, kind), *(each.cast(kind) for each in arrays)])
    if not len(array):
        return grouped(array, rows, unique=unique)
    if _repeats(array):
        encoded = array.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary)
        ranks = np.empty(len(order), dtype=np.uint64)
        ranks[as_numbers(order)] = np.arange(len(order), dtype=np.uint64)
        groups = sorted_numbers(ranks[as_numbers(encoded.indices)], rows, unique=unique)
        return Groups(encoded.dictionary.take(order), groups.counts, groups.rows)
    order = pc.sort_indices(array)
    return grouped(array.take(order), rows[as_numbers(order)], unique=unique)


def _repeats(array: pa.Array) -> bool:
    """Whether there are noticeably fewer distinct values than values."""
    step = -(-len(array) // _SAMPLE)
    sample = array.take(numbers_array(np.arange(0, len(array), step)))
    return int(pc.count_distinct(sample).as_py()) <= (1 - _REPEATED) * len(sample)
