"""Queries whose Hudi relations are read through the index where it pays.

The optimized plan is rewritten: views are resolved in it, IN and EXISTS have become joins, and each
relation has the query's conditions on it right above. A relation is replaced by the rows that may
fulfil them, under the relation's own attributes; the conditions stay in place. So an answer rests
on nothing but this: no row of the relation that fulfils its filter is left out.
"""

import logging
from collections.abc import Hashable, Mapping
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.indexed_table import IndexedTable, open_table
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.sql.select.condition import Conditions
from hudi_index_service.sql.select.decision import RelationUse
from hudi_index_service.sql.select.pinned import pinned
from hudi_index_service.sql.select.relation import (
    RELATION,
    HudiRelation,
    hudi_relation,
    reads_hudi,
    table_path,
)
from hudi_index_service.sql.select.rows import (
    MOST_BYTES,
    Declined,
    candidates,
    read_by_tasks,
    read_here,
    types_agree,
)
from hudi_index_service.sql.select.scala import class_name, elements, module, sequence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_FILTER, _PROJECT = f"{_LOGICAL}Filter", f"{_LOGICAL}Project"
# Below any other node, a row policy or a sample say, nothing is touched.
_PASSED = {
    f"{_LOGICAL}{name}"
    for name in (
        *("Project", "Filter", "Join", "Aggregate", "Sort", "Window", "Union", "Generate"),
        *("Expand", "Distinct", "GlobalLimit", "LocalLimit", "Offset", "Intersect", "Except"),
        *("Deduplicate", "SubqueryAlias", "WindowGroupLimit", "RepartitionByExpression"),
        *("Repartition", "RebalancePartitions"),
    )
}
_FAILURES = (IndexServiceError, OSError, pa.ArrowException, Py4JJavaError)
_OF_FILES = "input_file_"  # functions that tell which file a row was read from


class _AsksForFiles(Exception):
    """The query asks which file a row was read from: only Spark's own reader tells."""


class SelectRewriter:
    """Rewrites the queries of one session; keeps the tables open that it meets.

    Args: as `IndexSession` takes them.
    """

    def __init__(
        self,
        spark: "SparkSession",
        storage_options: Mapping[str, str] | None,
        settings: Settings | None,
    ) -> None:
        self._spark = spark
        self._storage_options = storage_options
        self._settings = settings
        self._tables: dict[str, IndexedTable] = {}
        self._lock = Lock()

    def rewritten(self, frame: DataFrame) -> tuple[DataFrame, tuple[RelationUse, ...]]:
        """The query with the relations replaced that profit, or the very same DataFrame if none
        does; and what became of each Hudi relation in it. Raises nothing of its own."""
        execution = frame._jdf.queryExecution()
        if not self._may_profit(execution):
            return frame, ()
        rewriting = _Rewriting(self._spark, self._table)
        try:
            found = rewriting.replaced(execution.optimizedPlan())
        except _AsksForFiles:
            found, reason = None, "the query asks for the names of files"
            rewriting.uses = [
                RelationUse(use.table, by_index=False, reason=reason) for use in rewriting.uses
            ]
        for use in rewriting.uses:
            log.info(
                "%s is read by %s: %s.", use.table, "index" if use.by_index else "Spark", use.reason
            )
        if found is None:
            return frame, tuple(rewriting.uses)
        jvm: Any = self._spark._jvm
        found.setAnalyzed()  # it is: Spark's analyzer has nothing to resolve in it
        dataset = module(jvm.org.apache.spark.sql, "Dataset")
        rewritten = DataFrame(dataset.ofRows(self._spark._jsparkSession, found), self._spark)
        if rewritten.columns != frame.columns:  # SELECT ID, which the optimizer calls id again
            rewritten = rewritten.toDF(*frame.columns)
        return rewritten, tuple(rewriting.uses)

    def close(self) -> None:
        """Closes the tables, and the index files that are open of them."""
        with self._lock:
            tables, self._tables = self._tables, {}
        for table in tables.values():
            table.close()

    def _may_profit(self, execution: Any) -> bool:
        """Whether a query may read a Hudi table with an index. If that can be told before Spark's
        optimizer has seen it, nobody waits for the optimizer here. A command has run before it
        comes here, and holds its result."""
        plan = execution.analyzed()
        jvm: Any = self._spark._jvm
        subqueries = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION()
        if plan.containsPattern(subqueries):  # whose leaves are not among those of the plan
            plan = execution.optimizedPlan()
        return any(
            reads_hudi(leaf) and self._has_index(table_path(leaf))
            for leaf in elements(plan.collectLeaves())
        )

    def _has_index(self, uri: str) -> bool:
        try:
            return bool(self._table(uri).indexes())
        except (IndexServiceError, OSError) as error:
            log.info("Spark reads %s: %s", uri, error)
            return False

    def _table(self, uri: str) -> IndexedTable:
        with self._lock:
            table = self._tables.get(uri)
            if table is None:
                table = open_table(
                    uri, storage_options=self._storage_options, settings=self._settings
                )
                self._tables[uri] = table
            return table


class _Rewriting:
    """One query's rewriting."""

    def __init__(self, spark: "SparkSession", table: Any) -> None:
        self._spark = spark
        self._table = table
        self.uses: list[RelationUse] = []
        self._made: dict[Hashable, tuple[Any | None, RelationUse]] = {}

    def replaced(self, node: Any) -> Any | None:
        """The plan with its relations replaced; None if nothing of it changes."""
        kind = class_name(node)
        if kind == RELATION:
            if reads_hudi(node):
                self._left(node, "the query has no condition on it alone")
            return None
        if kind not in _PASSED:
            for leaf in filter(reads_hudi, elements(node.collectLeaves())):
                self._left(leaf, f"{kind.rpartition('.')[2]} stands above it in the plan")
            return None
        below = list(elements(node.children()))
        if kind == _PROJECT and class_name(below[0]) == _FILTER:
            filtered = self._filtered(below[0], wanted=node.references())
            return None if filtered is None else self._above(node, [filtered])
        if kind == _FILTER:
            return self._filtered(node, wanted=None)
        found = [self.replaced(each) for each in below]
        if all(each is None for each in found):
            return None
        children = [old if new is None else new for old, new in zip(below, found, strict=True)]
        return self._above(node, children)

    def _filtered(self, node: Any, wanted: Any | None) -> Any | None:
        """A filter, perhaps right above a relation.

        Args:
            wanted: The attributes that are asked for above it; None for all.
        """
        child = node.child()
        below: Any | None
        if class_name(child) == RELATION and reads_hudi(child):
            below = self._relation(child, node, wanted)
        else:
            below = self.replaced(child)
        return None if below is None else self._above(node, [below])

    def _relation(self, node: Any, condition: Any, wanted: Any | None) -> Any | None:
        found = hudi_relation(node)
        if isinstance(found, str):
            self._left(node, found)
            return None
        use = RelationUse(found.uri, by_index=False, reason="")
        try:
            rows, use = self._rows(found, condition, wanted, use)
        except _FAILURES as error:
            # Spark's own reader answers, or says what is wrong.
            reason = error.message if isinstance(error, IndexServiceError) else str(error)
            rows, use = None, replace(use, reason=reason.splitlines()[0].rstrip("."))
        self.uses.append(use)
        return rows

    def _rows(
        self, relation: HudiRelation, condition: Any, wanted: Any | None, use: RelationUse
    ) -> tuple[Any | None, RelationUse]:
        table: IndexedTable = self._table(relation.uri)
        where = _where(table, condition)
        if where is None:
            return None, replace(use, reason="no condition on it is one that an index answers")
        if not table.indexes():
            return None, replace(use, reason="the table has no index")
        use = replace(use, where=where)
        attributes = relation.output()
        if wanted is not None:
            asked = (condition.references(), wanted)
            attributes = [each for each in attributes if any(some.contains(each) for some in asked)]
        # The very same rows, such as those of a CTE that is not to be computed twice, are one leaf.
        key = (relation.uri, where, *(str(each.toString()) for each in attributes))
        if key not in self._made:
            self._made[key] = self._leaf(table, relation, where, attributes, use)
        return self._made[key]

    def _leaf(
        self,
        table: IndexedTable,
        relation: HudiRelation,
        where: str,
        attributes: list[Any],
        use: RelationUse,
    ) -> tuple[Any | None, RelationUse]:
        names = [str(each.name()) for each in attributes]
        run = pinned(table, relation, where, names)
        if isinstance(run, str):
            return None, replace(use, reason=run)
        use = replace(use, instant=run.plan.snapshot.instant)
        if not types_agree(run.reader.query.output, attributes):
            return None, replace(use, reason="Spark sees its columns in other types")
        weighed = candidates(run)
        if isinstance(weighed, Declined):
            return None, replace(use, reason=weighed.reason)
        use = replace(use, columns=tuple(names), by_index=True)
        served = f"the index finds {weighed.rows} rows"
        if weighed.scanned:
            served += f", and {weighed.scanned} slices are read without"
        if weighed.few:
            rows = run.table()
            if rows.nbytes <= MOST_BYTES:
                node = read_here(self._spark, rows, attributes)
                return node, replace(use, reason=served, rows=rows.num_rows)
        node = read_by_tasks(self._spark, run, attributes)
        return node, replace(use, reason=served, in_tasks=True)

    def _above(self, node: Any, children: list[Any]) -> Any:
        """The node above new children."""
        if _OF_FILES in str(node.expressions().mkString(",")):
            raise _AsksForFiles
        return node.withNewChildren(sequence(self._spark._jvm, children))

    def _left(self, node: Any, reason: str) -> None:
        self.uses.append(RelationUse(table_path(node), by_index=False, reason=reason))


def _where(table: IndexedTable, condition: Any) -> str | None:
    schema = table.schema()

    def answered(where: str) -> bool:
        try:
            parse_predicate(where, schema)
        except IndexServiceError:
            return False
        return True

    return Conditions(answered).where(condition.condition())
