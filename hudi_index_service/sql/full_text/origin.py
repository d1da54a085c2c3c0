"""Resolves an expression of an analyzed plan to a table's column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_index_service.columns import column_name
from hudi_index_service.sql.catalyst.relation import reads_hudi
from hudi_index_service.sql.catalyst.scala import class_name, elements

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
# Their rows are those of their left side.
_OF_THE_LEFT = {f"{_LOGICAL}Intersect", f"{_LOGICAL}Except"}


@dataclass(frozen=True, slots=True)
class Origin:
    """A column of a Hudi relation, or a field of one.

    Attributes:
        relation: The relation.
        column: Its name in the façade's syntax.
    """

    relation: Any
    column: str


class NoColumn(Exception):
    """The expression is not an unchanged column of a Hudi table."""


def cte_definitions(plan: Any) -> dict[int, Any]:
    """Id → plan of a query's CTEs, without those of sub-queries."""
    definitions = {}
    if class_name(plan) == f"{_LOGICAL}CTERelationDef":
        definitions[int(plan.id())] = plan.child()
    for child in elements(plan.children()):
        definitions.update(cte_definitions(child))
    return definitions


@dataclass(frozen=True, slots=True)
class Origins:
    """Finds origins in one query.

    Attributes:
        ctes: The plans of its CTEs.
    """

    ctes: Mapping[int, Any]

    def of(self, expression: Any, around: Sequence[Any]) -> list[Origin]:
        """The origins of a column; several if it passes through a UNION.

        Args:
            expression: One of a node's expressions.
            around: The node, and the nodes around its sub-query.

        Raises:
            NoColumn
        """
        attribute, fields = path_of(expression)
        for node in around:
            for child in elements(node.children()):
                if child.outputSet().contains(attribute):
                    return [
                        Origin(each.relation, column_name((*each.parts, *fields)))
                        for each in self._below(child, attribute)
                    ]
        raise NoColumn

    def _below(self, node: Any, attribute: Any) -> "Iterator[_Column]":
        kind = class_name(node)
        if reads_hudi(node):
            yield _Column(node, (str(attribute.name()),))
        elif kind == f"{_LOGICAL}CTERelationRef":
            definition = self.ctes.get(int(node.cteId()))
            if definition is None:
                raise NoColumn
            place = place_of(node, attribute)
            yield from self._below(definition, list(elements(definition.output()))[place])
        elif kind == f"{_LOGICAL}Union":
            place = place_of(node, attribute)
            for child in elements(node.children()):
                yield from self._below(child, list(elements(child.output()))[place])
        elif kind in _OF_THE_LEFT:
            left = node.left()
            yield from self._below(left, list(elements(left.output()))[place_of(node, attribute)])
        else:
            yield from self._through(node, attribute)

    def _through(self, node: Any, attribute: Any) -> "Iterator[_Column]":
        for child in elements(node.children()):
            if child.outputSet().contains(attribute):
                yield from self._below(child, attribute)
                return
        for expression in elements(node.expressions()):
            is_alias = class_name(expression) == f"{_EXPRESSIONS}Alias"
            if is_alias and expression.exprId().equals(attribute.exprId()):
                inner, fields = path_of(expression.child())
                for column in self._through(node, inner):
                    yield _Column(column.relation, (*column.parts, *fields))
                return
        raise NoColumn


@dataclass(frozen=True, slots=True)
class _Column:
    relation: Any
    parts: tuple[str, ...]


def path_of(expression: Any) -> tuple[Any, tuple[str, ...]]:
    """The attribute of an expression, and the names of the struct field that it takes, if any.

    Raises:
        NoColumn
    """
    kind = class_name(expression).removeprefix(_EXPRESSIONS)
    if kind == "AttributeReference":
        return expression, ()
    if kind == "OuterReference":
        return path_of(expression.e())
    if kind == "Cast" and expression.dataType().equals(expression.child().dataType()):
        return path_of(expression.child())  # as views have it
    if kind == "GetStructField":
        attribute, fields = path_of(expression.child())
        field = expression.child().dataType().apply(expression.ordinal())
        return attribute, (*fields, str(field.name()))
    raise NoColumn


def place_of(node: Any, attribute: Any) -> int:
    """The position of an attribute in a node's output.

    Raises:
        NoColumn
    """
    for place, each in enumerate(elements(node.output())):
        if each.exprId().equals(attribute.exprId()):
            return place
    raise NoColumn
