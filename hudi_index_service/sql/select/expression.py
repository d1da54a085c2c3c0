"""Catalyst's expressions, brought over from the JVM as one text: asking it for each node's class,
children and value takes some ten times as long."""

import json
import logging
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from hudi_index_service.sql.select.scala import class_name

log = logging.getLogger(__name__)

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


def read_conjuncts(condition: Any) -> list[Expression]:
    """The conditions that a condition in the JVM is the conjunction of. One that Catalyst cannot
    write as JSON has no kind."""
    try:
        return list(_Reading(condition).read().conjuncts())
    except (Py4JJavaError, CapturedException) as error:  # by what went wrong there
        log.debug("A condition has no JSON: %s", type(error).__name__)
    if class_name(condition) == f"{_EXPRESSIONS}And":
        return [*read_conjuncts(condition.left()), *read_conjuncts(condition.right())]
    return [Expression({"class": ""}, lambda: condition)]


class _Reading:
    """Makes the nodes of one condition of what it is written as."""

    def __init__(self, condition: Any) -> None:
        self._condition = condition
        # Nodes stand in the order of a walk that takes a node before its children.
        self._described: Iterator[dict[str, Any]] = iter(json.loads(str(condition.toJSON())))
        self._leaves = 0

    def read(self) -> Expression:
        return self._with_children(Expression(next(self._described), lambda: self._condition))

    def _with_children(self, node: Expression) -> Expression:
        for place in range(node.fields["num-children"]):
            fields = next(self._described)
            asked = partial(_child, node, place)
            if not fields["num-children"]:
                asked = partial(self._leaf, self._leaves)
                self._leaves += 1
            node.children.append(self._with_children(Expression(fields, asked)))
        return node

    @cached_property
    def _all_leaves(self) -> Any:
        return self._condition.collectLeaves()

    def _leaf(self, number: int) -> Any:
        return self._all_leaves.apply(number)


def _child(node: Expression, place: int) -> Any:
    return node.java.children().apply(place)
