"""Looks at a table's schema and a sample of its rows, and proposes columns to index."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_index_service.build.estimate import Estimate, due_with, estimate
from hudi_index_service.build.executor import Executor
from hudi_index_service.build.sample import Sample
from hudi_index_service.columns import column_name, column_path, find_column
from hudi_index_service.config import Settings
from hudi_index_service.errors import BuildFailed, NativeModuleMissing, NeedsSpark
from hudi_index_service.hudi.files.parquet_file import Footers, footers
from hudi_index_service.hudi.snapshot import Snapshot
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.column_fields import (
    KEY,
    STORED,
    column_fields,
    key_of,
    names_by_use,
)
from hudi_index_service.index.metadata.definitions import Column, IndexDefinition
from hudi_index_service.index.metadata.requirements import requirements
from hudi_index_service.maintain.propose.proposal import ColumnProposal, IndexProposal, Proposal
from hudi_index_service.maintain.propose.rules import Candidate, Verdict
from hudi_index_service.maintain.propose.values import sampled_values
from hudi_index_service.read.whole_snapshot import on_a_whole_snapshot

_META_PREFIX = "_hoodie_"
_TEXT = "lucene"
_TEXT_OPTIONS = {"analyzer": "standard", "keyword": "false"}


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user chose.

    Attributes:
        using: The index type.
        add, drop: Columns to index, and to leave out, whatever speaks for or against them.
    """

    using: str
    add: Sequence[Column] = ()
    drop: Sequence[str] = ()


def propose(
    table: HudiTable,
    definitions: Sequence[IndexDefinition],
    executor: Executor,
    settings: Settings,
    choice: Choice,
) -> Proposal:
    """Proposes columns to index, each with its reason and cost. Changes nothing.

    Args:
        definitions: The live definitions; their columns are not proposed again.
        executor: What would run the build.

    Raises:
        ColumnNotFound, ColumnAmbiguous, ColumnNotIndexable, IndexDefinitionInvalid,
        IndexTypeUnknown: the choice names a column, options or a type that do not exist or fit.
        TableFeatureUnsupported, NeedsSpark: the table cannot be read completely here.
        PermissionDenied, StorageFailed: a base file cannot be read.
        SnapshotChanged: see `HudiTable.snapshot`; or Hudi cleaned base files meanwhile, twice.
    """

    def proposed() -> Proposal:
        return _Proposer(table, definitions, executor, settings, choice).proposal()

    return on_a_whole_snapshot(proposed)


class _Proposer:
    def __init__(
        self,
        table: HudiTable,
        definitions: Sequence[IndexDefinition],
        executor: Executor,
        settings: Settings,
        choice: Choice,
    ) -> None:
        self._table = table
        self._definitions = definitions
        self._executor = executor
        self._settings = settings
        self._kind = index_type(choice.using)
        self._snapshot: Snapshot = table.snapshot()
        self._base_files = self._snapshot.base_files()
        self._footers: Footers = footers(table.storage, self._base_files)
        self._sample = Sample(table.storage, self._base_files, settings.build)
        schema = self._snapshot.schema
        self._added = {_spelled(schema, each.name): each.options for each in choice.add}
        self._dropped = {_spelled(schema, name) for name in choice.drop}
        for each in choice.add:
            self._specs(self._type_for(each.options), [each])

    def proposal(self) -> Proposal:
        columns = tuple(self._columns()) if self._base_files else ()
        indexes = tuple(self._indexes(columns))
        cost = self._estimate(indexes) if indexes else None
        return Proposal(
            self._table.storage.uri,
            len(self._base_files),
            sum(each.size for each in self._base_files),
            self._rows,
            tuple(self._with_cost(each) for each in columns),
            indexes,
            cost,
        )

    @property
    def _rows(self) -> int:
        return round(self._footers.all_rows)

    def _columns(self) -> Iterator[ColumnProposal]:
        for name, type in _leaves(self._snapshot.schema):
            if name.startswith(_META_PREFIX) and name not in self._added:
                continue
            yield self._column(name, type)

    def _column(self, name: str, type: pa.DataType) -> ColumnProposal:
        if name in self._added:
            options = self._added[name]
            using = self._type_for(options)
            return ColumnProposal(name, str(type), using, "asked for", options)
        if name in self._dropped:
            return ColumnProposal(name, str(type), None, "left out as asked for")
        try:
            verdict = self._verdict(name, type)
        except NeedsSpark as error:
            return ColumnProposal(name, str(type), None, error.message.rstrip("."))
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
        field = pa.field(name, type)
        return Candidate(
            name,
            type,
            self._kind,
            is_key=_is_among(name, self._table.record_key_columns()),
            is_partition=_is_among(name, self._table.partition_columns()),
            indexed_by=tuple(
                each.name for each in self._definitions if name in names_by_use(each)[0]
            ),
            rows=self._rows,
            read=self._settings.read,
            sample=lambda: sampled_values(self._sample.values(field)),
        ).verdict()

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
        size = sum(each.size for each in self._base_files)
        return replace(
            column,
            seconds=round(size * cost.seconds.mean, 3),
            index_bytes=round(size * cost.index_bytes.mean),
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
        return estimate(
            due,
            (),
            parallelism=self._executor.parallelism,
            cores=self._executor.cores,
            sample=self._sample,
        )

    def _specs(self, using: str, columns: Sequence[Column]) -> tuple[ColumnSpec, ...]:
        """What an index of that type on these columns holds of them."""
        kind, key = index_type(using), key_of(columns, using)
        specs = []
        for column in columns:
            name, type = find_column(self._snapshot.schema, column_path(column.name))
            own = Column(name=name, options=column.options)
            specs.append(ColumnSpec(name, type, column_fields(own, type, kind, key)))
        return tuple(specs)


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
