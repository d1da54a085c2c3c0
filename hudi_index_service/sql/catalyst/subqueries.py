"""Sub-queries that the optimizer leaves as expressions: scalar ones, EXISTS with a constant value,
and those that prune partitions while the query runs. All others have become joins."""

from collections.abc import Callable, Iterator
from typing import Any

from hudi_index_service.sql.catalyst.scala import (
    children,
    class_name,
    elements,
    partial_function,
    tree_pattern,
)

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
PRUNING = f"{_EXPRESSIONS}DynamicPruningSubquery"
_KINDS = {
    PRUNING,
    *(f"{_EXPRESSIONS}{name}" for name in ("ScalarSubquery", "Exists", "ListQuery")),
    f"{_EXPRESSIONS}LateralSubquery",
}


class Subqueries:
    """Finds sub-queries in the plans of a session. Calls to the JVM are slow: none is made for
    nodes without any sub-query below them."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm

    def any(self, plan: Any) -> bool:
        """Whether a plan, or an expression, has one."""
        return bool(plan.containsPattern(tree_pattern(self._jvm, "PLAN_EXPRESSION")))

    def plans(self, plan: Any) -> Iterator[Any]:
        """A plan and the plans of its sub-queries, except for those that only prune partitions,
        which are copies of a part of the plan."""
        yield plan
        for each in self._below(plan):
            if class_name(each) != PRUNING:
                yield from self.plans(each.plan())

    def own(self, node: Any) -> Iterator[Any]:
        """The sub-queries in a node's own expressions."""
        if self.any(node) and not node.subqueries().isEmpty():
            for expression in elements(node.expressions()):
                yield from self._within(expression)

    def rewritten(self, node: Any, rewrite: Callable[[Any, bool], Any | None]) -> Any | None:
        """A node of a plan with the sub-queries of its own expressions rewritten; None if none is.

        Args:
            rewrite: Takes a sub-query's plan, and whether it only prunes partitions; returns the
                new plan, or None.
        """
        pairs = []
        for each in self.own(node):
            plan = rewrite(each.plan(), class_name(each) == PRUNING)
            if plan is not None:
                pairs.append((each, each.withNewPlan(plan)))
        if not pairs:
            return None
        return node.transformExpressions(partial_function(self._jvm, pairs))

    def _below(self, plan: Any) -> Iterator[Any]:
        if self.any(plan):
            yield from self.own(plan)
            for child in children(plan):
                yield from self._below(child)

    def _within(self, expression: Any) -> Iterator[Any]:
        if not self.any(expression):
            return
        if class_name(expression) in _KINDS:
            yield expression
            return
        for child in elements(expression.children()):
            yield from self._within(child)
