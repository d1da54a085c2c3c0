"""Groups slices, so that a key is sent to a group once, however many slices the group has.

If the least and greatest keys of base files are known, slices with near keys are in one group, so
that a key is sent to few groups. Otherwise the number of groups limits the copies sent.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import scalar, truths_array
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.read.base_file.record_keys import RecordKeys
from hudi_index_service.read.keys.key_range import KeyRange
from hudi_index_service.read.keys.tag_location import KEY, PARTITION


@dataclass(frozen=True, slots=True)
class SliceGroup:
    """A group of slices that one task searches for keys.

    Attributes:
        partition: The partition of all slices; None for any.
        slices: The numbers of the slices in the plan.
        within: The range of all keys that they may hold; None if not known.
    """

    partition: str | None
    slices: tuple[int, ...]
    within: KeyRange | None


def slice_groups(
    slices: Sequence[SlicePlan], keys: RecordKeys, most: int, *, by_partition: bool
) -> list[SliceGroup]:
    """Puts all slices into groups.

    Args:
        keys: The table's record keys.
        most: The maximum number of groups; with `by_partition`, per partition.
        by_partition: Whether a key is looked up in one partition only.
    """
    ranges = [_range(each, keys) for each in slices]
    numbers_by_partition: dict[str | None, list[int]] = {}
    for number, each in enumerate(slices):
        partition = each.file_slice.partition if by_partition else None
        numbers_by_partition.setdefault(partition, []).append(number)

    def order(number: int) -> tuple[int, bytes | int]:
        key_range = ranges[number]
        if key_range is None:
            return 2, 0
        return int(isinstance(key_range.least, int)), key_range.least

    groups = []
    for partition, numbers in numbers_by_partition.items():
        for members in _split(sorted(numbers, key=order), most):
            within = KeyRange.around(ranges[number] for number in members)
            groups.append(SliceGroup(partition, members, within))
    return groups


def _range(plan: SlicePlan, keys: RecordKeys) -> KeyRange | None:
    """The range of all keys of a slice; None with log files, which can hold any key."""
    return None if plan.file_slice.log_files else KeyRange.of_base_file(plan, keys)


def _split(numbers: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
    """The numbers in order, in at most `most` parts of nearly equal length."""
    parts = min(most, len(numbers))
    for part in range(parts):
        chunk = numbers[part * len(numbers) // parts : (part + 1) * len(numbers) // parts]
        yield tuple(chunk)


def routed(
    batch: pa.RecordBatch, groups: Sequence[SliceGroup]
) -> Iterator[tuple[int, pa.StringArray]]:
    """For each group, by its number, the keys of a batch that it may hold; a superset of those that
    it holds.

    Args:
        batch: Column ``record_key`` and, if keys are looked up in one partition each,
            ``partition``.
    """
    keys = batch.column(KEY)
    partitioned = PARTITION in batch.schema.names
    if partitioned:
        partitions = batch.column(PARTITION)
        batch_partitions = set(pc.unique(partitions).to_pylist())
    for number, group in enumerate(groups):
        group_keys = keys
        if partitioned:
            if group.partition not in batch_partitions:
                continue
            group_keys = keys.filter(pc.equal(partitions, scalar(group.partition, pa.string())))
        group_keys = group_keys.drop_null()
        if group.within is not None:
            group_keys = group_keys.filter(truths_array(group.within.holds(group_keys)))
        if len(group_keys):
            yield number, group_keys


def portions(
    keys_by_group: Iterable[tuple[int, pa.StringArray]], most: int
) -> Iterator[tuple[int, pa.StringArray]]:
    """The same with the keys of each group joined into portions of about `most` at most.

    Args:
        keys_by_group: Numbers of groups and keys; those of one group are consecutive.
    """
    current: int | None = None
    arrays: list[pa.StringArray] = []
    for number, keys in keys_by_group:
        if current is not None and (number != current or sum(map(len, arrays)) >= most):
            yield current, pa.concat_arrays(arrays)
            arrays = []
        current = number
        arrays.append(keys)
    if current is not None:
        yield current, pa.concat_arrays(arrays)
