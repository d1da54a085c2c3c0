"""The best rows of a search, for queries with ORDER BY score() DESC LIMIT k."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_index_service.columns import column_name
from hudi_index_service.optimizer.cost.constants import DRIVER_BYTES
from hudi_index_service.optimizer.cost.in_spark import SessionReaders
from hudi_index_service.predicate.expression import MatchMode
from hudi_index_service.read.execution import Execution
from hudi_index_service.sql.rule.columns import Columns, as_spark_sees
from hudi_index_service.sql.rule.condition import Translation
from hudi_index_service.sql.rule.full_text import WORDS, FullTextCalls, can_search, condition_of
from hudi_index_service.sql.rule.request import Best, Request, pinned, searches
from hudi_index_service.sql.rule.weighing import LeftToSpark, candidates, serving_indexes
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import counted

LARGE = "the rows that the index finds are large, and Spark scans them faster"


@dataclass(frozen=True, slots=True)
class BestRows:
    """A relation of which the index finds the best rows.

    Attributes:
        table: The table.
        run: The search alone.
        best: The score, and how many rows.
        others: The other conditions; None if there are none.
        where: All conditions.
        indexes: The names of the indexes that serve.
        columns: The columns of the result.
    """

    table: IndexedTable
    run: Execution
    best: Best
    others: str | None
    where: str
    indexes: tuple[str, ...]
    columns: Columns

    @property
    def reader(self) -> str:
        """Who reads the rows."""
        return "driver"

    @property
    def expected(self) -> int:
        """The most rows."""
        return self.best.rows

    @property
    def total(self) -> int:
        """As many: they are no share of the rows that the index finds."""
        return self.best.rows

    @property
    def reason(self) -> str:
        """Why, in one sentence without full stop."""
        return f"the index finds the {counted(self.best.rows, 'best row')}"

    def read(self, *_: Any) -> pa.Table | LeftToSpark:
        """The rows. Raises what `IndexedTable.search` raises."""
        score, query = self.best.score, self.run.reader.query
        names = list(query.output.names)
        rows = self.table.search(
            column_name(score.of),
            score.call["text"],
            k=self.best.rows,
            where=self.others,
            columns=names,
            words=WORDS[MatchMode(score.call["mode"])],
            as_of=self.run.plan.snapshot.instant,
            query_type=score.call["query_type"],
        )
        if rows.nbytes > DRIVER_BYTES:
            return LeftToSpark(LARGE)
        known = [(score.call, rows.column(len(names)))]
        return self.columns.table(rows.select(range(len(names))), known)


def best_rows(
    table: IndexedTable,
    request: Request,
    best: Best,
    calls: FullTextCalls,
    readers: SessionReaders,
) -> BestRows | LeftToSpark:
    """Whether the index finds the best rows of an indexed table.

    Raises:
        IndexServiceError, OSError: the table cannot be planned.
    """
    score = best.score
    met = [
        each
        for each in searches(request.where)
        if each.of == score.of
        and (each.call["function"], each.call["text"]) == (score.call["mode"], score.call["text"])
    ]
    if not met:
        return LeftToSpark("rows that the search does not find have a score, too")
    condition = condition_of(met[0].call, column_name(score.of))
    if not can_search(table, condition, met[0].call["analyzer"]):
        return LeftToSpark("no index answers the search")
    of_search = {"op": "search", "call": met[0].call, "column": list(score.of)}
    other_conditions = [each for each in request.where if each != of_search]
    others = None
    if other_conditions:
        others = Translation.on(table).exact_where_text(other_conditions)
        if others is None:
            return LeftToSpark("no index answers all conditions exactly")
    columns = Columns.of(request, met, calls)
    run = pinned(table, request, condition, [*request.names, *columns.texts])
    if isinstance(run, str):
        return LeftToSpark(run)
    output = pa.schema(list(run.reader.query.output)[: len(request.names)])
    if as_spark_sees(output, request.types) != output:
        return LeftToSpark("Spark sees its columns in other types")
    if isinstance(decided := candidates(run, readers), LeftToSpark):
        return decided
    where = condition if others is None else f"({condition}) AND ({others})"
    serving = serving_indexes(table.indexes(), run.plan)
    return BestRows(table, run, best, others, where, serving, columns)
