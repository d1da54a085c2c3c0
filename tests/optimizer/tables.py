"""Tables without files: a snapshot, and entries with real manifests, which is all that planning
needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from hudi_index_service.config import Settings
from hudi_index_service.hudi.partition_path import PartitionPaths
from hudi_index_service.hudi.snapshot import BaseFile, FileSlice, Snapshot
from hudi_index_service.index.btree import BTreeIndexType
from hudi_index_service.index.contract import Answer, IndexType, StoredColumn
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.entry import Entry
from hudi_index_service.index.metadata.manifest import (
    BuildInfo,
    IndexedBaseFile,
    Manifest,
    entry_folder,
)
from hudi_index_service.index.packed_file import DataFile
from hudi_index_service.index.stored_column import parse_arrow_type
from hudi_index_service.optimizer.partitions import PartitionValues
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.rules import optimize
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import Compare, In, Operator, Predicate
from hudi_index_service.read.planner import first_slices
from hudi_index_service.read.query import Binding, Query

MB = 2**20


class Ordered(BTreeIndexType):
    """An index type that has only a name and answers: values in order."""

    name = "ordered"

    def fields(self, column: str, type: pa.DataType, options: Mapping[str, str]) -> tuple[str, ...]:
        """One for each column."""
        return ("ordered",)

    def answer(self, leaf: Predicate, columns: Sequence[StoredColumn]) -> Answer:
        """Answers comparisons only."""
        match leaf:
            case Compare(column, operator) if operator is not Operator.NE:
                pass
            case In(column):
                pass
            case _:
                return Answer.NONE
        return Answer.EXACT if column.name in {each.name for each in columns} else Answer.NONE


def _kind(name: str) -> IndexType:
    return Ordered() if name == Ordered.name else index_type(name)


@dataclass(frozen=True)
class PaperTable:
    """A table without files, as a fixture describes it.

    Attributes:
        columns: Name → Arrow type.
        slices: Of each: ``rows``, ``mb`` of its base file, ``partition``, ``log_files``,
            ``index`` (column → what its manifest says: ``nulls``, ``distinct``, ``min``, ``max``),
            ``index_mb`` and ``types`` (of the entries; lucene alone if not given). A base file
            without ``index`` has no entry; without ``mb`` there are log files alone.
        partitioned_by: Columns whose values are in the paths.
    """

    columns: Mapping[str, str]
    slices: Sequence[Mapping[str, Any]]
    partitioned_by: Sequence[str] = field(default=())

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return pa.schema([(name, parse_arrow_type(kind)) for name, kind in self.columns.items()])

    @cached_property
    def snapshot(self) -> Snapshot:
        """The snapshot, with a file slice for each described one."""
        slices = tuple(_file_slice(n, each) for n, each in enumerate(self.slices))
        return Snapshot("20260101000000000", slices, self.schema)

    def query(self, where: str | None, columns: Sequence[str] | None = None) -> Query:
        """A query on the table."""
        return Binding(where, columns, "UTC").to(self.schema)

    def first_plan(
        self, where: str | None, columns: Sequence[str] | None = None, use_index: str = "auto"
    ) -> QueryPlan:
        """The plan of a query before any rule."""
        query = self.query(where, columns)
        paths = PartitionPaths(tuple(self.partitioned_by), hive_style=True)
        partitions = PartitionValues.of(paths, self.snapshot)
        return QueryPlan(
            self.snapshot,
            query.normal_form,
            first_slices(self.snapshot, partitions),
            use_index=use_index,
            partitions=partitions,
            needed=query.needed,
            table="/data/paper",
        )

    def covered(self, plan: QueryPlan) -> QueryPlan:
        """The plan with the described entries."""
        described = dict(zip(self.snapshot.slices, self.slices, strict=True))
        slices = (self._covered(each, described[each.file_slice]) for each in plan.slices)
        return replace(plan, slices=tuple(slices))

    def plan(
        self,
        where: str | None,
        columns: Sequence[str] | None = None,
        use_index: str = "auto",
        settings: Settings | None = None,
    ) -> QueryPlan:
        """The plan of a query after all rules."""
        first = self.first_plan(where, columns, use_index)
        return optimize(first, settings or Settings(), self.covered)

    def _covered(self, plan: SlicePlan, described: Mapping[str, Any]) -> SlicePlan:
        if plan.access is not Access.INDEX:
            return plan
        if "index" not in described:
            return plan.declined("no lucene entry was built for it", "coverage")
        names = described.get("types", ["lucene"])
        entries = tuple(self._entry(plan.file_slice, described, name) for name in names)
        return plan._replace(entries=entries, reason=" and ".join(names) + " entry")

    def _entry(
        self, file_slice: FileSlice, described: Mapping[str, Any], name: str
    ) -> ServingEntry:
        base_file, kind = file_slice.base_file, _kind(name)
        assert base_file is not None
        columns = tuple(
            StoredColumn(
                name=column,
                type=self.columns[column],
                fields=kind.fields(column, self.schema.field(column).type, {}),
                null_count=known.get("nulls", 0),
                distinct=known.get("distinct"),
                minimum=known.get("min"),
                maximum=known.get("max"),
            )
            for column, known in sorted(described["index"].items())
        )
        length = round(described.get("index_mb", 1) * MB)
        return serving_entry(name, base_file, described["rows"], columns, length=length)


def serving_entry(
    name: str,
    base_file: BaseFile,
    rows: int,
    columns: tuple[StoredColumn, ...],
    *,
    length: int = 1,
) -> ServingEntry:
    """An entry of an index type without data, of a base file of these rows."""
    packed = DataFile(
        name="data-1-1.pack",
        length=length,
        block_size=65_536,
        block_crc32="",
        sha256="0" * 64,
        members=(),
    )
    of = IndexedBaseFile(
        path=base_file.path, length=base_file.size, rows=rows, footer_sha256="0" * 64
    )
    manifest = Manifest(
        generation=1,
        index_type=name,
        index_type_version=1,
        base_file=of,
        data=packed,
        columns=columns,
        definitions={"by_all": "1"},
        build=BuildInfo(id="1", started="", finished="", versions={}),
    )
    return ServingEntry(Entry(entry_folder(name, base_file), manifest), _kind(name), columns)


def _file_slice(number: int, described: Mapping[str, Any]) -> FileSlice:
    partition, file_id = described.get("partition", ""), f"file-{number:04d}"
    logs = tuple(f".{file_id}_log.{n}" for n in range(described.get("log_files", 0)))
    path = "/".join(filter(None, [partition, f"{file_id}_0_20260101000000000.parquet"]))
    size = round(described["mb"] * MB)
    base_file = BaseFile(path, partition, file_id, "20260101000000000", size)
    return FileSlice(partition, file_id, base_file, logs)
