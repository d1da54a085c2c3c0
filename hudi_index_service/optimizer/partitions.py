"""Takes column values from the partitions' paths, and finds the partitions that a predicate rules
out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Self, TypeAlias

import numpy as np
import pyarrow as pa

from hudi_index_service.arrow import FALSE, array_of_scalars, as_truths
from hudi_index_service.hudi.partition_path import PartitionPaths
from hudi_index_service.hudi.protocol import Snapshot
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate
from hudi_index_service.predicate.substitute import with_values

Values: TypeAlias = Mapping[str, pa.Scalar]
"""Column → its value in all rows of a partition."""

_Flags: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class PartitionValues:
    """The column values from the partitions' paths. Make it by `of`.

    Attributes:
        by_partition: Partition → the values from its path; empty if no path has values.
        table: The same as a table, one row per partition; NULL also if a path has no value.
        uncertain: Column → the first partition whose path does not give its value with certainty.
    """

    by_partition: Mapping[str, Values]
    table: pa.RecordBatch
    uncertain: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: PartitionPaths, snapshot: Snapshot) -> Self:
        """The values of all partitions of a snapshot."""
        partitions = {each.partition for each in snapshot.slices} if paths.columns else set()
        values = {each: paths.values(each, snapshot.schema) for each in partitions}
        lacking = {
            name: min((each for each in partitions if name not in values[each]), default=None)
            for name in paths.columns
            if name in snapshot.schema.names
        }
        uncertain = {name: each for name, each in lacking.items() if each is not None}
        columns = [name for name in paths.columns if any(name in each for each in values.values())]
        arrays = [
            array_of_scalars(
                [each.get(name) for each in values.values()], snapshot.schema.field(name).type
            )
            for name in columns
        ]
        return cls(values, pa.record_batch(arrays, columns), uncertain)

    def ruled_out(self, predicate: Predicate | None) -> frozenset[str]:
        """The partitions in which the predicate is TRUE for no row.

        Args:
            predicate: In negation normal form.
        """
        if predicate is None or not self.table.num_columns:
            return frozenset()
        if predicate.columns().isdisjoint(self.table.schema.names):
            return frozenset()
        flags = self._may_match(predicate)
        return frozenset(
            each for each, may_match in zip(self.by_partition, flags, strict=True) if not may_match
        )

    def within(self, predicate: Predicate) -> Mapping[str, Predicate]:
        """The remaining predicate of each partition whose path has all the values that any path
        has; made once for all partitions with the same truth values.

        Args:
            predicate: In negation normal form.
        """
        columns = frozenset(self.table.schema.names)
        truths = [evaluate(each, self.table).to_pylist() for each in _parts_on(predicate, columns)]
        remaining: dict[tuple[bool | None, ...], Predicate] = {}
        predicates: dict[str, Predicate] = {}
        for number, (partition, values) in enumerate(self.by_partition.items()):
            if len(values) == len(columns):
                truth = tuple(each[number] for each in truths)
                if truth not in remaining:
                    remaining[truth] = with_values(predicate, values) if truths else predicate
                predicates[partition] = remaining[truth]
        return predicates

    def _may_match(self, predicate: Predicate) -> _Flags:
        columns = predicate.columns()
        if columns and columns <= set(self.table.schema.names):
            flags = as_truths(evaluate(predicate, self.table).fill_null(FALSE))
            for name in columns & self.uncertain.keys():
                flags |= [name not in each for each in self.by_partition.values()]
            return flags
        match predicate:
            case And(operands):
                return reduce(np.logical_and, map(self._may_match, operands))
            case Or(operands):
                return reduce(np.logical_or, map(self._may_match, operands))
            case Constant(value):
                return np.full(self.table.num_rows, value is True)
            case _:
                return np.ones(self.table.num_rows, dtype=bool)


def _parts_on(predicate: Predicate, columns: frozenset[str]) -> Iterator[Predicate]:
    """The parts of a predicate that use only these columns."""
    own_columns = predicate.columns()
    if own_columns and own_columns <= columns:
        yield predicate
    elif not own_columns.isdisjoint(columns):
        for child in predicate.children:
            yield from _parts_on(child, columns)
