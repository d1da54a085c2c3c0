"""Answers the keys of one Spark task on its own: all slices are searched for all of its keys.

No key is then shuffled to slices, and no location back to its key. A task reads the keys of the
whole table for that, so the table must be small.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import numbers_array, scalar
from hudi_index_service.optimizer.decide import each_task_reads_all_keys
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.read.keys.key_locator import KeyLocator
from hudi_index_service.read.keys.rows_of_slices import key_hashes
from hudi_index_service.read.keys.searched_slice import SearchedSlice
from hudi_index_service.read.keys.tag_location import ANSWER, KEY, PARTITION

_BYTES_A_ROW = 20  # of a base file, at least: it stores the row's key, which hardly compresses


def can_answer(slices: Sequence[SlicePlan]) -> bool:
    """Whether each task may search all these slices: they are few enough, and without log files,
    which each task would have to merge."""
    without_logs = all(not each.file_slice.log_files for each in slices)
    return without_logs and each_task_reads_all_keys(sum(map(_rows, slices)))


def _rows(plan: SlicePlan) -> int:
    """The number of rows, about, and rather too many."""
    base_file = plan.file_slice.base_file
    if plan.entries:
        return plan.total
    return 0 if base_file is None else base_file.size // _BYTES_A_ROW


def key_portions(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.Table]:
    """The rows of the batches, joined into portions of about `most` at most."""
    portion: list[pa.RecordBatch] = []
    for batch in batches:
        portion.append(batch)
        if sum(each.num_rows for each in portion) >= most:
            yield pa.Table.from_batches(portion)
            portion = []
    if portion:
        yield pa.Table.from_batches(portion)


def answers(
    locator: KeyLocator, slices: Sequence[SearchedSlice], requested: pa.Table
) -> Iterator[pa.Table]:
    """The answer (`ANSWER`) for keys, in any order.

    Args:
        slices: All slices of the snapshot, without log files.
        requested: Column ``record_key`` and, if keys are looked up in one partition each,
            ``partition``; keys may be repeated or NULL.

    Raises what `KeyLocator.locate` raises.
    """
    if PARTITION not in requested.column_names:
        yield from _answers_among(locator, slices, requested.column(KEY), None)
        return
    partitions = requested.column(PARTITION)
    for partition in pc.unique(partitions).to_pylist():
        here = pc.is_null(partitions) if partition is None else pc.equal(partitions, partition)
        slices_here = [each for each in slices if each.file_slice.partition == partition]
        yield from _answers_among(
            locator, slices_here, requested.column(KEY).filter(here), partition
        )


def _answers_among(
    locator: KeyLocator,
    slices: Sequence[SearchedSlice],
    keys: pa.ChunkedArray,
    partition: str | None,
) -> Iterator[pa.Table]:
    """The answer for keys; those absent are in the requested partition."""
    distinct, times = _distinct(keys.drop_null().combine_chunks())
    is_absent = np.ones(len(distinct), dtype=bool)
    for positions, locations in locator.locate_all(slices, distinct):
        is_absent[positions] = False
        yield _repeated(locations.select(ANSWER.names), times[positions])
    absent = distinct.take(numbers_array(np.flatnonzero(is_absent)))
    yield _repeated(_nowhere(absent, partition), times[is_absent])
    yield _nowhere(pa.nulls(keys.null_count, pa.string()), partition)


def _distinct(keys: pa.StringArray) -> tuple[pa.StringArray, npt.NDArray[np.int64]]:
    """The distinct keys, and how often each is there."""
    hashes = np.sort(key_hashes(keys))  # faster than a dictionary of texts
    if (hashes[1:] != hashes[:-1]).all():
        return keys, np.ones(len(keys), dtype=np.int64)
    encoded = keys.dictionary_encode()
    return encoded.dictionary, np.bincount(encoded.indices)


def _repeated(rows: pa.Table, times: npt.NDArray[np.int64]) -> pa.Table:
    """Each row as often as its key was requested."""
    if (times == 1).all():
        return rows
    return rows.take(numbers_array(np.repeat(np.arange(len(times)), times)))


def _nowhere(keys: pa.StringArray, partition: str | None) -> pa.Table:
    """The answer for absent keys."""
    known = {KEY: keys, PARTITION: pa.repeat(scalar(partition, pa.string()), len(keys))}
    return pa.table(
        [known.get(each.name, pa.nulls(len(keys), each.type)) for each in ANSWER], schema=ANSWER
    )
