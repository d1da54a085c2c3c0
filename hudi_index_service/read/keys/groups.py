"""Groups slices, so that a key is sent to a group once, however many slices the group has.

If the least and greatest keys of base files are known, slices with near keys are in one group, so
that a key is sent to few groups. Otherwise the number of groups limits the copies sent.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import numbers_array, scalar
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.read.base_file.record_keys import RecordKeys
from hudi_index_service.read.keys.key_routes import Bounds, SoughtKeys, bounds_of, key_values
from hudi_index_service.read.keys.tag_location import KEY, PARTITION, RequestedKeys


@dataclass(frozen=True, slots=True)
class SliceGroup:
    """A group of slices that one task searches for keys.

    Attributes:
        partition: The partition of all slices; None for any.
        slices: The numbers of the slices in the plan.
        within: A column that tells which row has a key, and its bounds in all slices; None if not
            known.
    """

    partition: str | None
    slices: tuple[int, ...]
    within: tuple[str, Bounds] | None


def slice_groups(
    slices: Sequence[SlicePlan], keys: RecordKeys, most: int, *, by_partition: bool
) -> list[SliceGroup]:
    """Puts all slices into groups.

    Args:
        keys: The table's record keys.
        most: The maximum number of groups; with `by_partition`, per partition.
        by_partition: Whether a key is looked up in one partition only.
    """
    columns = [each.column[0] for each in key_values(keys, pa.nulls(0, pa.string()))]
    within = [_bounds(each, columns) for each in slices]
    numbers_by_partition: dict[str | None, list[int]] = {}
    for number, each in enumerate(slices):
        partition = each.file_slice.partition if by_partition else None
        numbers_by_partition.setdefault(partition, []).append(number)

    def order(number: int) -> tuple[str, bytes | int]:
        known = within[number]
        return ("", 0) if known is None else (known[0], known[1][0])

    groups = []
    for partition, numbers in numbers_by_partition.items():
        numbers.sort(key=order)
        parts = min(most, len(numbers))  # of nearly equal length
        for part in range(parts):
            members = numbers[part * len(numbers) // parts : (part + 1) * len(numbers) // parts]
            around = _around([within[number] for number in members])
            groups.append(SliceGroup(partition, tuple(members), around))
    return groups


def _bounds(plan: SlicePlan, columns: Sequence[str]) -> tuple[str, Bounds] | None:
    """The first of the columns of which all values of a slice lie in known bounds. There is none
    with log files, which can hold any key."""
    if plan.file_slice.log_files:
        return None
    found = ((column, bounds_of(plan, column)) for column in columns)
    return next(((column, bounds) for column, bounds in found if bounds is not None), None)


def _around(within: Sequence[tuple[str, Bounds] | None]) -> tuple[str, Bounds] | None:
    """The smallest bounds around all of these; None if some are not known, or of other columns."""
    known = [each for each in within if each is not None]
    columns = {column for column, _ in known}
    if len(known) < len(within) or len(columns) != 1:
        return None
    least, greatest = zip(*(bounds for _, bounds in known), strict=True)
    return columns.pop(), (min(least), max(greatest))


def routed(
    batch: pa.RecordBatch, groups: Sequence[SliceGroup], keys: RecordKeys
) -> Iterator[tuple[int, pa.StringArray]]:
    """For each group, by its number, the keys of a batch that it may hold; a superset of those that
    it holds.

    Args:
        batch: Column ``record_key`` and, if keys are looked up in one partition each,
            ``partition``.
        keys: The table's record keys.
    """
    asked: set[str | None] = {None}
    if PARTITION in batch.schema.names:
        asked = set(pc.unique(batch.column(PARTITION)).to_pylist())
    members: dict[str | None, list[tuple[int, SliceGroup]]] = {}
    for number, group in enumerate(groups):
        if group.partition in asked:
            members.setdefault(group.partition, []).append((number, group))
    for partition, numbered in members.items():
        here = batch.column(KEY)
        if partition is not None:
            name = scalar(partition, pa.string())
            here = here.filter(pc.equal(batch.column(PARTITION), name))
        here = here.drop_null()
        values = {each.column[0]: each for each in key_values(keys, here)}
        for number, group in numbered:
            sent = here
            if group.within is not None:
                column, bounds = group.within
                sought = SoughtKeys(values[column], values[column].within(bounds))
                sent = here.take(numbers_array(sought.keys))
            if len(sent):
                yield number, sent


def portions(
    batches_by_group: Iterable[tuple[int, pa.RecordBatch]], most: int
) -> Iterator[tuple[int, RequestedKeys]]:
    """The keys of each group joined into portions of about `most` at most.

    Args:
        batches_by_group: Numbers of groups, and keys as for `RequestedKeys`; those of one group are
            consecutive.
    """
    current, batches = 0, list[pa.RecordBatch]()
    for number, batch in batches_by_group:
        if batches and (number != current or sum(map(len, batches)) >= most):
            yield current, RequestedKeys(pa.Table.from_batches(batches))
            batches = []
        current = number
        batches.append(batch)
    if batches:
        yield current, RequestedKeys(pa.Table.from_batches(batches))
