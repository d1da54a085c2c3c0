"""What of a plan asks for nothing but the number of a relation's rows, or for that of each value
of one column."""

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
_MOST_WANTED = 10_000


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a relation.

    Attributes:
        relation: The relation's node.
        condition: Catalyst's condition on them; None for all rows.
        columns: By the ids of the attributes that are asked for above, those of the relation.
    """

    relation: Any
    condition: Any | None
    columns: dict[int, Any]

    def column(self, attribute: Any | None) -> Any | None:
        """The relation's attribute that an attribute above it stands for."""
        if attribute is None:
            return None
        return self.columns.get(attribute_id(attribute), attribute)


@dataclass(frozen=True, slots=True)
class Counts:
    """An aggregate that counts.

    Attributes:
        rows: What is counted.
        group: The attribute, a text, by whose values it counts; None for all rows together.
        counts: The aggregate expressions, each with the attribute that must not be NULL, if any.
    """

    rows: Rows
    group: Any | None
    counts: list[tuple[Any, Any | None]]


def counts_of(node: Any) -> Counts | None:
    """What an Aggregate counts; None for any other one."""
    groups = list(elements(node.groupingExpressions()))
    if len(groups) > 1 or not all(_is_text(each) for each in groups):
        return None
    found: dict[Any, Any | None] = {}
    for column in elements(node.aggregateExpressions()):
        for aggregate in _aggregates(column):
            counted = _counted(aggregate)
            if counted is None:
                return None
            found[aggregate] = counted[0] if counted else None
    rows = _rows(node.child())
    if rows is None or not (found or groups):
        return None
    return Counts(rows, groups[0] if groups else None, list(found.items()))


def limited_rows(node: Any) -> tuple[Rows, int] | None:
    """Of a LocalLimit the rows, and how many of them at most, where no column of theirs is asked
    for; None for any other one."""
    limit, below = node.limitExpr(), node.child()
    if class_name(limit) != _LITERAL or class_name(below) != PROJECT:
        return None
    wanted = int(limit.value())
    if not 0 < wanted <= _MOST_WANTED or not below.references().isEmpty():
        return None
    rows = _rows(below.child())
    return None if rows is None else (rows, wanted)


def _is_text(expression: Any) -> bool:
    return (
        class_name(expression) == _ATTRIBUTE and expression.dataType().catalogString() == "string"
    )


def _aggregates(expression: Any) -> list[Any]:
    if class_name(expression) == f"{_AGGREGATES}AggregateExpression":
        return [expression]
    return [found for child in elements(expression.children()) for found in _aggregates(child)]


def _counted(aggregate: Any) -> list[Any] | None:
    """The attributes, one at most, that must not be NULL; None if it is no such count."""
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
