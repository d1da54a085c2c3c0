"""Scala values through py4j."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass

from hudi_index_service.read.spark.frames import jvm_name, once_a_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASS_NAME, _KNOWN = "_hudi_index_class_name", "_hudi_index_known"
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_UNARY = {
    *("Project", "Filter", "Aggregate", "Sort", "Window", "Generate", "Expand", "Distinct"),
    *("GlobalLimit", "LocalLimit", "Offset", "Deduplicate", "SubqueryAlias", "WindowGroupLimit"),
    *("Repartition", "RepartitionByExpression", "RebalancePartitions"),
}
_BINARY = {"Join", "Intersect", "Except"}
_TREE_PATTERN = "org.apache.spark.sql.catalyst.trees.TreePattern"


def elements(collection: Any) -> Iterator[Any]:
    """The elements of a Scala collection that knows its size. Each costs a call to the JVM."""
    size = int(collection.size())
    if size in (1, 2):  # with a call less
        yield collection.head()
        if size == 2:
            yield collection.last()
    elif size:
        iterator = collection.iterator()
        for _ in range(size):
            yield iterator.next()


def sequence(jvm: Any, values: Iterable[Any]) -> Any:
    """A Scala Seq."""
    found = jvm_name(jvm, "java.util.ArrayList")()
    for value in values:
        found.add(value)
    converters = jvm_name(jvm, "scala.collection.JavaConverters")
    return converters.asScalaBufferConverter(found).asScala().toList()


def partial_function(jvm: Any, pairs: Iterable[tuple[Any, Any]]) -> Any:
    """A function that is defined for the first of each pair, and gives the second: a Scala Map."""
    found = jvm_name(jvm, "java.util.HashMap")()
    for key, value in pairs:
        found.put(key, value)
    converters = jvm_name(jvm, "scala.collection.JavaConverters")
    return converters.mapAsScalaMapConverter(found).asScala()


def tree_pattern(jvm: Any, name: str) -> Any:
    """One of Catalyst's TreePatterns: plans and expressions know which ones they contain."""
    return once_a_session(
        jvm, f"pattern {name}", lambda: jvm_name(jvm, f"{_TREE_PATTERN}.{name}")()
    )


def cores(spark: "SparkSession") -> int:
    """The number of tasks that Spark runs at once, determined once for a session."""
    return int(once_a_session(spark._jvm, "cores", lambda: spark.sparkContext.defaultParallelism))


def children(node: Any) -> list[Any]:
    """The children of a node of a plan. Most kinds of nodes are known by name to have one or two,
    which are had with fewer calls to the JVM."""
    kind = class_name(node).removeprefix(_LOGICAL)
    if kind in _UNARY:
        return [node.child()]
    if kind in _BINARY:
        return [node.left(), node.right()]
    return list(elements(node.children()))


def nodes(tree: Any) -> Iterator[Any]:
    """A plan of Catalyst's, node by node, the topmost first."""
    yield tree
    for child in children(tree):
        yield from nodes(child)


def class_name(node: Any) -> str:
    """The full name of an object's class. It takes a call to the JVM, once for an object."""
    known: dict[str, Any] = node.__dict__
    if _CLASS_NAME not in known:
        known[_CLASS_NAME] = str(_name_asker(node._gateway_client)(node))
    return str(known[_CLASS_NAME])


def _name_asker(client: Any) -> Any:
    """Commons Lang's function, which is one of Spark's own libraries: ``getClass().getName()`` is
    a second call, and a third one to tell the JVM that the class is not needed any more."""
    asker = client.__dict__.get(_KNOWN)
    if asker is None:
        asker = JavaClass("org.apache.commons.lang3.ClassUtils", client).getName
        client.__dict__[_KNOWN] = asker
    return asker
