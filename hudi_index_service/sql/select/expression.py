"""Catalyst's expressions, brought over from the JVM as one text: asking it for each node's class,
children and value takes some ten times as long."""

import json
import logging
from collections.abc import Iterator
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

    __slots__ = ("_java", "_parent", "_place", "children", "fields", "kind")

    def __init__(
        self,
        fields: dict[str, Any],
        java: Any | None,
        parent: "Expression | None" = None,
        place: int = 0,
    ) -> None:
        package, _, name = str(fields["class"]).rpartition(".")
        self.kind = name if f"{package}." == _EXPRESSIONS else ""
        self.fields = fields
        self.children: list[Expression] = []
        self._java = java
        self._parent = parent
        self._place = place

    @property
    def java(self) -> Any:
        """The node in the JVM, which is asked for it, and for its parents, once."""
        if self._java is None:
            assert self._parent is not None, "the topmost node is made with its own"
            self._java = self._parent.java.children().apply(self._place)
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
        return list(_read(condition).conjuncts())
    except (Py4JJavaError, CapturedException) as error:  # by what went wrong there
        log.debug("A condition has no JSON: %s", type(error).__name__)
    if class_name(condition) == f"{_EXPRESSIONS}And":
        return [*read_conjuncts(condition.left()), *read_conjuncts(condition.right())]
    return [Expression({"class": ""}, condition)]


def _read(java: Any) -> Expression:
    # Nodes stand in the order of a walk that takes a node before its children.
    described: Iterator[dict[str, Any]] = iter(json.loads(str(java.toJSON())))
    top = Expression(next(described), java)
    _read_children(top, described)
    return top


def _read_children(node: Expression, described: Iterator[dict[str, Any]]) -> None:
    for place in range(node.fields["num-children"]):
        child = Expression(next(described), None, node, place)
        _read_children(child, described)
        node.children.append(child)
