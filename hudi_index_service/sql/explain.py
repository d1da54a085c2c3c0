"""EXPLAIN INDEX: the reader of each Hudi relation of a query, the reason, and the measured cost."""

from collections import Counter
from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.explanation import explanation
from hudi_index_service.sql.relations.decision import RelationUse

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


def explained_frame(
    spark: SparkSession, uses: Iterable[RelationUse], seconds: float | None = None
) -> DataFrame:
    """`EXPLAINED`

    Args:
        seconds: Duration of the query; None if it was not run.
    """
    rows = [(number, *_row(use, seconds)) for number, use in enumerate(uses, 1)]
    return spark.createDataFrame(rows, EXPLAINED)


def _row(use: RelationUse, seconds: float | None) -> tuple[object, ...]:
    order = ((Access.INDEX,), (Access.SCAN,), (Access.SKIP,), (Access.MERGE, Access.LOGS))
    slices = [None if use.plan is None else sum(map(use.plan.count, each)) for each in order]
    reader = "spark" if not use.by_index else "tasks" if use.in_tasks else "driver"
    observed = use.observed if use.by_index else None
    actual = (None,) * 4 if observed is None else observed.totals
    return (
        *(use.table, reader, ",".join(use.indexes) or None, use.reason),
        *(use.instant or None, use.where, list(use.columns) if use.by_index else None),
        *slices,
        use.expected,
        *actual,
        None if observed is None else observed.milliseconds,
        None if seconds is None else 1000 * seconds,
        *_estimates(use),
    )


def _estimates(use: RelationUse) -> tuple[object, ...]:
    if use.plan is None:
        return (None,) * 8
    counts = Counter((each.access.value, each.reason, each.rule) for each in use.plan.slices)
    groups = [(number, *each) for each, number in counts.most_common()]
    cost = explanation(use.plan, use.where).document().expected
    if cost is None:
        return (*(None,) * 7, groups)
    rows = cost.rows
    return (
        *(rows.least, rows.expected, rows.most, cost.pages, cost.bytes),
        *(cost.index_ms, cost.scan_ms, groups),
    )
