"""What the paths of a snapshot's partitions tell of their rows, and which of them a predicate rules
out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Self, TypeAlias

import numpy as np
import pyarrow as pa

from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate
from hudi_index_service.predicate.substitute import with_values
from hudi_index_service.table.partition_path import PartitionPaths
from hudi_index_service.table.protocol import Snapshot

Values: TypeAlias = Mapping[str, pa.Scalar]
"""Column → the value that it has in all rows of a partition."""

_Flags: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class PartitionValues:
    """Make it by `of`.

    Attributes:
        by_partition: Partition → what its path tells; nothing where no path tells anything.
        table: The same as a table, a row for each partition; NULL where a path does not tell.
    """

    by_partition: Mapping[str, Values]
    table: pa.RecordBatch

    @classmethod
    def of(cls, paths: PartitionPaths, snapshot: Snapshot) -> Self:
        """Of all partitions of a snapshot."""
        partitions = {each.partition for each in snapshot.slices} if paths.columns else set()
        values = {each: paths.values(each, snapshot.schema) for each in partitions}
        told = [name for name in paths.columns if any(name in each for each in values.values())]
        arrays = [
            pa.array([each.get(name) for each in values.values()], snapshot.schema.field(name).type)
            for name in told
        ]
        return cls(values, pa.record_batch(arrays, told))

    def ruled_out(self, predicate: Predicate | None) -> frozenset[str]:
        """The partitions in which the predicate is TRUE for no row.

        Args:
            predicate: In negation normal form.
        """
        if predicate is None or not self.table.num_columns:
            return frozenset()
        if predicate.columns().isdisjoint(self.table.schema.names):
            return frozenset()
        may = self._may_match(predicate)
        return frozenset(
            each for each, kept in zip(self.by_partition, may, strict=True) if not kept
        )

    def within(self, predicate: Predicate) -> Mapping[str, Predicate]:
        """What is left to ask in each partition whose path tells all that any path tells: made once
        for all in which the same is TRUE.

        Args:
            predicate: In negation normal form.
        """
        told = frozenset(self.table.schema.names)
        truths = [evaluate(each, self.table).to_pylist() for each in _asking(predicate, told)]
        left: dict[tuple[bool | None, ...], Predicate] = {}
        found: dict[str, Predicate] = {}
        for number, (partition, values) in enumerate(self.by_partition.items()):
            if len(values) == len(told):
                truth = tuple(each[number] for each in truths)
                if truth not in left:
                    left[truth] = with_values(predicate, values) if truths else predicate
                found[partition] = left[truth]
        return found

    def _may_match(self, predicate: Predicate) -> _Flags:
        columns = predicate.columns()
        if columns and columns <= set(self.table.schema.names):
            may = _flags(evaluate(predicate, self.table).fill_null(False))
            for name in columns:
                may |= _flags(self.table.column(name).is_null())
            return may
        match predicate:
            case And(operands):
                return reduce(np.logical_and, map(self._may_match, operands))
            case Or(operands):
                return reduce(np.logical_or, map(self._may_match, operands))
            case Constant(value):
                return np.full(self.table.num_rows, value is True)
            case _:
                return np.ones(self.table.num_rows, dtype=bool)


def _asking(predicate: Predicate, columns: frozenset[str]) -> Iterator[Predicate]:
    """The parts of a predicate that ask for nothing but these columns."""
    asked = predicate.columns()
    if asked and asked <= columns:
        yield predicate
    elif not asked.isdisjoint(columns):
        for child in predicate.children:
            yield from _asking(child, columns)


def _flags(values: pa.BooleanArray) -> _Flags:
    return np.array(values.to_numpy(zero_copy_only=False), dtype=bool)
