"""Replaces a Hudi relation in one query by a leaf with the rows that may match the query's
conditions on it and the keys of its joins."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from hudi_index_service.optimizer.cost.constants import DRIVER_BYTES
from hudi_index_service.read.slices.index_estimates import with_index_estimates
from hudi_index_service.read.spark.frames import frame_of_plan
from hudi_index_service.sql.catalyst.expression import Described
from hudi_index_service.sql.catalyst.plan import PlanNode
from hudi_index_service.sql.catalyst.relation import (
    Columns,
    HudiRelation,
)
from hudi_index_service.sql.catalyst.scala import cores
from hudi_index_service.sql.full_text import Calls
from hudi_index_service.sql.full_text.conditions import answers, conditions_on
from hudi_index_service.sql.relations.decision import RelationUse, serving_indexes, with_others
from hudi_index_service.sql.relations.observed import Observed
from hudi_index_service.sql.relations.pinned import pinned
from hudi_index_service.sql.relations.rows import read_by_tasks, read_here
from hudi_index_service.sql.relations.spark_types import as_spark_sees
from hudi_index_service.sql.relations.weighing import Candidates, KeepSparkScan, candidates
from hudi_index_service.sql.select.indexed import IndexedTables
from hudi_index_service.sql.select.join_keys import MOST_KEYS, JoinKeys, distinct_keys
from hudi_index_service.sql.select.join_keys import Leaf as KeyLeaf
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = "org.apache.spark.sql.catalyst.plans.logical.LocalRelation"

Leaf = tuple[Any | None, RelationUse]
"""The replacement of a relation, None if Spark reads it; and its use."""


@dataclass(slots=True)
class RelationLeaves:
    """The leaves of one query.

    Attributes:
        table: Opens the table of a path.
        explain: See `SelectRewriter.rewritten`.
        calls: The query's full-text functions.
        indexed: The tables with an index.
        keys: The keys found so far for its joins.
        defer_task_scans: Whether to leave relations that tasks would read unchanged for now, since
            join keys may still reduce their rows.
        deferred: Whether a relation was left for this reason.
    """

    spark: "SparkSession"
    table: Callable[[str], IndexedTable]
    explain: str | None
    calls: Calls | None
    indexed: IndexedTables
    keys: JoinKeys = field(default_factory=JoinKeys)
    defer_task_scans: bool = False
    deferred: bool = False
    _has_unread: bool = False
    _leaf_of_request: dict[Hashable, Leaf] = field(default_factory=dict)
    _leaf_of_query: dict[Hashable, Leaf] = field(default_factory=dict)
    _reason_of_query: dict[Hashable, str] = field(default_factory=dict)
    _columns_read: dict[int, pa.ChunkedArray] = field(default_factory=dict)
    _relations_read: set[int] = field(default_factory=set)

    def instead(
        self, node: PlanNode, condition: PlanNode | None, above: PlanNode | None, use: RelationUse
    ) -> Leaf:
        """The leaf that replaces a relation.

        Args:
            node: The relation.
            condition: The Filter above it; None if there is none.
            above: The node above these that determines the needed columns; None if all are.
            use: The use to complete.
        """
        if use.table not in self.indexed:
            return None, replace(use, reason="the table has no index")
        request = node.scan_request(condition, above)
        # The plan is visited again for each set of keys.
        key = (*request.key, self.keys.changed[request.number])
        if key in self._leaf_of_request:
            return self._leaf_of_request[key]
        if isinstance(request.relation, str):
            leaf: Leaf = None, replace(use, reason=request.relation)
        else:
            leaf = self._instead(request.relation, request.condition, request.ids, use)
        self._has_unread |= leaf[1].rows is None
        if leaf[0] is None and leaf[1].by_index:
            self.deferred = True
        else:
            self._leaf_of_request[key] = leaf
        return leaf

    def _instead(
        self,
        relation: HudiRelation,
        condition: Described | None,
        ids: frozenset[int] | None,
        use: RelationUse,
    ) -> Leaf:
        table, where = self.table(relation.uri), None
        if condition is not None:
            where = conditions_on(table, self.calls).where(condition)
        if self.keys.by_attribute:
            schema = table.schema()
            keys = self.keys.condition(relation.columns, lambda text: answers(schema, text))
            if keys is not None:
                where = keys if where is None else f"({where}) AND ({keys})"
        if where is None:
            reason = "no index answers a condition on it"
            if condition is None:
                reason = "the query has no condition on it alone"
            return None, replace(use, reason=reason)
        columns = relation.columns.with_ids(ids)
        # Identical rows, such as those of a CTE that must not be computed twice, are one leaf.
        key = (relation.uri, where, *columns.ids, *columns.types)
        if key not in self._leaf_of_query:
            leaf = self._leaf(table, relation, columns, replace(use, where=where))
            if leaf[0] is None and leaf[1].by_index:
                return leaf
            self._leaf_of_query[key] = leaf
        return self._leaf_of_query[key]

    def may_learn(self, plan: Any) -> bool:
        """Whether joins of the plan may yield keys: some rows are known, and a relation of an
        indexed table has not been read."""
        if not self._has_unread:
            return False
        leaves = str(plan.collectLeaves().mkString(" ")) if not self._columns_read else ""
        return bool(self._columns_read) or "LocalRelation" in leaves

    def values(self, leaf: KeyLeaf) -> pa.Array | None:
        """The values of an attribute in a leaf of the plan: a relation read in the driver, or rows
        in the plan itself. None if they are unknown or too many."""
        column = self._columns_read.get(leaf.attribute)
        if column is not None and leaf.number not in self.keys.shared:
            return distinct_keys(column)
        if leaf.kind != _LOCAL:
            return None
        node = leaf.node()
        if node.data().size() > MOST_KEYS:
            return None
        frame, place = frame_of_plan(self.spark, node), leaf.place
        kind = to_arrow_type(frame.schema[place].dataType)
        if pa.types.is_temporal(kind):
            return None  # Python's types end in year 9999 and use the machine's time zone
        column = frame.toDF(*map(str, range(len(frame.columns)))).select(str(place))
        return distinct_keys(pa.chunked_array([[row[0] for row in column.collect()]], kind))

    def would_gain(self, relation: int) -> bool:
        """Whether new keys could reduce a relation (the id of its first attribute), because it has
        not been read yet."""
        return relation not in self._relations_read and relation not in self.keys.shared

    def _leaf(
        self,
        table: IndexedTable,
        relation: HudiRelation,
        columns: Columns,
        use: RelationUse,
    ) -> Leaf:
        assert use.where is not None
        query = (relation.uri, relation.query_type, relation.as_of, use.where, *columns.names)
        if query in self._reason_of_query and self.explain is None:
            return None, replace(use, reason=self._reason_of_query[query])
        run = pinned(table, relation, use.where, columns.names)
        if isinstance(run, str):
            return None, replace(use, reason=run)
        use = replace(use, instant=run.plan.snapshot.instant)
        if self.explain is not None:
            plan = with_index_estimates(run.plan, run.reader)
            use = replace(use, plan=plan, indexes=serving_indexes(table.indexes(), run.plan))
        output = as_spark_sees(run.reader.query.output, columns.types)
        if output is None:
            return None, replace(use, reason="Spark sees its columns in other types")
        run = run.narrowed(output)
        decision = candidates(run, cores(self.spark))
        if isinstance(decision, KeepSparkScan):
            self._reason_of_query[query] = decision.reason
            return None, replace(use, reason=decision.reason)
        if use.plan is not None:
            decision = decision.with_estimates(use.plan)
        use = replace(use, columns=tuple(columns.names), by_index=True)
        row_count = counted(decision.rows, "row")
        most = row_count if decision.exact else f"at most {row_count}"
        use = replace(use, reason=_reason(most, decision), expected=decision.rows)
        if self.explain == "plan":
            return columns.java(), replace(use, in_tasks=not decision.few)
        observed = Observed() if self.explain == "analyze" else None
        use = replace(use, observed=observed)
        if decision.few:
            started = perf_counter()
            rows = run.table()
            if rows.nbytes <= DRIVER_BYTES:
                if observed is not None:
                    observed.read_here(run.statistics, perf_counter() - started)
                node = read_here(self.spark, rows, columns.attributes())
                if self.calls is not None:
                    self.calls.here.remember(node, rows)
                self._relations_read.add(relation.columns.ids[0])
                self._columns_read.update(zip(columns.ids, rows.columns, strict=True))
                if not decision.exact:
                    use = replace(use, reason=_reason(counted(rows.num_rows, "row"), decision))
                return node, replace(use, rows=rows.num_rows, read=run.statistics)
            if not decision.by_tasks:
                reason = "the rows that the index finds are large, and Spark scans them faster"
                self._reason_of_query[query] = reason
                return None, replace(use, reason=reason, by_index=False, observed=None)
        if self.defer_task_scans:
            return None, use
        node = read_by_tasks(self.spark, run, columns.attributes(), observed)
        return node, replace(use, in_tasks=True)


def _reason(rows: str, decision: Candidates) -> str:
    return with_others(f"the index finds {rows}", decision.scanned)
