"""Replaces counts and tests of existence in a plan by answers of the index."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_index_service.optimizer.plan import Access
from hudi_index_service.predicate.spark_sql import identifier_sql
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.slices.index_estimates import with_index_estimates
from hudi_index_service.sql.catalyst.counting import (
    AGGREGATE,
    COUNT,
    LIMIT,
    PROJECT,
    Counts,
    Rows,
    counts_of,
    limited_rows,
)
from hudi_index_service.sql.catalyst.expression import Described, read_condition
from hudi_index_service.sql.catalyst.plan import PlanNode
from hudi_index_service.sql.catalyst.relation import HudiRelation, hudi_relation
from hudi_index_service.sql.catalyst.scala import class_name, elements, partial_function, sequence
from hudi_index_service.sql.relations.decision import RelationUse, serving_indexes, with_others
from hudi_index_service.sql.relations.every_row import every_row
from hudi_index_service.sql.relations.observed import Observed
from hudi_index_service.sql.relations.pinned import pinned
from hudi_index_service.sql.relations.rows import read_here
from hudi_index_service.sql.relations.weighing import scanned_alone
from hudi_index_service.table import IndexedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def may_count(node: PlanNode) -> bool:
    """Whether a node may need only the number of one relation's rows."""
    if node.has_join:
        return False
    if node.kind == AGGREGATE:
        return not set(node.functions or ()) - {COUNT}
    return node.kind == LIMIT and node.children[0].kind == PROJECT


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Answers plan nodes that need only numbers of rows.

    Attributes:
        table: Opens the table of a path.
        exact: Returns the where text equivalent to a condition on a table; None if there is none.
        replaceable: Whether the node and its child may be replaced, whatever they count.
        explain: See `SelectRewriter.rewritten`.
    """

    spark: "SparkSession"
    table: Callable[[str], IndexedTable]
    exact: Callable[[IndexedTable, Described], str | None]
    replaceable: Callable[[], bool]
    explain: str | None

    def instead(self, node: Any) -> tuple[Any, RelationUse] | None:
        """The replacement of an Aggregate or a LocalLimit, and the use of its relation; None if it
        needs more than numbers, or the index does not have them."""
        if class_name(node) == AGGREGATE:
            counts = counts_of(node)
            if counts is None or not self.replaceable():
                return None
            return self._count(node, counts)
        limit = limited_rows(node)
        if limit is None or not self.replaceable():
            return None
        return self._limit(node, *limit)

    def _count(self, node: Any, counts: Counts) -> tuple[Any, RelationUse] | None:
        source = self._source(counts.rows, counts.rows.column(counts.group))
        if source is None:
            return None
        not_null = [counts.rows.column(each) for _, each in counts.counts]
        conditions = [source.where_not_null(column) for column in not_null]
        wheres = dict.fromkeys(conditions if counts.group is None else [source.where, *conditions])
        runs = {where: source.run(where) for where in wheres}
        reads = {where: run for where, run in runs.items() if run is not None}
        if len(reads) < len(runs):
            return None
        first = next(iter(reads.values()))
        if self.explain == "plan":
            return node, source.use(first, self.explain)
        started = perf_counter()
        if counts.group is None:
            totals = {where: run.count() for where, run in reads.items()}
            values = [[totals[where]] for where in conditions]
        else:
            by_value = {where: run.value_counts(source.columns[0]) for where, run in reads.items()}
            groups = list(by_value[source.where])
            values = [[by_value[where][each] for each in groups] for where in conditions]
        fields = [pa.field(f"count_{i}", pa.int64(), nullable=False) for i in range(len(values))]
        arrays = [pa.array(each, pa.int64()) for each in values]
        output: list[Any | None] = [None] * len(values)
        if counts.group is not None:
            fields.insert(0, pa.field(source.columns[0], pa.string()))
            arrays.insert(0, pa.array(groups, pa.string()))
            output.insert(0, counts.group)
        rows = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
        leaf = read_here(self.spark, rows, output)
        jvm: Any = self.spark._jvm
        attributes = list(elements(leaf.output()))[len(output) - len(values) :]
        pairs = [(each, by) for (each, _), by in zip(counts.counts, attributes, strict=True)]
        project = jvm.org.apache.spark.sql.catalyst.plans.logical.Project(
            node.aggregateExpressions(), leaf
        )
        use = source.use(first, self.explain, rows.num_rows, perf_counter() - started)
        return project.transformExpressions(partial_function(jvm, pairs)), use

    def _limit(self, node: Any, rows: Rows, most: int) -> tuple[Any, RelationUse] | None:
        source = self._source(rows, None)
        run = None if source is None else source.run(source.where)
        if source is None or run is None:
            return None
        if self.explain == "plan":
            return node, source.use(run, self.explain)
        started = perf_counter()
        count = int(run.exists()) if most == 1 else min(most, run.count())
        leaf = read_here(self.spark, pa.table({"row": pa.array(range(count), pa.int64())}), [None])
        use = source.use(run, self.explain, count, perf_counter() - started)
        jvm = self.spark._jvm
        project = node.child().withNewChildren(sequence(jvm, [leaf]))
        return node.withNewChildren(sequence(jvm, [project])), use

    def _source(self, rows: Rows, group: Any | None) -> "_Source | None":
        relation = hudi_relation(rows.relation)
        if isinstance(relation, str):
            return None
        table = self.table(relation.uri)
        if rows.condition is not None:
            where = self.exact(table, read_condition(rows.condition))
        else:
            where = every_row(table, None if group is None else str(group.name()))
        if where is None or not table.indexes():
            return None
        return _Source(self.spark, table, relation, where, group)


@dataclass(frozen=True, slots=True)
class _Source:
    """The rows that are counted: those of `relation` for which `where` is TRUE."""

    spark: "SparkSession"
    table: IndexedTable
    relation: HudiRelation
    where: str
    group: Any | None

    @property
    def columns(self) -> list[str]:
        return [] if self.group is None else [str(self.group.name())]

    def where_not_null(self, column: Any | None) -> str:
        if column is None or not column.nullable():
            return self.where
        return f"({self.where}) AND ({identifier_sql(str(column.name()))} IS NOT NULL)"

    def run(self, where: str) -> Execution | None:
        """The planned query, if the index answers it except for a few bytes to scan; else None."""
        run = pinned(self.table, self.relation, where, self.columns)
        if isinstance(run, str) or not scanned_alone(run, next(iter(self.columns), None)):
            return None
        if self.group is not None and run.reader.query.output.types != [pa.string()]:
            return None
        return run

    def use(
        self, run: Execution, explain: str | None, rows: int | None = None, seconds: float = 0.0
    ) -> RelationUse:
        other_slices = run.plan.count(Access.SCAN) + run.plan.count(Access.MERGE)
        observed = None
        if explain == "analyze":
            observed = Observed()
            observed.read_here(run.statistics, seconds)
        return RelationUse(
            self.relation.uri,
            by_index=True,
            reason=with_others("the index counts its rows", other_slices),
            where=self.where,
            columns=tuple(self.columns),
            instant=run.plan.snapshot.instant,
            rows=rows,
            read=None if rows is None else run.statistics,
            indexes=() if explain is None else serving_indexes(self.table.indexes(), run.plan),
            plan=None if explain is None else with_index_estimates(run.plan, run.reader),
            observed=observed,
        )
