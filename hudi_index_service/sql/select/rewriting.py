"""The rewriting of one query's plan, node by node."""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from py4j.protocol import Py4JJavaError

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.indexed_table import IndexedTable
from hudi_index_service.sql.full_text import Calls
from hudi_index_service.sql.full_text.best import BestRows
from hudi_index_service.sql.select.counted import COUNTING, CountedRows
from hudi_index_service.sql.select.counting import LIMIT
from hudi_index_service.sql.select.decision import RelationUse
from hudi_index_service.sql.select.indexed import IndexedTables
from hudi_index_service.sql.select.join_keys import joins_in
from hudi_index_service.sql.select.leaf import Leaves, conditions_on
from hudi_index_service.sql.select.relation import RELATION, reads_hudi, table_path
from hudi_index_service.sql.select.scala import children, class_name, sequence
from hudi_index_service.sql.select.subqueries import Subqueries
from hudi_index_service.sql.select.unordered import left_to_spark

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
_FAILURES = (IndexServiceError, OSError, pa.ArrowException, Py4JJavaError)


class OnlySpark(Exception):
    """The query's answer depends on how Spark's own reader hands over the rows; says how."""


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
        self._any_subquery = False
        self._table = table
        self._explain = explain
        self._calls = calls
        self._leaves = Leaves(spark, table, explain, calls, indexed)
        self.uses: list[RelationUse] = []

    def rewritten(self, plan: Any) -> Any | None:
        """The plan with its relations replaced, those last that tasks would read: what others hold
        may tell which of their rows a join asks for. None if nothing of it changes."""
        made = self._leaves
        self._any_subquery = self._subqueries.any(plan)
        if self._calls is None and self._explain != "plan":
            made.patient = self._subqueries.any_join(plan)
        found = self.replaced(plan)
        if made.patient and made.may_learn(plan):
            try:
                self._look_at_joins(plan)
                while made.keys.learn(made.values, made.would_gain):
                    found = self._again(plan)
            except _FAILURES as error:
                log.info("No keys of joins: %s", _without_literals(error))
        if made.postponed:
            made.patient = False
            found = self._again(plan)
        return found

    def _look_at_joins(self, plan: Any) -> None:
        every = list(self._subqueries.plans(plan))
        self._leaves.tell_apart(every)
        self._leaves.keys.look_at(join for each in every for join in joins_in(each))

    def _again(self, plan: Any) -> Any | None:
        self.uses = []
        return self.replaced(plan)

    def replaced(self, node: Any) -> Any | None:
        """The plan with its relations replaced; None if nothing of it changes."""
        kind = class_name(node)
        if kind == RELATION:
            return self._relation(node, None, None) if reads_hudi(node, kind) else None
        if kind not in _PASSED:
            for leaf in filter(reads_hudi, self._subqueries.leaves(node)):
                self._left(leaf, f"{kind.rpartition('.')[2]} stands above it in the plan")
            return None
        if kind == LIMIT and (best := self._best(node)) is not None:
            return best
        if kind in COUNTING and (counted := self._counted(node)) is not None:
            return counted
        if kind == _FILTER:
            return self._filtered(node, wanted=None)
        below = children(node)
        if kind == _PROJECT:
            first = class_name(below[0])
            if first == _FILTER:
                filtered = self._filtered(below[0], wanted=node.references())
                return self._above(node, below, [filtered])
            if first == RELATION and reads_hudi(below[0], first):
                found = self._relation(below[0], None, node.references())
                return self._above(node, below, [found])
        return self._above(node, below, [self.replaced(each) for each in below])

    def _best(self, node: Any) -> Any | None:
        if self._calls is None or self._explain == "plan":
            return None
        best = BestRows(self._spark, self._table, self._calls)
        return self._instead(node, best, "Its best rows are not asked for")

    def _counted(self, node: Any) -> Any | None:
        if self._subqueries.any_join(node):  # then it is no number of one relation's rows
            return None
        counting = CountedRows(
            self._spark, self._table, self._exact, self._is_replaceable, self._explain
        )
        return self._instead(node, counting, "Not counted by the index")

    def _is_replaceable(self, node: Any) -> bool:
        """Whether nothing is lost if Spark does not evaluate a node and its child."""
        nodes = [node, node.child()]  # of which both may have expressions
        if any(map(left_to_spark, nodes)):
            return False
        return not self._any_subquery or not any(
            True for each in nodes for _ in self._subqueries.own(each)
        )

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

    def _filtered(self, node: Any, wanted: Any | None) -> Any | None:
        """A filter, perhaps right above a relation.

        Args:
            wanted: The attributes that are asked for above it; None for all.
        """
        child = node.child()
        below: Any | None
        if reads_hudi(child):
            below = self._relation(child, node, wanted)
            if below is not None and self._calls is not None:
                node = self._calls.decided(node, self._table(table_path(child)))
        else:
            below = self.replaced(child)
        return self._above(node, [child], [below])

    def _relation(self, node: Any, condition: Any | None, wanted: Any | None) -> Any | None:
        use = RelationUse(table_path(node), by_index=False, reason="")
        try:
            rows, use = self._leaves.instead(node, condition, wanted, use)
        except _FAILURES as error:
            # Spark's own reader answers, or says what is wrong.
            reason = error.message if isinstance(error, IndexServiceError) else str(error)
            rows, use = None, replace(use, reason=reason.splitlines()[0].rstrip("."))
        self.uses.append(use)
        return rows

    def _above(self, node: Any, below: list[Any], found: list[Any | None]) -> Any | None:
        """The node above new children, None standing for an old one, and with its sub-queries
        rewritten; None if nothing of it changes."""
        changed = None
        if self._any_subquery:
            changed = self._subqueries.rewritten(node, self._subquery)
        if all(each is None for each in found):
            return changed
        reason = left_to_spark(node)
        if reason is not None:
            raise OnlySpark(reason)
        every = [old if new is None else new for old, new in zip(below, found, strict=True)]
        top = node if changed is None else changed
        return top.withNewChildren(sequence(self._spark._jvm, every))

    def _subquery(self, plan: Any, prunes: bool) -> Any | None:
        seen = len(self.uses)
        found = self.replaced(plan)
        if prunes:  # a part of the plan once more, to see which partitions to read
            del self.uses[seen:]
        return found

    def _left(self, node: Any, reason: str) -> None:
        self.uses.append(RelationUse(table_path(node), by_index=False, reason=reason))

    def _exact(self, table: IndexedTable, condition: Any) -> str | None:
        return conditions_on(table, self._calls).exact(condition)


def _without_literals(error: Exception) -> str:
    """What went wrong, without the message, which may have what people search for."""
    return error.code if isinstance(error, IndexServiceError) else type(error).__name__
