"""Catalyst's expressions, brought over from the JVM as one text: asking it for each node's class,
children and value takes some ten times as long."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

from hudi_index_service.sql.catalyst.plan_reader import plan_reader, told
from hudi_index_service.sql.catalyst.scala import class_name

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."


class Expression:
    """A node of a condition.

    Attributes:
        kind: The name of one of Catalyst's own expressions; "" of any other.
        fields: What it is made of, by the names in Catalyst, as far as JSON tells: of a child only
            its place, of a Literal its value as text.
        children: As in Catalyst.
    """

    __slots__ = ("_asked", "_java", "children", "fields", "kind")

    def __init__(self, fields: dict[str, Any], asked: Callable[[], Any]) -> None:
        package, _, name = str(fields["class"]).rpartition(".")
        self.kind = name if f"{package}." == _EXPRESSIONS else ""
        self.fields = fields
        self.children: list[Expression] = []
        self._asked = asked
        self._java: Any = None

    @property
    def java(self) -> Any:
        """The node in the JVM, which is asked for it once."""
        if self._java is None:
            self._java = self._asked()
        return self._java

    def conjuncts(self) -> "Iterator[Expression]":
        """The conditions that it is the conjunction of, in their order; itself if it is none."""
        if self.kind != "And":
            yield self
            return
        for each in self.children:
            yield from each.conjuncts()


@dataclass(frozen=True, slots=True)
class Described:
    """A condition as `PlanReader.java` describes it.

    Attributes:
        nodes: Catalyst's own JSON; None of one that Catalyst cannot write so.
        values: Of each leaf the number that a Literal is in Catalyst, as text; None of all others.
        java: Gives the condition.
    """

    nodes: str | None
    values: list[str | None]
    java: Callable[[], Any]

    @classmethod
    def of(cls, fields: Mapping[str, Any], java: Callable[[], Any]) -> Self:
        """The condition that these fields describe."""
        return cls(fields["nodes"], fields["values"], java)


def read_condition(condition: Any) -> Described:
    """A condition in the JVM."""
    return Described.of(told(plan_reader(condition).condition(condition)), lambda: condition)


def read_conjuncts(condition: Described) -> list[Expression]:
    """The conditions that a condition is the conjunction of. One that Catalyst cannot write as JSON
    has no kind."""
    if condition.nodes is not None:
        return list(_Reading(condition).read().conjuncts())
    java = condition.java()
    if class_name(java) == f"{_EXPRESSIONS}And":
        sides = (java.left(), java.right())
        return [each for side in sides for each in read_conjuncts(read_condition(side))]
    return [Expression({"class": ""}, condition.java)]


class _Reading:
    """Makes the nodes of one condition of what it is written as."""

    def __init__(self, condition: Described) -> None:
        assert condition.nodes is not None
        self._condition = condition
        # Nodes stand in the order of a walk that takes a node before its children.
        self._described: Iterator[dict[str, Any]] = iter(json.loads(condition.nodes))
        self._leaves = 0

    def read(self) -> Expression:
        return self._with_children(next(self._described), self._condition.java)

    def _with_children(self, fields: dict[str, Any], asked: Callable[[], Any]) -> Expression:
        if not fields["num-children"]:
            value = self._condition.values[self._leaves]
            if value is not None:  # what JSON has of a date is a local one
                fields["value"] = value
            node = Expression(fields, partial(self._leaf, self._leaves))
            self._leaves += 1
            return node
        node = Expression(fields, asked)
        for place in range(fields["num-children"]):
            child = self._with_children(next(self._described), partial(_child, node, place))
            node.children.append(child)
        return node

    @cached_property
    def _all_leaves(self) -> Any:
        return self._condition.java().collectLeaves()

    def _leaf(self, number: int) -> Any:
        return self._all_leaves.apply(number)


def _child(node: Expression, place: int) -> Any:
    return node.java.children().apply(place)
