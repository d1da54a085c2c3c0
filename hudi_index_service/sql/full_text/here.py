"""Calls on rows that the driver has read: their values become columns of these rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_index_service.columns import column_name, column_values
from hudi_index_service.sql.catalyst.scala import class_name, elements
from hudi_index_service.sql.full_text.call import Call, call_of
from hudi_index_service.sql.full_text.origin import NoColumn, path_of, place_of
from hudi_index_service.sql.full_text.tree import (
    AGGREGATE,
    FILTER,
    PROJECT,
    Pairs,
    attribute,
    has_python_calls,
    projected,
    python_calls,
    subqueries,
    with_attributes,
    with_children,
    with_expressions,
)
from hudi_index_service.sql.relations.rows import read_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DriverRows:
    """The rows that have been read for the leaves of a plan."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        jvm: Any = spark._jvm
        self._places = jvm.java.util.IdentityHashMap()
        self._rows: list[tuple[pa.Table, Mapping[str, pa.Array]]] = []

    def remember(
        self, leaf: Any, rows: pa.Table, known: Mapping[str, pa.Array] | None = None
    ) -> None:
        """Stores the rows of a leaf whose attributes are their columns.

        Args:
            known: Label → values, for calls whose values are already known.
        """
        self._places.put(leaf, len(self._rows))
        self._rows.append((rows, known or {}))

    def computed(self, plan: Any, calls: Mapping[int, Call]) -> Any:
        """A plan with the values of the stand-ins on a column of such a leaf, in an Aggregate,
        Project or Filter with only Project and Filter between.

        Args:
            calls: Stand-in's result id → call.
        """
        if not self._rows or not has_python_calls(self._spark, plan):
            return plan
        chain, leaf = [], plan
        if class_name(leaf) == AGGREGATE:
            chain.append(leaf)
            leaf = leaf.child()
        while class_name(leaf) in (PROJECT, FILTER):
            chain.append(leaf)
            leaf = leaf.child()
        place = self._places.get(leaf)
        if place is not None:
            rows, known = self._rows[int(place)]
            return self._with_columns(chain, leaf, rows, known, calls)
        children = [self.computed(each, calls) for each in elements(plan.children())]
        within = subqueries(self._spark, plan, lambda each: self.computed(each, calls))
        return with_expressions(self._spark, with_children(self._spark, plan, children), within)

    def _with_columns(
        self,
        chain: list[Any],
        leaf: Any,
        rows: pa.Table,
        known: Mapping[str, pa.Array],
        calls: Mapping[int, Call],
    ) -> Any:
        changes: list[Pairs] = []
        attributes: dict[tuple[str, str], Any] = {}
        for node in chain:
            changes.append([])
            for each in python_calls(self._spark, node):
                call = call_of(each, calls)
                if call is None:
                    continue
                key = (call.label, str(each.children().head().toString()))
                if key not in attributes:
                    values = known.get(call.label)
                    if values is None:
                        values = _values(call, each, leaf, rows)
                    if values is None:
                        continue
                    name = f"_computed_{rows.num_columns}"
                    rows = rows.append_column(name, values)
                    attributes[key] = attribute(self._spark, name, each.dataType())
                changes[-1].append((each, attributes[key]))
        if not attributes:
            return chain[0] if chain else leaf
        plan = read_here(self._spark, rows, [*elements(leaf.output()), *attributes.values()])
        for node, pairs in zip(reversed(chain), reversed(changes), strict=True):
            plan = with_attributes(self._spark, plan, [replacement for _, replacement in pairs])
            plan = with_expressions(self._spark, with_children(self._spark, node, [plan]), pairs)
        if class_name(chain[0]) in (AGGREGATE, PROJECT):
            return plan
        return projected(self._spark, list(elements(chain[0].output())), plan)


def _values(call: Call, expression: Any, leaf: Any, rows: pa.Table) -> Any:
    """The values of a stand-in; None if its argument is not a column of the leaf."""
    try:
        column, fields = path_of(expression.children().head())
        place = place_of(leaf, column)
    except NoColumn:
        return None
    texts = column_values(rows, column_name((rows.column_names[place], *fields)))
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    return call.of.values(texts)
