"""Relations with conditions on values that are known when the query runs, such as that of a scalar
sub-query: who reads them is decided then."""

from dataclasses import dataclass, replace

from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.predicate.values import identifier_sql
from hudi_index_service.sql.relations.decision import serving_indexes
from hudi_index_service.sql.relations.pinned import pinned
from hudi_index_service.sql.relations.weighing import too_little_indexed
from hudi_index_service.sql.rule.condition import Translation
from hudi_index_service.sql.rule.request import Request
from hudi_index_service.table import IndexedTable

AWAITED = "awaited"
"""The `op` of conditions with such a value."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A relation whose reader is decided when the query runs.

    Attributes:
        reason: Why, in one sentence without full stop.
        instant: The instant at which it would be read.
        indexes: The names of the indexes that may serve.
    """

    reason: str
    instant: str
    indexes: tuple[str, ...]


def undecided(table: IndexedTable, request: Request) -> Undecided | None:
    """Whether an index may serve once the awaited values are known; None if it cannot.

    Raises:
        IndexServiceError, OSError: the table cannot be planned.
    """
    if request.key is not None or request.counts is not None or request.best is not None:
        return None
    can_answer = Translation.on(table).can_answer
    columns = [
        ".".join(map(identifier_sql, each["column"]))
        for each in request.where
        if each["op"] == AWAITED
    ]
    awaited = [each for each in dict.fromkeys(columns) if can_answer(f"{each} IS NOT NULL")]
    if not awaited:
        return None
    where = " AND ".join(f"{each} IS NOT NULL" for each in awaited)
    run = pinned(table, request, where, request.names)
    if isinstance(run, str) or too_little_indexed(run.plan) is not None:
        return None
    # Reading all rows that are not NULL may cost more than a scan; few of them will not.
    looked_up = replace(run.plan, slices=tuple(map(SlicePlan.for_counting, run.plan.slices)))
    indexes = serving_indexes(table.indexes(), looked_up)
    reason = f"the value is not known yet that {', '.join(awaited)} is compared with"
    return Undecided(reason, run.plan.snapshot.instant, indexes) if indexes else None
