"""Finds the columns that make an index large, and how they could be indexed in less space."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from hudi_index_service.build.costs.sample import Columns, Sample, indexed_together
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.errors import (
    ColumnNotIndexable,
    IndexDefinitionInvalid,
    IndexTypeUnknown,
    NativeModuleMissing,
)
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.column_fields import STORED, indexed
from hudi_index_service.predicate.comparison import is_string

LARGE = 0.5
"""An index that is larger than this fraction of its base files is large."""

_LEAST_SHARE = 0.1  # of the index, for a column that makes it large
_WORTH = 0.8  # a column has to become smaller than this fraction
_BTREE = "btree"


@dataclass(frozen=True, slots=True)
class SmallerColumn:
    """A column that could be indexed in less space.

    Attributes:
        index_bytes: What it takes now, in the index type `index_type`.
        using, options: Another index type, or options of the same type.
        smaller_bytes: What it would take.
        loses: What the index would no longer answer, in words; "" if nothing.
    """

    column: str
    index_type: str
    index_bytes: int
    using: str
    options: Mapping[str, str]
    smaller_bytes: int
    loses: str

    def __str__(self) -> str:
        options = " and ".join(f"{name}={value}" for name, value in self.options.items())
        how = f"with {options}" if options else f"in an index of type {self.using}"
        loss = f", but would not answer {self.loses}" if self.loses else ""
        return (
            f"{self.column} takes about {self.index_bytes:,} bytes ({self.index_type}); {how} it "
            f"would take about {self.smaller_bytes:,}{loss}."
        )


def smaller_columns(due: Sequence[DueEntry], sample: Sample) -> tuple[SmallerColumn, ...]:
    """The columns that make an index large and could be smaller, the largest saving first.

    Raises what `Sample.cost` raises.
    """
    columns = list(_due_columns(due, sample))
    total = sum(each.bytes for each in columns)
    smaller = [
        each
        for column in columns
        if column.bytes >= _LEAST_SHARE * total and (each := column.smallest(sample)) is not None
    ]
    return tuple(sorted(smaller, key=lambda each: each.smaller_bytes - each.index_bytes))


@dataclass(frozen=True, slots=True)
class _DueColumn:
    """A column that is due, or the columns of a composite key, and their size in all base files."""

    index_type: str
    columns: Columns
    base_bytes: int
    bytes: float

    @classmethod
    def of(cls, index_type: str, columns: Columns, base_bytes: int, sample: Sample) -> Self:
        rate = sample.cost(index_type, columns).index_bytes.mean
        return cls(index_type, columns, base_bytes, base_bytes * rate)

    def smallest(self, sample: Sample) -> SmallerColumn | None:
        """The smallest alternative; None if none is worth it."""
        best: SmallerColumn | None = None
        for using, spec, options, loses in self._alternatives():
            try:
                size = _DueColumn.of(using, (spec,), self.base_bytes, sample).bytes
            except NativeModuleMissing:
                continue
            if size < _WORTH * self.bytes and (best is None or size < best.smaller_bytes):
                best = SmallerColumn(
                    spec.name,
                    self.index_type,
                    round(self.bytes),
                    using,
                    options,
                    round(size),
                    loses,
                )
        return best

    def _alternatives(self) -> Iterator[tuple[str, ColumnSpec, Mapping[str, str], str]]:
        """Other index types or options for a column that is indexed by itself. Stored values stay
        stored, except where that is the alternative."""
        own = indexed(self.columns)
        if len(own) != 1:
            return
        (spec,) = own
        kind, is_stored = index_type(self.index_type), own != self.columns
        stored = (STORED,) if is_stored else ()
        if is_stored:
            yield self.index_type, spec, {STORED: "false"}, "queries without the base file"
        option = kind.smaller_options(spec)
        if option is not None:
            fields = kind.fields(spec.name, spec.type, option.options) + stored
            yield self.index_type, replace(spec, fields=fields), option.options, option.loses
        if self.index_type != _BTREE:
            try:
                fields = index_type(_BTREE).fields(spec.name, spec.type, {}) + stored
            except (ColumnNotIndexable, IndexDefinitionInvalid, IndexTypeUnknown):
                return
            losses = ["patterns that begin with %"] if is_string(spec.type) else []
            if kind.analyzed_text(spec) is not None:
                losses.insert(0, "full-text search")
            yield _BTREE, replace(spec, fields=fields), {}, " and ".join(losses)


def _due_columns(due: Sequence[DueEntry], sample: Sample) -> Iterator[_DueColumn]:
    base_bytes: dict[tuple[str, Columns], int] = {}
    for entry in due:
        for group in indexed_together(entry.index_type, entry.columns):
            key = (entry.index_type, group)
            base_bytes[key] = base_bytes.get(key, 0) + entry.base_file.size
    for (name, group), total in base_bytes.items():
        yield _DueColumn.of(name, group, total, sample)
