"""Proposes columns to index by a table's schema and a sample of its rows, each with its reason and
its cost."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import integer_scalar
from hudi_index_service.build.estimate import Estimate, due_with, estimate
from hudi_index_service.build.executor import Executor
from hudi_index_service.build.sample import Sample
from hudi_index_service.columns import column_name, column_path, find_column
from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    BuildFailed,
    ColumnNotIndexable,
    NativeModuleMissing,
    NeedsSpark,
)
from hudi_index_service.hudi.files.parquet_file import footers
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.definitions import Column, IndexDefinition
from hudi_index_service.index.metadata.requirements import (
    KEY,
    STORED,
    column_fields,
    key_of,
    names_by_use,
    requirements,
)
from hudi_index_service.maintain.recommend.results import ColumnProposal, IndexProposal, Proposal
from hudi_index_service.optimizer.cost.pages import PAGE_ROWS, pages_holding
from hudi_index_service.optimizer.decide import are_few
from hudi_index_service.predicate.comparison import is_binary, is_string
from hudi_index_service.read.whole_snapshot import on_a_whole_snapshot

_META_PREFIX = "_hoodie_"
_TEXT = "lucene"
_TEXT_OPTIONS = {"analyzer": "standard", "keyword": "false"}

_LONG_BYTES = 200  # longer texts are read, not compared
_FEWEST_WORDS = 2  # of a text that words are searched in
_SENTENCE_WORDS = 4
_DISTINCT_SENTENCES = 0.5  # of those sampled; texts that repeat more often are rather names
_LONG_BINARY_BYTES = 64
_LEAST_PAGES = 10  # of a table that is large enough for pages to be skipped
_LONG_RUN = 100  # rows


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to index a column, and the reason.

    Attributes:
        is_text: Whether the column is one for full-text search, if it is asked for.
    """

    yes: bool
    reason: str
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class SampledValues:
    """A summary of a column's sampled values; of an array, of its elements.

    Attributes:
        rows: Number of sampled rows, in the pieces of consecutive rows that the sample is made of.
        values: Number of values that are not NULL.
        distinct: Number of distinct values.
        single: Number of values that occur once.
        runs: Number of runs of equal values in consecutive rows.
        mean_bytes, mean_words: Average length of texts and binary values, and average number of
            words of texts; 0 for other types.
    """

    rows: int
    values: int
    distinct: int
    single: int
    runs: int
    mean_bytes: float
    mean_words: float

    def distinct_in(self, rows: int) -> int:
        """The estimated number of distinct values in a table with so many rows, by the estimator of
        guaranteed error: values that occur once in the sample stand for others that it missed
        (M. Charikar et al., *Towards Estimation Error Guarantees for Distinct Values*, PODS
        2000)."""
        if not self.rows:
            return 0
        factor = sqrt(max(1.0, rows / self.rows))
        return min(rows, round(factor * self.single + self.distinct - self.single))


def propose(
    table: HudiTable,
    definitions: Sequence[IndexDefinition],
    executor: Executor,
    settings: Settings,
    *,
    using: str,
    add: Sequence[Column] = (),
    drop: Sequence[str] = (),
) -> Proposal:
    """Proposes columns to index, each with its reason and cost. Changes nothing.

    Args:
        definitions: The live definitions; their columns are not proposed again.
        executor: What would run the build.
        using: The index type.
        add, drop: Columns to index, and to leave out, whatever speaks for or against them.

    Raises:
        ColumnNotFound, ColumnAmbiguous, ColumnNotIndexable, IndexDefinitionInvalid,
        IndexTypeUnknown: the choice names a column, options or a type that do not exist or fit.
        TableFeatureUnsupported, NeedsSpark: the table cannot be read completely here.
        PermissionDenied, StorageFailed: a base file cannot be read.
        SnapshotChanged: see `HudiTable.snapshot`; or Hudi cleaned base files meanwhile, twice.
    """
    return on_a_whole_snapshot(
        lambda: _Proposer(table, definitions, executor, settings, using, add, drop).proposal()
    )


class _Proposer:
    def __init__(
        self,
        table: HudiTable,
        definitions: Sequence[IndexDefinition],
        executor: Executor,
        settings: Settings,
        using: str,
        add: Sequence[Column],
        drop: Sequence[str],
    ) -> None:
        self._table = table
        self._definitions = definitions
        self._executor = executor
        self._scan_fraction = settings.read.scan_fraction
        self._kind = index_type(using)
        self._snapshot = table.snapshot()
        self._base_files = self._snapshot.base_files()
        self._rows = round(footers(table.storage, self._base_files).all_rows)
        self._bytes = sum(each.size for each in self._base_files)
        self._sample = Sample(table.storage, self._base_files, settings.build)
        schema = self._snapshot.schema
        self._added = {_spelled(schema, each.name): each.options for each in add}
        self._dropped = {_spelled(schema, name) for name in drop}
        for each in add:
            self._specs(self._type_for(each.options), [each])

    def proposal(self) -> Proposal:
        columns = tuple(self._columns()) if self._base_files else ()
        indexes = tuple(self._indexes(columns))
        cost = self._estimate(indexes) if indexes else None
        return Proposal(
            self._table.storage.uri,
            len(self._base_files),
            self._bytes,
            self._rows,
            tuple(self._with_cost(each) for each in columns),
            indexes,
            cost,
        )

    def _columns(self) -> Iterator[ColumnProposal]:
        for name, type in _leaves(self._snapshot.schema):
            if name.startswith(_META_PREFIX) and name not in self._added:
                continue
            yield self._column(name, type)

    def _column(self, name: str, type: pa.DataType) -> ColumnProposal:
        if name in self._added:
            options = self._added[name]
            return ColumnProposal(name, str(type), self._type_for(options), "asked for", options)
        try:
            verdict = self._verdict(name, type)
        except NeedsSpark as error:
            verdict = Verdict(False, error.message.rstrip("."))
        return ColumnProposal(
            name,
            str(type),
            self._kind.name if verdict.yes else None,
            verdict.reason,
            _TEXT_OPTIONS if verdict.is_text else {},
        )

    def _type_for(self, options: Mapping[str, str]) -> str:
        """The index type for a column: only lucene has column options of its own."""
        return _TEXT if set(options) - {STORED, KEY} else self._kind.name

    def _verdict(self, name: str, type: pa.DataType) -> Verdict:
        if name in self._dropped:
            return Verdict(False, "left out as asked for")
        present = [each.name for each in self._definitions if name in names_by_use(each)[0]]
        if present:
            return Verdict(False, f"already in index {', '.join(present)}")
        try:
            self._kind.fields(name, type, {})
        except ColumnNotIndexable:
            return Verdict(False, f"{self._kind.name} cannot hold this type")
        if _is_among(name, self._table.partition_columns()):
            return Verdict(
                False, "it partitions the table, so that queries skip partitions by their path"
            )
        if _is_among(name, self._table.record_key_columns()):
            return Verdict(True, "the record key")
        values = sampled_values(self._sample.values(pa.field(name, type)))
        return verdict_by_values(type, values, self._rows, self._scan_fraction)

    def _with_cost(self, column: ColumnProposal) -> ColumnProposal:
        """The column with what it costs, or, of a text left out, would cost."""
        using = column.using or (_TEXT if column.options else None)
        if using is None:
            return column
        try:
            own = Column(name=column.name, options=dict(column.options))
            cost = self._sample.cost(using, self._specs(using, [own]))
        except (BuildFailed, NativeModuleMissing):  # the estimate of the whole gives the reason
            return column
        return replace(
            column,
            seconds=round(self._bytes * cost.seconds.mean, 3),
            index_bytes=round(self._bytes * cost.index_bytes.mean),
        )

    def _indexes(self, columns: Sequence[ColumnProposal]) -> Iterator[IndexProposal]:
        by_type: defaultdict[str, list[Column]] = defaultdict(list)
        for column in columns:
            if column.using is not None:
                by_type[column.using].append(Column(name=column.name, options=dict(column.options)))
        taken = {each.name for each in self._definitions}
        for using, group in sorted(by_type.items()):
            name = "by_word" if using != self._kind.name else "by_value"
            number = 1
            while (free := name if number == 1 else f"{name}_{number}") in taken:
                number += 1
            yield IndexProposal(free, using, tuple(group))

    def _estimate(self, indexes: Sequence[IndexProposal]) -> Estimate:
        required = requirements(self._definitions, self._snapshot.schema)
        due = [
            entry
            for index in indexes
            for entry in due_with(
                self._base_files, required, index.using, self._specs(index.using, index.columns)
            )
        ]
        return estimate(due, (), executor=self._executor, sample=self._sample)

    def _specs(self, using: str, columns: Sequence[Column]) -> tuple[ColumnSpec, ...]:
        """What an index of that type on these columns holds of them."""
        kind, key = index_type(using), key_of(columns, using)
        specs = []
        for column in columns:
            name, type = find_column(self._snapshot.schema, column_path(column.name))
            own = Column(name=name, options=column.options)
            specs.append(ColumnSpec(name, type, column_fields(own, type, kind, key)))
        return tuple(specs)


def verdict_by_values(
    type: pa.DataType, values: SampledValues, rows: int, scan_fraction: float
) -> Verdict:
    """Whether an index on a column would pay, by its values. The first reason decides.

    Args:
        rows: About how many rows the table has.
        scan_fraction: The setting `read.scan_fraction`.
    """
    if values.distinct <= 1:
        what = "the same" if values.values else "NULL"
        return Verdict(False, f"{what} in all sampled rows")
    if payload := _payload(type, values):
        return payload
    distinct = max(1, values.distinct_in(rows))
    rows_of_a_value, pages = rows / distinct, rows / PAGE_ROWS
    about = f"about {distinct:,} values"
    if not are_few(round(rows_of_a_value), rows):
        return Verdict(False, f"{about}: each is in so many rows that a scan is cheaper")
    if values.values >= _LONG_RUN * values.runs:
        return Verdict(
            False,
            "equal values are in consecutive rows, which the minima and maxima of pages find "
            "already",
        )
    if pages >= _LEAST_PAGES and pages_holding(rows_of_a_value, pages) > scan_fraction * pages:
        return Verdict(
            False,
            f"{about}: each is in nearly every page, so that an index would help counts alone",
        )
    if values.distinct == values.values == values.rows:
        return Verdict(True, "different in each sampled row")
    return Verdict(True, f"{about}, each in about {rows_of_a_value:,.0f} of {rows:,} rows")


def _payload(type: pa.DataType, values: SampledValues) -> Verdict | None:
    """The verdict on long texts and binary values, which are read, not compared."""
    length = f"{values.mean_bytes:,.0f} bytes on average"
    if is_binary(type):
        is_long = values.mean_bytes >= _LONG_BINARY_BYTES
        return Verdict(False, f"long binary values, {length}") if is_long else None
    is_sentence = (
        values.mean_words >= _SENTENCE_WORDS
        and values.distinct >= _DISTINCT_SENTENCES * values.values
    )
    if values.mean_bytes < _LONG_BYTES and not is_sentence:
        return None
    if values.mean_words < _FEWEST_WORDS:
        return Verdict(False, f"long texts, {length}")
    return Verdict(False, f"long texts, {length} ({values.mean_words:,.0f} words)", is_text=True)


def sampled_values(pieces: Iterable[pa.Array]) -> SampledValues:
    """Summarizes the values of pieces of consecutive rows of a column."""
    rows = runs = 0
    values = []
    for piece in pieces:
        rows += len(piece)
        elements = piece.flatten() if pa.types.is_nested(piece.type) else piece
        present = elements.drop_null()
        if len(present):
            changes = pc.not_equal(present.slice(1), present.slice(0, len(present) - 1))
            runs += 1 + (pc.sum(changes).as_py() or 0)
            values.append(present)
    if not values:
        return SampledValues(rows, 0, 0, 0, 0, 0.0, 0.0)
    present = pa.concat_arrays(values)
    type = present.type
    is_text = is_string(type)
    counts = pc.value_counts(present).field("counts")
    return SampledValues(
        rows,
        len(present),
        len(counts),
        pc.sum(pc.equal(counts, integer_scalar(1, counts.type))).as_py() or 0,
        runs,
        float(pc.mean(pc.binary_length(present)).as_py()) if is_text or is_binary(type) else 0.0,
        1 + float(pc.mean(pc.count_substring(present, " ")).as_py()) if is_text else 0.0,
    )


def _spelled(schema: pa.Schema, name: str) -> str:
    """A column's name as the schema spells it."""
    return find_column(schema, column_path(name))[0]


def _is_among(name: str, names: Collection[str]) -> bool:
    return name.lower() in {each.lower() for each in names}


def _leaves(
    parent: pa.Schema | pa.StructType, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, pa.DataType]]:
    """The columns, and in place of structs their fields."""
    for field in parent:
        parts = (*path, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, parts)
        else:
            yield column_name(parts), field.type
