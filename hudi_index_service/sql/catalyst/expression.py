"""Catalyst's expressions, fetched from the JVM as one text: a call for each node's class, children
and value takes some ten times as long."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

from hudi_index_service.sql.catalyst.plan_reader import decoded, plan_reader
from hudi_index_service.sql.catalyst.scala import class_name

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."


class Expression:
    """A node of a condition.

    Attributes:
        kind: The class name of one of Catalyst's own expressions; "" for any other.
        fields: Its fields by their names in Catalyst, as in JSON: a child is only its position, the
            value of a Literal is text.
        children: As in Catalyst.
    """

    __slots__ = ("_fetch", "_java", "children", "fields", "kind")

    def __init__(self, fields: dict[str, Any], java: Callable[[], Any]) -> None:
        package, _, name = str(fields["class"]).rpartition(".")
        self.kind = name if f"{package}." == _EXPRESSIONS else ""
        self.fields = fields
        self.children: list[Expression] = []
        self._fetch = java
        self._java: Any = None

    @property
    def java(self) -> Any:
        """The node in the JVM, fetched once."""
        if self._java is None:
            self._java = self._fetch()
        return self._java

    def conjuncts(self) -> "Iterator[Expression]":
        """The conjuncts, in order; only the expression itself if it is not a conjunction."""
        if self.kind != "And":
            yield self
            return
        for each in self.children:
            yield from each.conjuncts()


@dataclass(frozen=True, slots=True)
class Described:
    """A condition as `PlanReader.java` describes it.

    Attributes:
        nodes: Catalyst's own JSON; None if Catalyst cannot write the condition as JSON.
        values: For each leaf, the number that a Literal is in Catalyst, as text; None for all other
            leaves.
        java: Returns the condition in the JVM.
    """

    nodes: str | None
    values: list[str | None]
    java: Callable[[], Any]

    @classmethod
    def of(cls, fields: Mapping[str, Any], java: Callable[[], Any]) -> Self:
        """The condition that these fields describe."""
        return cls(fields["nodes"], fields["values"], java)


def read_condition(condition: Any) -> Described:
    """Reads a condition in the JVM."""
    return Described.of(decoded(plan_reader(condition).condition(condition)), lambda: condition)


def read_conjuncts(condition: Described) -> list[Expression]:
    """The conjuncts of a condition. One that Catalyst cannot write as JSON has no kind."""
    if condition.nodes is not None:
        return list(_Reading(condition).read().conjuncts())
    java = condition.java()
    if class_name(java) == f"{_EXPRESSIONS}And":
        sides = (java.left(), java.right())
        return [each for side in sides for each in read_conjuncts(read_condition(side))]
    return [Expression({"class": ""}, condition.java)]


class _Reading:
    """Builds the nodes of one condition from its JSON."""

    def __init__(self, condition: Described) -> None:
        assert condition.nodes is not None
        self._condition = condition
        # In pre-order: a node comes before its children.
        self._nodes: Iterator[dict[str, Any]] = iter(json.loads(condition.nodes))
        self._leaves = 0

    def read(self) -> Expression:
        return self._with_children(next(self._nodes), self._condition.java)

    def _with_children(self, fields: dict[str, Any], java: Callable[[], Any]) -> Expression:
        if not fields["num-children"]:
            value = self._condition.values[self._leaves]
            if value is not None:  # a date in JSON is a local one
                fields["value"] = value
            node = Expression(fields, partial(self._leaf, self._leaves))
            self._leaves += 1
            return node
        node = Expression(fields, java)
        for place in range(fields["num-children"]):
            child = self._with_children(next(self._nodes), partial(_child, node, place))
            node.children.append(child)
        return node

    @cached_property
    def _all_leaves(self) -> Any:
        return self._condition.java().collectLeaves()

    def _leaf(self, number: int) -> Any:
        return self._all_leaves.apply(number)


def _child(node: Expression, place: int) -> Any:
    return node.java.children().apply(place)
