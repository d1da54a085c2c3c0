"""What takes a Hudi relation's place in one query: a leaf with the rows that may fulfil the
query's conditions on it, and the keys that its joins ask for."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.indexed_table import IndexedTable
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.read.index_estimates import with_index_estimates
from hudi_index_service.read.spark import frame_of_plan
from hudi_index_service.sql.full_text import Calls
from hudi_index_service.sql.select.condition import Conditions
from hudi_index_service.sql.select.decision import RelationUse, serving_indexes, with_others
from hudi_index_service.sql.select.expression import Described, Expression
from hudi_index_service.sql.select.indexed import IndexedTables
from hudi_index_service.sql.select.join_keys import MOST_KEYS, JoinKeys, distinct_keys
from hudi_index_service.sql.select.join_keys import Leaf as KeyLeaf
from hudi_index_service.sql.select.observed import Observed
from hudi_index_service.sql.select.pinned import pinned
from hudi_index_service.sql.select.plan import PlanNode
from hudi_index_service.sql.select.relation import (
    Columns,
    HudiRelation,
    attribute_ids,
    reads_hudi,
)
from hudi_index_service.sql.select.rows import MOST_BYTES, read_by_tasks, read_here
from hudi_index_service.sql.select.scala import class_name, cores, elements
from hudi_index_service.sql.select.spark_types import as_spark_sees
from hudi_index_service.sql.select.weighing import Candidates, Declined, candidates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CALL = "PythonUDF"  # of a full-text function, as of all of Python's
_LOCAL = "org.apache.spark.sql.catalyst.plans.logical.LocalRelation"

Leaf = tuple[Any | None, RelationUse]
"""What takes a relation's place, None where Spark reads it; and why."""


@dataclass(slots=True)
class Leaves:
    """The leaves of one query.

    Attributes:
        table: Opens the table of a path.
        explain: See `SelectRewriter.rewritten`.
        calls: The query's full-text functions.
        indexed: The tables with an index.
        keys: What its joins ask of relations, as far as that is known.
        patient: Whether relations that tasks would read are left as they are for now: keys may be
            found that leave fewer rows.
        postponed: Whether one was.
    """

    spark: "SparkSession"
    table: Callable[[str], IndexedTable]
    explain: str | None
    calls: Calls | None
    indexed: IndexedTables
    keys: JoinKeys = field(default_factory=JoinKeys)
    patient: bool = False
    postponed: bool = False
    _left: bool = False
    _told: dict[Hashable, Leaf] = field(default_factory=dict)
    _made: dict[Hashable, Leaf] = field(default_factory=dict)
    _declined: dict[Hashable, str] = field(default_factory=dict)
    _read: dict[int, pa.ChunkedArray] = field(default_factory=dict)
    _done: set[int] = field(default_factory=set)
    _shared: set[int] = field(default_factory=set)

    def instead(
        self, node: PlanNode, condition: PlanNode | None, above: PlanNode | None, use: RelationUse
    ) -> Leaf:
        """The leaf in a relation's place.

        Args:
            node: The relation.
            condition: The Filter above it; None if there is none.
            above: The node above these that tells which columns are needed; None if all are.
            use: To be completed.
        """
        if use.table not in self.indexed:
            return None, replace(use, reason="the table has no index")
        asked = node.asked(condition, above)
        # The plan is gone through again for each set of keys.
        key = (*asked.key, self.keys.changed[asked.number])
        if key in self._told:
            return self._told[key]
        if isinstance(asked.relation, str):
            found: Leaf = None, replace(use, reason=asked.relation)
        else:
            found = self._instead(asked.relation, asked.condition, asked.ids, use)
        self._left |= found[1].rows is None
        if found[0] is None and found[1].by_index:
            self.postponed = True
        else:
            self._told[key] = found
        return found

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
            keys = self.keys.condition(relation.columns, lambda text: _answers(schema, text))
            if keys is not None:
                where = keys if where is None else f"({where}) AND ({keys})"
        if where is None:
            reason = "no condition on it is one that an index answers"
            if condition is None:
                reason = "the query has no condition on it alone"
            return None, replace(use, reason=reason)
        columns = relation.columns.asked(ids)
        # The very same rows, such as those of a CTE that is not to be computed twice, are one leaf.
        key = (relation.uri, where, *columns.ids, *columns.types)
        if key not in self._made:
            made = self._leaf(table, relation, columns, replace(use, where=where))
            if made[0] is None and made[1].by_index:
                return made
            self._made[key] = made
        return self._made[key]

    def may_learn(self, plan: Any) -> bool:
        """Whether joins of the plan may tell keys: some rows are known, and a relation of a table
        with an index has not been read."""
        if not self._left:
            return False
        leaves = str(plan.collectLeaves().mkString(" ")) if not self._read else ""
        return bool(self._read) or "LocalRelation" in leaves

    def tell_apart(self, plans: list[Any]) -> None:
        """Notes which relations occur several times in some plans, such as those of a CTE that is
        not to be computed twice: what one occurrence is joined with is not what the others are."""
        seen: set[int] = set()
        for leaf in (leaf for plan in plans for leaf in elements(plan.collectLeaves())):
            if reads_hudi(leaf):
                number = attribute_ids(leaf.output())[0]
                (self._shared if number in seen else seen).add(number)

    def values(self, leaf: KeyLeaf) -> pa.Array | None:
        """The values of an attribute in a leaf of the plan: a relation that was read here, or rows
        that stand in the plan. None if they are not known, or too many."""
        column = self._read.get(leaf.attribute)
        if column is not None and leaf.number not in self._shared:
            return distinct_keys(column)
        if class_name(leaf.node) != _LOCAL or leaf.node.data().size() > MOST_KEYS:
            return None
        frame = frame_of_plan(self.spark, leaf.node)
        place = attribute_ids(leaf.node.output()).index(leaf.attribute)
        kind = to_arrow_type(frame.schema[place].dataType)
        if pa.types.is_temporal(kind):
            return None  # Python's end with the year 9999, and have the time zone of the machine
        column = frame.toDF(*map(str, range(len(frame.columns)))).select(str(place))
        return distinct_keys(pa.chunked_array([[row[0] for row in column.collect()]], kind))

    def would_gain(self, relation: int) -> bool:
        """Whether a relation, by the id of its first attribute, has not been read with what is
        known of it already."""
        return relation not in self._done and relation not in self._shared

    def _leaf(
        self,
        table: IndexedTable,
        relation: HudiRelation,
        columns: Columns,
        use: RelationUse,
    ) -> Leaf:
        assert use.where is not None
        asked = (relation.uri, relation.query_type, relation.as_of, use.where, *columns.names)
        if asked in self._declined and self.explain is None:
            return None, replace(use, reason=self._declined[asked])
        run = pinned(table, relation, use.where, columns.names)
        if isinstance(run, str):
            return None, replace(use, reason=run)
        use = replace(use, instant=run.plan.snapshot.instant)
        if self.explain is not None:
            told = with_index_estimates(run.plan, run.reader)
            use = replace(use, plan=told, indexes=serving_indexes(table, run.plan))
        output = as_spark_sees(run.reader.query.output, columns.types)
        if output is None:
            return None, replace(use, reason="Spark sees its columns in other types")
        run = run.narrowed(output)
        weighed = candidates(run, cores(self.spark))
        if isinstance(weighed, Declined):
            self._declined[asked] = weighed.reason
            return None, replace(use, reason=weighed.reason)
        if use.plan is not None:
            weighed = weighed.as_told_by(use.plan)
        use = replace(use, columns=tuple(columns.names), by_index=True)
        most = f"{weighed.rows} rows" if weighed.exact else f"at most {weighed.rows} rows"
        use = replace(use, reason=_finds(most, weighed), expected=weighed.rows)
        if self.explain == "plan":
            return columns.java(), replace(use, in_tasks=not weighed.few)
        observed = Observed() if self.explain == "analyze" else None
        use = replace(use, observed=observed)
        if weighed.few:
            started = perf_counter()
            rows = run.table()
            if rows.nbytes <= MOST_BYTES:
                if observed is not None:
                    observed.read_here(run.statistics, perf_counter() - started)
                node = read_here(self.spark, rows, columns.attributes())
                if self.calls is not None:
                    self.calls.here.remember(node, rows)
                self._done.add(relation.columns.ids[0])
                self._read.update(zip(columns.ids, rows.columns, strict=True))
                if not weighed.exact:
                    use = replace(use, reason=_finds(f"{rows.num_rows} rows", weighed))
                return node, replace(use, rows=rows.num_rows, read=run.statistics)
            if not weighed.by_tasks:
                reason = "the rows that the index finds are large, and Spark scans them faster"
                self._declined[asked] = reason
                return None, replace(use, reason=reason, by_index=False, observed=None)
        if self.patient:
            return None, use
        node = read_by_tasks(self.spark, run, columns.attributes(), observed)
        return node, replace(use, in_tasks=True)


def _finds(rows: str, weighed: Candidates) -> str:
    return with_others(f"the index finds {rows}", weighed.scanned)


def conditions_on(table: IndexedTable, calls: Calls | None) -> Conditions:
    """Translates Catalyst's conditions on the table."""
    schema = table.schema()

    def answered(where: str) -> bool:
        return _answers(schema, where)

    if calls is None:
        return Conditions(answered)

    def searched(each: Expression) -> str | None:
        return calls.condition(each.java, table) if each.kind == _CALL else None

    return Conditions(answered, searched)


def _answers(schema: pa.Schema, where: str) -> bool:
    try:
        parse_predicate(where, schema)
    except IndexServiceError:
        return False
    return True
