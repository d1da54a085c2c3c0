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
from hudi_index_service.indexed_table import IndexedTable
from hudi_index_service.sql.full_text import Calls
from hudi_index_service.sql.full_text.best import BestRows
from hudi_index_service.sql.select.counted import CountedRows, may_count
from hudi_index_service.sql.select.counting import LIMIT
from hudi_index_service.sql.select.decision import RelationUse
from hudi_index_service.sql.select.expression import Described
from hudi_index_service.sql.select.indexed import IndexedTables
from hudi_index_service.sql.select.join_keys import joins_in
from hudi_index_service.sql.select.leaf import Leaves, conditions_on
from hudi_index_service.sql.select.plan import PlanNode, read_plan
from hudi_index_service.sql.select.scala import sequence
from hudi_index_service.sql.select.subqueries import Subqueries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_FILTER, _PROJECT = f"{_LOGICAL}Filter", f"{_LOGICAL}Project"
# Below any other node, a row policy or a sample say, nothing is touched.
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
        uses: What became of each Hudi relation, in the order of the plan.
    """

    def __init__(
        self,
        spark: "SparkSession",
        table: Any,
        subqueries: Subqueries,
        explain: Explain | None,
        calls: Calls | None,
        indexed: IndexedTables,
    ) -> None:
        self._spark = spark
        self._subqueries = subqueries
        self._table = table
        self._explain = explain
        self._calls = calls
        self._leaves = Leaves(spark, table, explain, calls, indexed)
        self._needs_spark: str | None = None
        self.uses: list[RelationUse] = []

    def rewritten(self, plan: Any) -> Any | None:
        """The plan with its relations replaced, those last that tasks would read: what others hold
        may tell which of their rows a join asks for. None if nothing of it changes."""
        made, root = self._leaves, read_plan(plan)
        if self._calls is None and self._explain != "plan":
            made.patient = root.has_join
        found = self.replaced(root)
        if made.patient and made.may_learn(plan):
            try:
                self._look_at_joins(plan)
                while made.keys.learn(made.values, made.would_gain):
                    found = self._again(root)
            except _FAILURES as error:
                log.info("No keys of joins: %s", _without_literals(error))
        if made.postponed:
            made.patient = False
            found = self._again(root)
        return found

    def _look_at_joins(self, plan: Any) -> None:
        every = list(self._subqueries.plans(plan))
        self._leaves.tell_apart(every)
        self._leaves.keys.look_at(join for each in every for join in joins_in(each))

    def _again(self, root: PlanNode) -> Any | None:
        self.uses = []
        return self.replaced(root)

    def replaced(self, node: PlanNode) -> Any | None:
        """The plan with its relations replaced; None if nothing of it changes."""
        with self._left_to_spark_below(node):
            return self._replaced(node)

    @contextmanager
    def _left_to_spark_below(self, node: PlanNode) -> Iterator[None]:
        """Leaves the relations below a node to Spark, where the node's values depend on how Spark's
        own reader hands over the rows; sub-queries are plans of their own."""
        before = self._needs_spark
        self._needs_spark = before or node.needs_spark
        try:
            yield
        finally:
            self._needs_spark = before

    def _replaced(self, node: PlanNode) -> Any | None:
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
            if may_count(node) and (counted := self._counted(node)) is not None:
                return counted
        if kind == _FILTER:
            return self._filtered(node, above=None)
        if kind == _PROJECT:
            [below] = node.children
            if below.kind == _FILTER:
                return self._above(node, [self._filtered(below, above=node)])
            if below.table is not None:
                return self._above(node, [self._relation(below, None, node)])
        return self._above(node, [self.replaced(each) for each in node.children])

    def _best(self, node: PlanNode) -> Any | None:
        if self._calls is None or self._explain == "plan" or _any_needs_spark(node):
            return None
        best = BestRows(self._spark, self._table, self._calls)
        return self._instead(node.java, best, "Its best rows are not asked for")

    def _counted(self, node: PlanNode) -> Any | None:
        counting = CountedRows(
            self._spark, self._table, self._exact, lambda: self._is_replaceable(node), self._explain
        )
        return self._instead(node.java, counting, "Not counted by the index")

    def _is_replaceable(self, node: PlanNode) -> bool:
        """Whether nothing is lost if Spark does not evaluate a node and its child."""
        nodes = [node, *node.children]  # of which both may have expressions
        if any(each.needs_spark for each in nodes):
            return False
        own = (self._subqueries.own(each.java) for each in nodes if each.has_subquery)
        return not any(True for found in own for _ in found)

    def _instead(self, node: Any, reader: BestRows | CountedRows, failed: str) -> Any | None:
        """What a reader puts in a node's place; None if nothing.

        Args:
            failed: For the log.
        """
        try:
            found = reader.instead(node)
        except _FAILURES as error:
            log.info("%s: %s", failed, _without_literals(error))
            return None
        if found is None:
            return None
        instead, use = found
        self.uses.append(use)
        return instead

    def _filtered(self, node: PlanNode, above: PlanNode | None) -> Any | None:
        """A filter, perhaps right above a relation.

        Args:
            above: The node above it that tells which columns are needed; None if all are.
        """
        [child] = node.children
        if child.table is None:
            return self._above(node, [self.replaced(child)])
        with self._left_to_spark_below(node):
            found = self._relation(child, node, above)
        if found is None or self._calls is None:
            return self._above(node, [found])
        return self._above(node, [found], self._calls.decided(node.java, self._table(child.table)))

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
            # Spark's own reader answers, or says what is wrong.
            reason = error.message if isinstance(error, IndexServiceError) else str(error)
            rows, use = None, replace(use, reason=reason.splitlines()[0].rstrip("."))
        self.uses.append(use)
        return rows

    def _above(
        self, node: PlanNode, found: list[Any | None], instead: Any | None = None
    ) -> Any | None:
        """The node above new children, None standing for an old one, and with its sub-queries
        rewritten; None if nothing of it changes.

        Args:
            instead: In the JVM, takes the node's place if something changes; None if it stays.
        """
        anything = any(each is not None for each in found)
        if not anything and not node.has_subquery:
            return None
        top = node.java if instead is None else instead
        changed = None
        if node.has_subquery:
            changed = self._subqueries.rewritten(top, self._subquery)
        if not anything:
            return changed
        if changed is not None:
            top = changed
        every = [
            old.java if new is None else new for old, new in zip(node.children, found, strict=True)
        ]
        return top.withNewChildren(sequence(self._spark._jvm, every))

    def _subquery(self, plan: Any, prunes: bool) -> Any | None:
        seen, outside = len(self.uses), self._needs_spark
        if not prunes:
            self._needs_spark = None
        try:
            found = self.replaced(read_plan(plan))
        finally:
            self._needs_spark = outside
        if prunes:  # a part of the plan once more, to see which partitions to read
            del self.uses[seen:]
        return found

    def _exact(self, table: IndexedTable, condition: Described) -> str | None:
        return conditions_on(table, self._calls).exact(condition)


def _any_needs_spark(node: PlanNode) -> bool:
    return node.needs_spark is not None or any(map(_any_needs_spark, node.children))


def _without_literals(error: Exception) -> str:
    """What went wrong, without the message, which may have what people search for."""
    return error.code if isinstance(error, IndexServiceError) else type(error).__name__
