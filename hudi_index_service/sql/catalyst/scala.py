"""Scala values through py4j."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass

from hudi_index_service.read.spark.frames import jvm_name, once_a_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASS_NAME, _NAME_FUNCTION = "_hudi_index_class_name", "_hudi_index_known"
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
    if size in (1, 2):  # with one call less
        yield collection.head()
        if size == 2:
            yield collection.last()
    elif size:
        iterator = collection.iterator()
        for _ in range(size):
            yield iterator.next()


def sequence(jvm: Any, values: Iterable[Any]) -> Any:
    """A Scala Seq."""
    java_list = jvm_name(jvm, "java.util.ArrayList")()
    for value in values:
        java_list.add(value)
    converters = jvm_name(jvm, "scala.collection.JavaConverters")
    return converters.asScalaBufferConverter(java_list).asScala().toList()


def partial_function(jvm: Any, pairs: Iterable[tuple[Any, Any]]) -> Any:
    """A function that maps the first of each pair to the second: a Scala Map."""
    java_map = jvm_name(jvm, "java.util.HashMap")()
    for key, value in pairs:
        java_map.put(key, value)
    converters = jvm_name(jvm, "scala.collection.JavaConverters")
    return converters.mapAsScalaMapConverter(java_map).asScala()


def tree_pattern(jvm: Any, name: str) -> Any:
    """One of Catalyst's TreePatterns: plans and expressions know which ones they contain."""
    return once_a_session(
        jvm, f"pattern {name}", lambda: jvm_name(jvm, f"{_TREE_PATTERN}.{name}")()
    )


def cores(spark: "SparkSession") -> int:
    """The number of tasks that Spark runs at once, determined once for a session."""
    return int(once_a_session(spark._jvm, "cores", lambda: spark.sparkContext.defaultParallelism))


def children(node: Any) -> list[Any]:
    """The children of a plan node. Most kinds of nodes are known by name to have one or two, which
    take fewer calls to the JVM."""
    kind = class_name(node).removeprefix(_LOGICAL)
    if kind in _UNARY:
        return [node.child()]
    if kind in _BINARY:
        return [node.left(), node.right()]
    return list(elements(node.children()))


def nodes(tree: Any) -> Iterator[Any]:
    """The nodes of a Catalyst plan, the topmost first."""
    yield tree
    for child in children(tree):
        yield from nodes(child)


def class_name(node: Any) -> str:
    """The full name of an object's class. Takes one call to the JVM per object."""
    cache: dict[str, Any] = node.__dict__
    if _CLASS_NAME not in cache:
        cache[_CLASS_NAME] = str(_name_function(node._gateway_client)(node))
    return str(cache[_CLASS_NAME])


def _name_function(client: Any) -> Any:
    """A function of Commons Lang, one of Spark's own libraries: ``getClass().getName()`` would take
    a second call, and a third one to release the class in the JVM."""
    function = client.__dict__.get(_NAME_FUNCTION)
    if function is None:
        function = JavaClass("org.apache.commons.lang3.ClassUtils", client).getName
        client.__dict__[_NAME_FUNCTION] = function
    return function
