"""The best rows of a search, for queries with ORDER BY score() DESC LIMIT k."""

from functools import partial
from typing import Any

import pyarrow as pa

from hudi_index_service.columns import column_name
from hudi_index_service.optimizer.cost.constants import DRIVER_BYTES
from hudi_index_service.optimizer.cost.in_spark import SessionReaders
from hudi_index_service.predicate.expression import MatchMode
from hudi_index_service.read.execution import Execution
from hudi_index_service.sql.rule.columns import Columns, as_spark_sees
from hudi_index_service.sql.rule.condition import Translation, bound
from hudi_index_service.sql.rule.decision import Decision, serving_indexes
from hudi_index_service.sql.rule.full_text import WORDS, FullTextCalls
from hudi_index_service.sql.rule.request import Best, Condition, Request, pinned, searches
from hudi_index_service.sql.rule.weighing import candidates
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import counted

LARGE = "the rows that the index finds are large, and Spark scans them faster"


def best_rows(
    table: IndexedTable,
    request: Request,
    best: Best,
    calls: FullTextCalls,
    readers: SessionReaders,
) -> Decision:
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
        return Decision.spark("rows that the search does not find have a score, too")
    translation = Translation.on(table)
    of_search: Condition = {"op": "search", "call": met[0].call, "column": score.of}
    if not translation.finds(of_search):
        return Decision.spark("no index answers the search")
    other_conditions = [each for each in request.where if each != of_search]
    exact = translation.exact(other_conditions)
    if exact is None:
        return Decision.spark("no index answers all conditions exactly")
    others = str(exact) if other_conditions else None
    columns = Columns(request, met, calls)
    search = bound(lambda translation: translation.exact([of_search]))
    run = pinned(table, request, search, [*request.names, *columns.texts])
    if isinstance(run, str):
        return Decision.spark(run)
    output = pa.schema(list(run.reader.query.output)[: len(request.names)])
    if as_spark_sees(output, request.types) != output:
        return Decision.spark("Spark sees its columns in other types")
    if isinstance(reason := candidates(run, readers), str):
        return Decision.spark(reason)
    where = str(run.reader.query.predicate)
    return Decision(
        "driver",
        f"the index finds the {counted(best.rows, 'best row')}",
        best.rows,
        best.rows,  # they are no share of the rows that the index finds
        serving_indexes(table.indexes(), run.plan),
        where if others is None else f"({where}) AND ({others})",
        run.plan.snapshot.instant,
        run,
        partial(_read, table, run, best, others, columns),
    )


def _read(
    table: IndexedTable,
    run: Execution,
    best: Best,
    others: str | None,
    columns: Columns,
    *_: Any,
) -> pa.Table | str:
    """The best rows of those that match the other conditions, too. Raises what
    `IndexedTable.search` raises."""
    score, names = best.score, list(run.reader.query.output.names)
    rows = table.search(
        column_name(score.of),
        score.call["text"],
        k=best.rows,
        where=others,
        columns=names,
        words=WORDS[MatchMode(score.call["mode"])],
        as_of=run.plan.snapshot.instant,
        query_type=score.call["query_type"],
    )
    if rows.nbytes > DRIVER_BYTES:
        return LARGE
    known = [(score.call, rows.column(len(names)))]
    return columns.table(rows.select(range(len(names))), known)
