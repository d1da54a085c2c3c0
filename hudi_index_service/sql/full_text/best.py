"""The best rows of a search, for queries with ORDER BY score() DESC LIMIT k."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudi_index_service.optimizer.cost.constants import DRIVER_BYTES
from hudi_index_service.sql.catalyst.expression import read_condition
from hudi_index_service.sql.catalyst.relation import (
    attribute_id,
    attribute_ids,
    hudi_relation,
    reads_hudi,
)
from hudi_index_service.sql.catalyst.scala import class_name, cores, elements
from hudi_index_service.sql.full_text.call import Call, call_of
from hudi_index_service.sql.full_text.calls import Calls
from hudi_index_service.sql.full_text.conditions import conditions_on
from hudi_index_service.sql.full_text.score import WORDS
from hudi_index_service.sql.full_text.tree import (
    FILTER,
    PROJECT,
    SORT,
    conjunction,
    conjuncts,
    with_children,
)
from hudi_index_service.sql.relations.decision import RelationUse, serving_indexes
from hudi_index_service.sql.relations.pinned import pinned
from hudi_index_service.sql.relations.rows import read_here
from hudi_index_service.sql.relations.spark_types import as_spark_sees
from hudi_index_service.sql.relations.weighing import KeepSparkScan, candidates
from hudi_index_service.table import IndexedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LITERAL = "org.apache.spark.sql.catalyst.expressions.Literal"
_NOT_NULL = "org.apache.spark.sql.catalyst.expressions.IsNotNull"
_MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The plan below a LIMIT.

    Attributes:
        above: The nodes from the limit down to the filter.
        score: The sort key, an expression on the relation's columns.
        relation: The node below the filter.
    """

    above: list[Any]
    score: Any
    relation: Any

    @property
    def filter(self) -> Any:
        return self.above[-1]


@dataclass(frozen=True, slots=True)
class BestRows:
    """Reads only the best rows, from the index.

    Attributes:
        table: Opens the table of a path.
    """

    spark: "SparkSession"
    table: Callable[[str], IndexedTable]
    calls: Calls

    def instead(self, limit: Any) -> tuple[Any, RelationUse] | None:
        """The replacement of a LocalLimit and everything below it, and the use of its relation;
        None if the plan has another form or needs more than `IndexedTable.search` finds."""
        ranking = _ranking(limit)
        call = None if ranking is None else call_of(ranking.score, self.calls.by_number)
        relation = None if ranking is None else hudi_relation(ranking.relation)
        if ranking is None or call is None or relation is None or isinstance(relation, str):
            return None
        if call.scored is None:
            return None
        table = self.table(relation.uri)
        other_conditions = self._other_conditions(ranking, call, table)
        if other_conditions is None:
            return None
        where = None
        if other_conditions:
            condition = read_condition(conjunction(self.spark, other_conditions))
            where = conditions_on(table, self.calls).exact(condition)
            if where is None:
                return None
        ids = (attribute_ids(each.references()) for each in ranking.above[-2:])
        columns = relation.columns.with_ids(frozenset().union(*ids))
        search = str(call.scored)
        run = pinned(table, relation, search, columns.names)
        if isinstance(run, str):
            return None
        output = run.reader.query.output
        if as_spark_sees(output, columns.types) != output:
            return None
        if isinstance(candidates(run, cores(self.spark)), KeepSparkScan):
            return None
        instant = run.plan.snapshot.instant
        best = table.search(
            call.scored.column.name,
            call.scored.text,
            k=int(limit.limitExpr().value()),
            where=where,
            columns=columns.names,
            words=WORDS[call.scored.mode],
            as_of=instant,
            query_type=relation.query_type,
        )
        rows = best.select(range(len(columns.names)))
        if rows.nbytes > DRIVER_BYTES:
            return None
        plan = read_here(self.spark, rows, columns.attributes())
        self.calls.here.remember(plan, rows, {call.label: best.column(len(columns.names))})
        for node in reversed(ranking.above):
            below = self.calls.decided(node, table) if node is ranking.filter else node
            plan = with_children(self.spark, below, [plan])
        use = RelationUse(
            relation.uri,
            by_index=True,
            reason=f"the index finds the {rows.num_rows} best rows",
            where=search if where is None else f"({search}) AND ({where})",
            columns=tuple(columns.names),
            instant=instant,
            rows=rows.num_rows,
            expected=rows.num_rows,
            indexes=serving_indexes(table.indexes(), run.plan),
            plan=run.plan,
        )
        return plan, use

    def _other_conditions(
        self, ranking: _Ranking, score: Call, table: IndexedTable
    ) -> list[Any] | None:
        """The conditions other than the scored search and its IS NOT NULL; None if the filter
        passes rows that do not match the search."""
        text = ranking.score.children().head()
        conditions, has_search = [], False
        for each in conjuncts(ranking.filter.condition()):
            call = call_of(each, self.calls.by_number)
            of_text = not each.children().isEmpty() and each.children().head().semanticEquals(text)
            if call is not None and call.match == score.scored and of_text:
                has_search |= self.calls.condition(each, table) is not None
            elif not (of_text and class_name(each) == _NOT_NULL):
                conditions.append(each)
        return conditions if has_search else None


def _ranking(limit: Any) -> _Ranking | None:
    """Reads a LocalLimit over projections, a global sort by one key, one projection, a filter and a
    Hudi relation; None for any other form."""
    if class_name(limit.limitExpr()) != _LITERAL:
        return None
    if not 0 < int(limit.limitExpr().value()) <= _MOST_ROWS:
        return None
    above, node = [limit], limit.child()
    while class_name(node) == PROJECT:
        above.append(node)
        node = node.child()
    if class_name(node) != SORT or not getattr(node, "global")():
        return None
    order = list(elements(node.order()))
    if len(order) != 1 or str(order[0].direction().sql()) != "DESC":
        return None
    project = node.child()
    if class_name(project) != PROJECT or class_name(project.child()) != FILTER:
        return None
    key = order[0].child()
    aliases = {
        attribute_id(each): each.child()
        for each in elements(project.projectList())
        if class_name(each).endswith(".Alias")
    }
    relation = project.child().child()
    if not class_name(key).endswith(".AttributeReference") or not reads_hudi(relation):
        return None
    score = aliases.get(attribute_id(key))
    if score is None:
        return None
    return _Ranking([*above, node, project, project.child()], score, relation)
