"""Takes column values from the partitions' paths, and finds the partitions that a predicate rules
out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from typing import Self, TypeAlias

import numpy as np
import pyarrow as pa

from hudi_index_service.arrow import FALSE, array_of_scalars, as_truths, text_scalar
from hudi_index_service.hudi.partition_path import PartitionPaths
from hudi_index_service.hudi.snapshot import Snapshot
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.evaluate import with_values
from hudi_index_service.predicate.expression import Compare, In, Like, LikePart, Operator, Predicate
from hudi_index_service.predicate.fold import fold

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
        ambiguous: Columns, each with a text that Spark may look for in another folder than those
            with this value.
    """

    by_partition: Mapping[str, Values]
    table: pa.RecordBatch
    uncertain: Mapping[str, str] = field(default_factory=dict)
    ambiguous: frozenset[tuple[str, str]] = frozenset()

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
        ambiguous = frozenset(chain.from_iterable(map(paths.ambiguous_texts, partitions)))
        return cls(values, pa.record_batch(arrays, columns), uncertain, ambiguous)

    def ambiguity(self, predicate: Predicate | None) -> tuple[str, str] | None:
        """A partition column and the text that it is compared with for equality, if Spark may look
        for it in another folder than those with this value.

        Spark does so only if the comparison must be TRUE for the whole condition, which its
        optimizer may find out of comparisons anywhere in it.
        """
        if predicate is None or not self.table.num_columns:
            return None
        for leaf in predicate.leaves():
            fixed = _fixed_text(leaf, self.table.schema)
            if fixed is not None and (fixed in self.ambiguous or _is_resolved(fixed[1])):
                return fixed
        return None

    def ruled_out(self, predicate: Predicate | None) -> frozenset[str]:
        """The partitions in which the predicate is TRUE for no row.

        Args:
            predicate: In negation normal form.
        """
        names = self.table.schema.names
        if predicate is None or not names or predicate.columns().isdisjoint(names):
            return frozenset()
        every: _Flags = np.ones(self.table.num_rows, dtype=bool)
        flags = fold(
            predicate,
            self._may_match,
            all_of=lambda parts: reduce(np.logical_and, parts, every),
            any_of=lambda parts: reduce(np.logical_or, parts, ~every),
        )
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

    def _may_match(self, leaf: Predicate) -> _Flags:
        (name,) = leaf.columns()
        if name not in self.table.schema.names:
            return np.ones(self.table.num_rows, dtype=bool)
        flags = as_truths(evaluate(leaf, self.table).fill_null(FALSE))
        if name in self.uncertain:
            flags |= [name not in each for each in self.by_partition.values()]
        return flags


def _fixed_text(leaf: Predicate, partition_columns: pa.Schema) -> tuple[str, str] | None:
    """The partition column and the value, spelled as in a path, of a comparison for equality from
    which Spark makes a path."""
    match leaf:
        case Compare(column, Operator.EQ, value):
            pass
        case In(column, values) if len(values) == 1:
            value = values[0]
        case Like(column, parts=()):
            value = text_scalar("")
        case Like(column, parts=(LikePart("text", text),)):
            value = text_scalar(text)
        case _:
            return None
    if column.name not in partition_columns.names or not (
        pa.types.is_string(column.type)
        or pa.types.is_signed_integer(column.type)
        or pa.types.is_date32(column.type)
    ):
        return None
    return column.name, value.cast(pa.string()).as_py()


def _is_resolved(text: str) -> bool:
    """Whether a path with the text in it is another one when it is resolved, as ``./a`` is."""
    return text != "" and not {"", ".", ".."}.isdisjoint(text.split("/"))


def _parts_on(predicate: Predicate, columns: frozenset[str]) -> Iterator[Predicate]:
    """The parts of a predicate that use only these columns."""
    own_columns = predicate.columns()
    if own_columns and own_columns <= columns:
        yield predicate
    elif not own_columns.isdisjoint(columns):
        for child in predicate.children:
            yield from _parts_on(child, columns)
