"""Finds and replaces calls of Python functions in Catalyst's plans."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of

from hudi_index_service.read.spark.frames import scala_object
from hudi_index_service.sql.catalyst.scala import (
    class_name,
    elements,
    partial_function,
    sequence,
    tree_pattern,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYTHON_CALL = "org.apache.spark.sql.catalyst.expressions.PythonUDF"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_SUBQUERY = f"{_EXPRESSIONS}SubqueryExpression"

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
PROJECT, FILTER, SORT = f"{_LOGICAL}Project", f"{_LOGICAL}Filter", f"{_LOGICAL}Sort"
AGGREGATE = f"{_LOGICAL}Aggregate"

Pairs = list[tuple[Any, Any]]
"""Expressions, each with its replacement."""


def has_python_calls(spark: "SparkSession", plan: Any) -> bool:
    """Whether a plan, or a sub-query in it, calls a Python function."""
    return bool(plan.containsPattern(tree_pattern(spark._jvm, "PYTHON_UDF")))


def python_calls(spark: "SparkSession", node: Any) -> Iterator[Any]:
    """The calls in a node's own expressions, without those in sub-queries."""
    pattern = tree_pattern(spark._jvm, "PYTHON_UDF")
    for each in _with_pattern(node, pattern):
        if class_name(each) == PYTHON_CALL:
            yield each


def rewritten(spark: "SparkSession", plan: Any, pairs: Callable[[Any], Pairs]) -> Any:
    """A plan with expressions replaced in it and in its sub-queries.

    Args:
        pairs: Returns the replacements in a node's own expressions.
    """
    if not has_python_calls(spark, plan):
        return plan
    children = [rewritten(spark, each, pairs) for each in elements(plan.children())]
    changes = [*pairs(plan), *subqueries(spark, plan, lambda p: rewritten(spark, p, pairs))]
    return with_expressions(spark, with_children(spark, plan, children), changes)


def subqueries(spark: "SparkSession", node: Any, rewrite: Callable[[Any], Any]) -> Pairs:
    """The sub-queries with Python calls in a node's own expressions, each with its changed plan."""
    return [
        (each, each.withNewPlan(rewrite(each.plan())))
        for each in _with_pattern(node, tree_pattern(spark._jvm, "PLAN_EXPRESSION"))
        if is_instance_of(spark.sparkContext._gateway, each, _SUBQUERY)
        and has_python_calls(spark, each.plan())
    ]


def with_children(spark: "SparkSession", node: Any, children: list[Any]) -> Any:
    """A node with its children replaced."""
    return node.withNewChildren(sequence(spark._jvm, children))


def with_expressions(spark: "SparkSession", node: Any, pairs: Pairs) -> Any:
    """A node with some of its own expressions replaced."""
    if not pairs:
        return node
    return node.transformExpressions(partial_function(spark._jvm, pairs))


def projected(spark: "SparkSession", columns: list[Any], child: Any) -> Any:
    """A Project."""
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.catalyst.plans.logical.Project(sequence(jvm, columns), child)


def with_attributes(spark: "SparkSession", node: Any, attributes: list[Any]) -> Any:
    """A node whose output includes attributes from below it, except those that are lost on the
    way."""
    missing = [each for each in attributes if not node.outputSet().contains(each)]
    if not missing:
        return node
    below = [with_attributes(spark, each, missing) for each in elements(node.children())]
    if class_name(node) == PROJECT:
        present = [each for each in missing if below[0].outputSet().contains(each)]
        return projected(spark, [*elements(node.projectList()), *present], below[0])
    return with_children(spark, node, below)


def attribute(spark: "SparkSession", name: str, type: Any) -> Any:
    """A new attribute of a plan, which may be NULL."""
    jvm: Any = spark._jvm
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    return expressions.AttributeReference(
        name,
        type,
        True,
        jvm.org.apache.spark.sql.types.Metadata.empty(),
        scala_object(jvm, f"{_EXPRESSIONS}NamedExpression").newExprId(),
        sequence(jvm, []),
    )


def named(spark: "SparkSession", expression: Any, name: str) -> Any:
    """An expression with a name, for a Project."""
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.Column(expression).alias(name).expr()


def python_call(
    spark: "SparkSession", name: str, function: Any, arguments: list[Any], kind: int
) -> Any:
    """A new call.

    Args:
        function: The Java object of a `UserDefinedFunction`.
        kind: Its PythonEvalType.
    """
    jvm: Any = spark._jvm
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    return expressions.PythonUDF(
        name,
        function.func(),
        function.dataType(),
        sequence(jvm, arguments),
        kind,
        True,
        scala_object(jvm, f"{_EXPRESSIONS}NamedExpression").newExprId(),
    )


def boolean(spark: "SparkSession", value: bool | None) -> Any:
    """A literal."""
    jvm: Any = spark._jvm
    type = jvm.org.apache.spark.sql.types.DataType.fromDDL("boolean")
    return jvm.org.apache.spark.sql.catalyst.expressions.Literal.create(value, type)


def conjunction(spark: "SparkSession", conditions: list[Any]) -> Any:
    """AND of one or more conditions."""
    jvm: Any = spark._jvm
    return reduce(jvm.org.apache.spark.sql.catalyst.expressions.And, conditions)


def conjuncts(condition: Any) -> list[Any]:
    """The operands of AND."""
    if class_name(condition) != f"{_EXPRESSIONS}And":
        return [condition]
    return [*conjuncts(condition.left()), *conjuncts(condition.right())]


def _with_pattern(node: Any, pattern: Any) -> Iterator[Any]:
    """The expressions that contain a pattern, outer ones first."""
    if node.containsPattern(pattern):
        for expression in elements(node.expressions()):
            yield from _within(expression, pattern)


def _within(expression: Any, pattern: Any) -> Iterator[Any]:
    if expression.containsPattern(pattern):
        yield expression
        for child in elements(expression.children()):
            yield from _within(child, pattern)
