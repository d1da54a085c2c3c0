"""The rewriting of one query's plan, node by node."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.sql.catalyst.counting import LIMIT
from hudi_index_service.sql.catalyst.expression import Described
from hudi_index_service.sql.catalyst.plan import PlanNode, read_plan
from hudi_index_service.sql.catalyst.scala import sequence
from hudi_index_service.sql.catalyst.subqueries import Subqueries
from hudi_index_service.sql.full_text import Calls
from hudi_index_service.sql.full_text.best import BestRows
from hudi_index_service.sql.full_text.conditions import conditions_on
from hudi_index_service.sql.relations.decision import RelationUse
from hudi_index_service.sql.select.counted import CountedRows, may_count
from hudi_index_service.sql.select.indexed import IndexedTables
from hudi_index_service.sql.select.leaf import RelationLeaves
from hudi_index_service.table import IndexedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_FILTER, _PROJECT = f"{_LOGICAL}Filter", f"{_LOGICAL}Project"
# Nothing below any other node, such as a row policy or a sample, is changed.
_PASSED = {
    f"{_LOGICAL}{name}"
    for name in (
        *("Project", "Filter", "Join", "Aggregate", "Sort", "Window", "Union", "Generate"),
        *("Expand", "Distinct", "GlobalLimit", "LocalLimit", "Offset", "Intersect", "Except"),
        *("Deduplicate", "SubqueryAlias", "WindowGroupLimit", "RepartitionByExpression"),
        *("Repartition", "RebalancePartitions"),
    )
}
Explain = Literal["plan", "analyze"]
_FAILURES = (IndexServiceError, OSError, pa.ArrowException, Py4JJavaError, CapturedException)


class Rewriting:
    """One query's rewriting.

    Attributes:
        uses: The use of each Hudi relation, in the order of the plan.
    """

    def __init__(
        self,
        spark: "SparkSession",
        table: Any,
        subqueries: Subqueries,
        explain: Explain | None,
        calls: Calls | None,
        indexed_tables: IndexedTables,
    ) -> None:
        self._spark = spark
        self._subqueries = subqueries
        self._table = table
        self._explain = explain
        self._calls = calls
        self._leaves = RelationLeaves(spark, table, explain, calls, indexed_tables)
        self._needs_spark: str | None = None
        self.uses: list[RelationUse] = []

    def rewritten(self, plan: Any) -> Any | None:
        """The plan with its relations replaced, or None if nothing changes. Relations that tasks
        would read come last, since the rows of others may provide join keys for them."""
        leaves, root = self._leaves, read_plan(plan)
        if self._calls is None and self._explain != "plan":
            leaves.defer_task_scans = root.has_join
        new_plan = self.replaced(root)
        if leaves.defer_task_scans and leaves.may_learn(plan):
            try:
                leaves.keys.look_at(self._subqueries.plans(plan))
                while leaves.keys.learn(leaves.values, leaves.would_gain):
                    new_plan = self._again(root)
            except _FAILURES as error:
                log.info("No keys of joins: %s", _without_literals(error))
        if leaves.deferred:
            leaves.defer_task_scans = False
            new_plan = self._again(root)
        return new_plan

    def _again(self, root: PlanNode) -> Any | None:
        self.uses = []
        return self.replaced(root)

    def replaced(self, node: PlanNode) -> Any | None:
        """The plan with its relations replaced; None if nothing changes."""
        with self._left_to_spark_below(node):
            return self._replace(node)

    @contextmanager
    def _left_to_spark_below(self, node: PlanNode) -> Iterator[None]:
        """Leaves the relations below a node to Spark if the node's values depend on how Spark's own
        reader returns the rows; sub-queries are separate plans."""
        before = self._needs_spark
        self._needs_spark = before or node.needs_spark
        try:
            yield
        finally:
            self._needs_spark = before

    def _replace(self, node: PlanNode) -> Any | None:
        kind = node.kind
        if node.table is not None:
            return self._relation(node, None, None)
        if kind not in _PASSED:
            reason = f"{kind.rpartition('.')[2]} stands above it in the plan"
            self.uses.extend(
                RelationUse(table, by_index=False, reason=reason) for table in node.tables()
            )
            return None
        if self._needs_spark is None:
            if kind == LIMIT and (best := self._best(node)) is not None:
                return best
            if may_count(node) and (counted_plan := self._count(node)) is not None:
                return counted_plan
        if kind == _FILTER:
            return self._filter(node, above=None)
        if kind == _PROJECT:
            [below] = node.children
            if below.kind == _FILTER:
                return self._above(node, [self._filter(below, above=node)])
            if below.table is not None:
                return self._above(node, [self._relation(below, None, node)])
        return self._above(node, [self.replaced(each) for each in node.children])

    def _best(self, node: PlanNode) -> Any | None:
        if self._calls is None or self._explain == "plan" or _any_needs_spark(node):
            return None
        best = BestRows(self._spark, self._table, self._calls)
        return self._instead(node.java, best, "Its best rows are not asked for")

    def _count(self, node: PlanNode) -> Any | None:
        counting = CountedRows(
            self._spark, self._table, self._exact, lambda: self._is_replaceable(node), self._explain
        )
        return self._instead(node.java, counting, "Not counted by the index")

    def _is_replaceable(self, node: PlanNode) -> bool:
        """Whether Spark need not evaluate a node and its child."""
        nodes = [node, *node.children]  # both may have expressions
        if any(each.needs_spark for each in nodes):
            return False
        own = (self._subqueries.own(each.java) for each in nodes if each.has_subquery)
        return not any(True for subqueries in own for _ in subqueries)

    def _instead(self, node: Any, reader: BestRows | CountedRows, failure: str) -> Any | None:
        """The reader's replacement of a node; None if there is none.

        Args:
            failure: Log message for errors.
        """
        try:
            replacement = reader.instead(node)
        except _FAILURES as error:
            log.info("%s: %s", failure, _without_literals(error))
            return None
        if replacement is None:
            return None
        instead, use = replacement
        self.uses.append(use)
        return instead

    def _filter(self, node: PlanNode, above: PlanNode | None) -> Any | None:
        """A filter, possibly directly above a relation.

        Args:
            above: The node above it that determines the needed columns; None if all are.
        """
        [child] = node.children
        if child.table is None:
            return self._above(node, [self.replaced(child)])
        with self._left_to_spark_below(node):
            relation = self._relation(child, node, above)
        if relation is None or self._calls is None:
            return self._above(node, [relation])
        return self._above(
            node, [relation], self._calls.decided(node.java, self._table(child.table))
        )

    def _relation(
        self, node: PlanNode, condition: PlanNode | None, above: PlanNode | None
    ) -> Any | None:
        assert node.table is not None
        if self._needs_spark is not None:
            self.uses.append(RelationUse(node.table, by_index=False, reason=self._needs_spark))
            return None
        use = RelationUse(node.table, by_index=False, reason="")
        try:
            rows, use = self._leaves.instead(node, condition, above, use)
        except _FAILURES as error:
            # Spark's own reader answers or reports the error.
            reason = error.message if isinstance(error, IndexServiceError) else str(error)
            rows, use = None, replace(use, reason=reason.splitlines()[0].rstrip("."))
        self.uses.append(use)
        return rows

    def _above(
        self, node: PlanNode, new_children: list[Any | None], instead: Any | None = None
    ) -> Any | None:
        """The node with new children (None keeps an old one) and rewritten sub-queries; None if
        nothing changes.

        Args:
            instead: JVM node that replaces the node if something changes; None to keep it.
        """
        any_new = any(each is not None for each in new_children)
        if not any_new and not node.has_subquery:
            return None
        top = node.java if instead is None else instead
        new_top = None
        if node.has_subquery:
            new_top = self._subqueries.rewritten(top, self._subquery)
        if not any_new:
            return new_top
        if new_top is not None:
            top = new_top
        children = [
            old.java if new is None else new
            for old, new in zip(node.children, new_children, strict=True)
        ]
        return top.withNewChildren(sequence(self._spark._jvm, children))

    def _subquery(self, plan: Any, prunes: bool) -> Any | None:
        use_count, needs_spark = len(self.uses), self._needs_spark
        if not prunes:
            self._needs_spark = None
        try:
            new_plan = self.replaced(read_plan(plan))
        finally:
            self._needs_spark = needs_spark
        if prunes:  # a copy of a part of the plan, which determines the partitions to read
            del self.uses[use_count:]
        return new_plan

    def _exact(self, table: IndexedTable, condition: Described) -> str | None:
        return conditions_on(table, self._calls).exact(condition)


def _any_needs_spark(node: PlanNode) -> bool:
    return node.needs_spark is not None or any(map(_any_needs_spark, node.children))


def _without_literals(error: Exception) -> str:
    """The error's code or class, without its message, which may contain search literals."""
    return error.code if isinstance(error, IndexServiceError) else type(error).__name__
