"""Which base files may hold which of the requested keys: by the table's segments, or else by the
least and greatest values in the manifests of a file's entries.

A file that can hold no key is not opened, nor is its entry listed. The others are searched only for
the keys that they may hold. Where nothing is known of a file, it may hold every key.

Spark's tasks search groups of slices, so that a key is sent to a group once, however many slices
the group has. If the least and greatest keys of base files are known, slices with near keys are in
one group, so that a key is sent to few groups. Otherwise the number of groups limits the copies
sent.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_numbers, as_truths, numbers_array, scalar, truths_array
from hudi_index_service.hudi.files.log_file import RECORD_KEY
from hudi_index_service.index.metadata.segments.exclusion import LocatedValues
from hudi_index_service.index.metadata.segments.segment import ColumnKey
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.read.base_file.key_join import Numbers
from hudi_index_service.read.base_file.record_keys import RecordKeys
from hudi_index_service.read.planner import BaseFiles

KEY, PARTITION = "record_key", "partition"
"""The columns of keys and, if keys are looked up in one partition each, of their partitions."""

_NUMBER = "^(0|-?[1-9][0-9]{0,17})$"
"""A number as keys have it, surely of 64 bits."""

_LONG_NUMBER = "^-?[1-9][0-9]{18}$"
"""A number that may have more than 64 bits."""

VALUES_SAMPLED = 65_536
"""So many values are sampled before they are sorted: sorting 500,000 texts took 0.15 s."""

_VALUES_A_SAMPLE = 512
"""One value of so many is in the sample."""

Mask = npt.NDArray[np.bool_]

Bounds = tuple[bytes, bytes] | tuple[int, int]
"""The least and the greatest value of a column: text in UTF-8, or integers."""


@dataclass(frozen=True)
class KeyValues:
    """The values of one column that stand for record keys.

    Attributes:
        values: Values of the column's type, some of them perhaps in no row.
        keys: The position of the key that each belongs to.
        anywhere: The positions of keys that may have other values, too.
    """

    column: ColumnKey
    values: pa.Array
    keys: Numbers
    anywhere: Numbers

    def within(self, bounds: Bounds, rows: int | None = None) -> Numbers:
        """The positions of the values within bounds.

        Args:
            rows: Of the base file with these bounds. If a sample shows that more values lie within
                them than it has rows, the positions of all values are returned: to sort many values
                takes longer than to read the keys of the file's rows.
        """
        if rows is not None and len(self.values) >= VALUES_SAMPLED:
            in_sample = len(self._sample.within(bounds)) - 1
            if in_sample * _VALUES_A_SAMPLE > rows:
                return self._every
        order, values = self._order
        first = bisect_left(order, bounds[0], key=lambda at: values[at].as_py())
        end = bisect_right(order, bounds[1], key=lambda at: values[at].as_py(), lo=first)
        return order[first:end]

    @cached_property
    def _sample(self) -> "KeyValues":
        chosen = self._every[::_VALUES_A_SAMPLE]
        values = self.values.take(numbers_array(chosen))
        return KeyValues(self.column, values, self.keys[chosen], self.anywhere)

    @cached_property
    def _every(self) -> Numbers:
        return np.arange(len(self.values))

    @cached_property
    def _order(self) -> tuple[Numbers, pa.Array]:
        """The positions of the values in order, and the values as bounds are compared with them."""
        is_text = pa.types.is_string(self.values.type)
        values = self.values.cast(pa.binary()) if is_text else self.values
        return as_numbers(pc.sort_indices(values)).astype(np.int64), values


def key_values(keys: RecordKeys, search_keys: pa.StringArray) -> Iterator[KeyValues]:
    """The values of the columns that alone tell which row has a key; the best column first.

    Args:
        search_keys: Without NULL.
    """
    every, none = np.arange(len(search_keys)), np.zeros(0, dtype=np.int64)
    if keys.stored:
        type = keys.columns.field(RECORD_KEY).type
        if pa.types.is_string(type):
            yield KeyValues((RECORD_KEY, str(type)), search_keys, every, none)
    if len(keys.fields) != 1:
        return
    ((key_column, field),) = keys.fields.items()
    # Some releases of ComplexKeyGenerator print the column's name before a single column's value.
    prefix = f"{key_column}:"
    prefixed = np.flatnonzero(as_truths(pc.starts_with(search_keys, prefix)))
    rest = pc.utf8_slice_codeunits(search_keys.take(numbers_array(prefixed)), len(prefix))
    texts = pa.concat_arrays([search_keys, rest])
    positions = np.concatenate([every, prefixed])
    column = (field.name, str(field.type))
    if pa.types.is_string(field.type):
        yield KeyValues(column, texts, positions, none)
    elif pa.types.is_int64(field.type) or pa.types.is_int32(field.type):
        are_numbers = as_truths(pc.match_substring_regex(texts, _NUMBER))
        # Numbers of 19 digits may fit or not; other texts are no key of this column.
        doubtful = as_truths(pc.match_substring_regex(texts, _LONG_NUMBER))
        values = texts.filter(truths_array(are_numbers)).cast(pa.int64())
        chosen = positions[are_numbers]
        if pa.types.is_int32(field.type):
            fits = as_truths(pc.equal(values, values.cast(pa.int32(), safe=False).cast(pa.int64())))
            values, chosen = values.filter(truths_array(fits)).cast(pa.int32()), chosen[fits]
        yield KeyValues(column, values, chosen, np.unique(positions[doubtful]))


def bounds_of(plan: SlicePlan, column: str) -> Bounds | None:
    """The bounds of a column in a slice's base file; None if no entry that may serve it has any."""
    for serving in plan.entries:
        if column in serving.names:
            bounds = serving.entry.manifest.bounds(column)
            if bounds.least is not None and bounds.greatest is not None:
                return bounds.least, bounds.greatest
    return None


@dataclass(frozen=True, slots=True)
class SoughtKeys:
    """The keys to look for in one base file.

    Attributes:
        values: The values of the keys in one column…
        positions: … and the positions of those to look for, each once.
    """

    values: KeyValues
    positions: npt.NDArray[np.integer[Any]]

    def __len__(self) -> int:
        return len(self.positions) + len(self.values.anywhere)

    @property
    def keys(self) -> Numbers:
        """The positions of the keys."""
        return np.union1d(self.values.keys[self.positions], self.values.anywhere)


class KeyRoutes:
    """The keys that the base files of one snapshot may hold, of those requested.

    Attributes:
        search_keys: All keys.
    """

    def __init__(
        self,
        keys: RecordKeys,
        search_keys: pa.StringArray,
        asked: Callable[[str], Numbers] | None = None,
        base_files: BaseFiles | None = None,
    ) -> None:
        """Asks the segments.

        Args:
            search_keys: Distinct, without NULL.
            asked: Returns the positions of the keys to look for in a partition; None for all keys
                in each.
            base_files: The base files with what segments say of them; None without segments.
        """
        self.search_keys = search_keys
        self._asked = asked
        self._mask = lru_cache(1)(self._mask_of)  # slices come by partition
        self._columns = list(key_values(keys, search_keys))
        self._located: list[tuple[KeyValues, LocatedValues]] = []
        if base_files is not None and base_files.folder is not None:
            self._located = [
                (each, base_files.segment_slices.located(segments, each.column, each.values))
                for name, segments in base_files.folder.segments.items()
                for each in self._columns
                if segments and each.column in base_files.columns.get(name, ())
            ]
        every, none = np.arange(len(search_keys)), np.zeros(0, dtype=np.int64)
        self._unknown = KeyValues(("", ""), search_keys, every, none)

    def slices(self, base_files: BaseFiles) -> Sequence[int]:
        """The numbers of the slices that may hold one of the keys, by the segments."""
        slices = base_files.snapshot.slices
        may_hold = np.ones(len(slices), dtype=bool)
        for values, located in self._located:
            if not len(values.anywhere):
                may_hold &= ~located.is_known | located.routed.any()
        partitions = {each.partition for each in slices}
        asked = {each for each in partitions if len(self.of_partition(each))}
        return [
            number
            for number, (each, may) in enumerate(zip(slices, may_hold.tolist(), strict=True))
            # A log file may hold any key.
            if (may or each.log_files) and each.partition in asked
        ]

    def keys_at(self, positions: Numbers) -> pa.StringArray:
        """The keys at ascending positions."""
        if len(positions) == len(self.search_keys):
            return self.search_keys
        return self.search_keys.take(numbers_array(positions))

    def of_partition(self, partition: str) -> Numbers:
        """The positions of the keys to look for in a partition."""
        return self._unknown.keys if self._asked is None else self._asked(partition)

    def of_slice(self, number: int, plan: SlicePlan) -> SoughtKeys:
        """The keys to look for in the base file of a slice.

        Args:
            number: Of the slice in the snapshot.
        """
        sought = self._of_base_file(number, plan)
        if self._asked is None:
            return sought
        values, positions = sought.values, sought.positions
        mask = self._mask(plan.file_slice.partition)
        return SoughtKeys(values, positions[mask[values.keys[positions]]])

    def _of_base_file(self, number: int, plan: SlicePlan) -> SoughtKeys:
        for values, located in self._located:
            if located.is_known[number]:
                return SoughtKeys(values, located.routed.of_file(number))
        for values in self._columns:
            bounds = bounds_of(plan, values.column[0])
            if bounds is not None:
                return SoughtKeys(values, values.within(bounds, plan.total))
        return SoughtKeys(self._unknown, self._unknown.keys)

    def _mask_of(self, partition: str) -> Mask:
        """Whether each key is to be looked for in a partition."""
        mask = np.zeros(len(self.search_keys), dtype=bool)
        mask[self.of_partition(partition)] = True
        return mask


# --- groups of slices ------------------------------------------------------------------------


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
        batch: The columns `KEY` and perhaps `PARTITION`.
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
