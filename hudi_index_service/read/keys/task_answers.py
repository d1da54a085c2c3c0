"""Answers the keys of one Spark task on its own: all slices are searched for all of its keys.

No key is then shuffled to slices, and no location back to its key. A task reads the keys of the
whole table for that, so the table must be small.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import numbers_array, truths_array
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.read.keys.key_locator import KeyLocator
from hudi_index_service.read.keys.tag_location import ANSWER, KEY, PARTITION

_BYTES_A_ROW = 20  # of a base file, at least: it stores the row's key, which hardly compresses
_MOST_ROWS = 20_000_000


def is_small(slices: Sequence[SlicePlan]) -> bool:
    """Whether each task may read the keys of all these slices: without log files, which would be
    merged by each of them, and of rows that one core reads in some ten seconds."""
    return all(not each.file_slice.log_files for each in slices) and (
        sum(map(_rows, slices)) <= _MOST_ROWS
    )


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
    locator: KeyLocator, slices: Sequence[SlicePlan], requested: pa.Table
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
    slices: Sequence[SlicePlan],
    keys: pa.ChunkedArray,
    partition: str | None,
) -> Iterator[pa.Table]:
    """The answer for keys; those absent are in the requested partition."""
    encoded = keys.combine_chunks().dictionary_encode()
    distinct = encoded.dictionary
    times = np.bincount(encoded.indices.drop_null(), minlength=len(distinct))
    is_absent = np.ones(len(distinct), dtype=bool)
    for positions, locations in locator.locate_all(slices, distinct):
        is_absent[positions] = False
        yield _repeated(locations.select(ANSWER.names), times[positions])
    absent = _repeated(
        pa.table({KEY: distinct.filter(truths_array(is_absent))}), times[is_absent]
    ).column(KEY)
    unknown = pa.chunked_array([*absent.chunks, pa.nulls(keys.null_count, pa.string())])
    nowhere = {KEY: unknown, PARTITION: pa.repeat(pa.scalar(partition, pa.string()), len(unknown))}
    yield pa.table(
        [
            nowhere.get(each.name, pa.nulls(len(unknown), each.type))  # type: ignore[arg-type]
            for each in ANSWER
        ],
        schema=ANSWER,
    )


def _repeated(rows: pa.Table, times: npt.NDArray[np.int64]) -> pa.Table:
    """Each row as often as its key was requested."""
    if (times == 1).all():
        return rows
    return rows.take(numbers_array(np.repeat(np.arange(len(times)), times)))
