"""EXPLAIN INDEX: the reader of each Hudi relation of a query, the reason, and the measured cost."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from hudi_index_service.errors import StatementInvalid
from hudi_index_service.read.explanation import Explanation
from hudi_index_service.sql.rule.uses import Observed, RelationUse
from hudi_index_service.sql.statement import Result

EXPLAINED = """
    relation INT NOT NULL, table STRING NOT NULL, reader STRING NOT NULL, index_name STRING,
    reason STRING NOT NULL, instant STRING, condition STRING, columns ARRAY<STRING>,
    index_slices BIGINT, scan_slices BIGINT, skip_slices BIGINT, merge_slices BIGINT,
    expected_rows BIGINT, actual_rows BIGINT, pages BIGINT, bytes BIGINT, requests BIGINT,
    milliseconds DOUBLE, query_milliseconds DOUBLE,
    least_rows BIGINT, likely_rows DOUBLE, most_rows BIGINT, expected_pages DOUBLE,
    expected_bytes BIGINT, index_milliseconds DOUBLE, scan_milliseconds DOUBLE,
    slices ARRAY<STRUCT<slices: BIGINT, access: STRING, reason: STRING, rule: STRING>>
"""
"""EXPLAIN INDEX: one row for each Hudi relation of the query, in the order of Spark's optimized
plan. `table` is its base path. `reader`: ``driver`` (reads the few rows by index and passes them to
Spark), ``tasks`` (Spark tasks read them by index) or ``spark`` (Spark's own reader), with the
`reason`. `index_name`: the indexes used, joined by commas. `condition`: the index's condition, as a
where text. `…_slices`: the file slices by access, also if Spark reads them; NULL without a plan.
`expected_rows`: rows that the index finds.

With ANALYZE, which runs the query: `actual_rows` after the condition, data `pages` read by row id,
`bytes` of base files read, `requests` for index data to a remote store, all NULL if Spark reads;
`milliseconds` of the reading, elapsed in the driver, and for tasks the sum over the slices, many of
which may be read concurrently (NULL if no slice was read completely); `query_milliseconds` for the
whole query, the same in every row.

`least_rows` to `scan_milliseconds` are the optimizer's estimates for the slices with an entry, as
in `scan().explain()`; `slices` groups the slices by access, reason and rule."""


@dataclass(frozen=True, slots=True)
class ExplainIndex:
    """``EXPLAIN [ANALYZE] INDEX query``

    `query` begins with blanks, so that it keeps its lines and columns in the statement.
    """

    query: str
    analyze: bool = False


def explains_queries_only() -> StatementInvalid:
    """The error for EXPLAIN INDEX of another statement."""
    return StatementInvalid(
        "EXPLAIN INDEX explains queries, and this statement would change something.",
        remedy="Explain the SELECT in it.",
    )


def explained_result(uses: Iterable[RelationUse], seconds: float | None = None) -> Result:
    """`EXPLAINED`

    Args:
        seconds: Duration of the query; None if it was not run.
    """
    rows = [{"relation": number, **_row(use, seconds)} for number, use in enumerate(uses, 1)]
    return Result(EXPLAINED, rows)


def _row(use: RelationUse, seconds: float | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "table": use.table,
        "reader": "spark" if not use.by_index else "tasks" if use.in_tasks else "driver",
        "index_name": ",".join(use.indexes) or None,
        "reason": use.reason,
        "instant": use.instant or None,
        "condition": use.where,
        "columns": list(use.columns) if use.by_index else None,
        "expected_rows": use.expected,
        "query_milliseconds": None if seconds is None else 1000 * seconds,
    }
    if use.by_index and seconds is not None:
        cost = use.observed or Observed()
        row |= {**asdict(cost), "actual_rows": cost.rows}
    return row if use.explanation is None else row | _planned(use.explanation)


def _planned(explanation: Explanation) -> dict[str, Any]:
    """The slices by access, and the optimizer's estimates."""
    counts = explanation.slices_by_access()
    names = {"slices", "access", "reason", "rule"}
    row: dict[str, Any] = {
        "index_slices": counts["index"],
        "scan_slices": counts["scan"],
        "skip_slices": counts["skip"],
        "merge_slices": counts["merge"] + counts["logs"],
        "slices": [each.model_dump(include=names) for each in explanation.groups or ()],
    }
    cost = explanation.expected
    if cost is not None:
        row |= {
            "least_rows": cost.rows.least,
            "likely_rows": cost.rows.expected,
            "most_rows": cost.rows.most,
            "expected_pages": cost.pages,
            "expected_bytes": cost.bytes,
            "index_milliseconds": cost.index_ms,
            "scan_milliseconds": cost.scan_ms,
        }
    return row
