"""Finds the parts of a plan that need only the number of a relation's rows, in total or for each
value of one column."""

from dataclasses import dataclass
from typing import Any

from hudi_index_service.sql.catalyst.relation import attribute_id, reads_hudi
from hudi_index_service.sql.catalyst.scala import class_name, elements

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_AGGREGATES = f"{_EXPRESSIONS}aggregate."
AGGREGATE, LIMIT = f"{_LOGICAL}Aggregate", f"{_LOGICAL}LocalLimit"
PROJECT, _FILTER = f"{_LOGICAL}Project", f"{_LOGICAL}Filter"
_ATTRIBUTE, _LITERAL = f"{_EXPRESSIONS}AttributeReference", f"{_EXPRESSIONS}Literal"
_ALIAS = f"{_EXPRESSIONS}Alias"
COUNT = f"{_AGGREGATES}Count"
_MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a relation.

    Attributes:
        relation: The relation's node.
        condition: Catalyst's condition on them; None for all rows.
        columns: Id of an attribute that is used above → the relation's attribute.
    """

    relation: Any
    condition: Any | None
    columns: dict[int, Any]

    def column(self, attribute: Any | None) -> Any | None:
        """The relation's attribute for an attribute that is used above it."""
        if attribute is None:
            return None
        return self.columns.get(attribute_id(attribute), attribute)


@dataclass(frozen=True, slots=True)
class Counts:
    """An aggregate that counts.

    Attributes:
        rows: The rows to count.
        group: The text attribute that it groups by; None if it counts all rows together.
        counts: The aggregate expressions, each with the attribute that must not be NULL, if any.
    """

    rows: Rows
    group: Any | None
    counts: list[tuple[Any, Any | None]]


def counts_of(node: Any) -> Counts | None:
    """The counts of an Aggregate; None if it computes anything else."""
    groups = list(elements(node.groupingExpressions()))
    if len(groups) > 1 or not all(_is_text(each) for each in groups):
        return None
    attributes: dict[Any, Any | None] = {}
    for column in elements(node.aggregateExpressions()):
        for aggregate in _aggregates(column):
            arguments = _count_arguments(aggregate)
            if arguments is None:
                return None
            attributes[aggregate] = arguments[0] if arguments else None
    rows = _rows(node.child())
    if rows is None or not (attributes or groups):
        return None
    return Counts(rows, groups[0] if groups else None, list(attributes.items()))


def limited_rows(node: Any) -> tuple[Rows, int] | None:
    """The rows of a LocalLimit that uses none of their columns, and the limit; None for any other
    LocalLimit."""
    limit, below = node.limitExpr(), node.child()
    if class_name(limit) != _LITERAL or class_name(below) != PROJECT:
        return None
    most = int(limit.value())
    if not 0 < most <= _MOST_ROWS or not below.references().isEmpty():
        return None
    rows = _rows(below.child())
    return None if rows is None else (rows, most)


def _is_text(expression: Any) -> bool:
    return (
        class_name(expression) == _ATTRIBUTE and expression.dataType().catalogString() == "string"
    )


def _aggregates(expression: Any) -> list[Any]:
    if class_name(expression) == f"{_AGGREGATES}AggregateExpression":
        return [expression]
    return [
        aggregate for child in elements(expression.children()) for aggregate in _aggregates(child)
    ]


def _count_arguments(aggregate: Any) -> list[Any] | None:
    """The attributes, at most one, that must not be NULL; None if it is not such a count."""
    function = aggregate.aggregateFunction()
    if class_name(function) != COUNT or aggregate.isDistinct() or aggregate.filter().isDefined():
        return None
    attributes = []
    for child in elements(function.children()):
        if class_name(child) == _ATTRIBUTE:
            attributes.append(child)
        elif class_name(child) != _LITERAL or child.nullable():
            return None
    return attributes if len(attributes) < 2 else None


def _rows(node: Any) -> Rows | None:
    columns: dict[int, Any] | None = None
    while class_name(node) == PROJECT:
        below: dict[int, Any] = {}
        for each in elements(node.projectList()):
            source = each.child() if class_name(each) == _ALIAS else each
            if class_name(source) != _ATTRIBUTE:
                return None
            below[attribute_id(each)] = source
        if columns is not None:
            below = {top: below[attribute_id(each)] for top, each in columns.items()}
        columns, node = below, node.child()
    condition = None
    if class_name(node) == _FILTER:
        condition, node = node.condition(), node.child()
    return Rows(node, condition, columns or {}) if reads_hudi(node) else None
