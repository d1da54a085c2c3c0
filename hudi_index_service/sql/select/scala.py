"""Scala values through py4j."""

from collections.abc import Iterable, Iterator
from typing import Any


def elements(collection: Any) -> Iterator[Any]:
    """The elements of a Scala collection."""
    iterator = collection.iterator()
    while iterator.hasNext():
        yield iterator.next()


def sequence(jvm: Any, values: Iterable[Any]) -> Any:
    """A Scala Seq."""
    found = jvm.java.util.ArrayList()
    for value in values:
        found.add(value)
    return jvm.scala.collection.JavaConverters.asScalaBufferConverter(found).asScala().toList()


def module(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def class_name(node: Any) -> str:
    """The full name of an object's class."""
    return str(node.getClass().getName())
