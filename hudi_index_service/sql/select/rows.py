"""The rows that take a relation's place in a plan: read here where they are few, else by tasks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.predicate.expression import And, Like, Match, Not, Predicate, RLike
from hudi_index_service.read.counted_values import may_have_few_values
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.spark import module, rows_by_tasks
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.sql.select.observed import Observed
from hudi_index_service.sql.select.scala import elements, sequence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_BYTES = 4 * 1024 * 1024
"""Rows of more bytes in memory are not handed over by the driver."""

# Up to these, reading here costs less than starting Spark tasks.
MOST_ROWS_HERE = 20_000
MOST_BYTES_SCANNED_HERE = 16 * 1024 * 1024
_LOG_FILE_BYTES = 1024 * 1024  # how large one is, the timeline does not say; to merge it takes long
_MOST_SLICES_HERE = 1_000
# To look a row up and hand it over takes as long as Spark takes to scan so many bytes.
_BYTES_OF_A_ROW = 4 * 1024
_FEW_ROWS = 2_000  # hardly take longer than one
_MARGIN = 2  # slices differ
# Beyond this part of the rows, nearly every page holds some: Spark's own scan is faster.
MOST_OF_ALL = 0.1


@dataclass(frozen=True, slots=True)
class Declined:
    """Why the index does not pay, in one sentence without full stop."""

    reason: str


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is to be read for a query.

    Attributes:
        rows: The rows of indexed slices that may match; None if they were not counted.
        scanned_bytes: Of base files that no index serves.
        scanned: Slices that no index serves.
    """

    rows: int | None
    scanned_bytes: int
    scanned: int

    @property
    def few(self) -> bool:
        """Whether they are read here rather than by Spark tasks."""
        return (
            self.rows is not None
            and self.rows <= MOST_ROWS_HERE
            and self.scanned_bytes <= MOST_BYTES_SCANNED_HERE
        )


def candidates(run: Execution) -> Candidates | Declined:
    """Asks the index how many rows may match, where it serves at least half of the table."""
    plan = run.plan
    declined = _without_use(plan)
    if declined is not None:
        return declined
    if plan.predicate is not None and _leaves_most(plan.predicate):
        return Declined("what is unlike a pattern is most of the rows")
    uncovered = plan.count(Access.SCAN) + plan.count(Access.MERGE)
    scanned = _bytes(plan, Access.SCAN, Access.MERGE)
    asked = [each for each in plan.slices if each.access is Access.INDEX]
    if len(asked) > _MOST_SLICES_HERE:
        return Candidates(None, scanned, uncovered)
    rows = [max(e.entry.manifest.base_file.rows for e in each.entries) for each in asked]
    searches = _searches(plan)  # without the index, the words of every text have to be found
    most = _most_rows(plan, sum(rows))
    found = seen = 0
    for each, of_file in zip(asked, rows, strict=True):  # several threads would not be faster
        statistics = SliceStatistics(each.file_slice.name, each.access)
        run.reader.settled_rows(each, statistics)
        found += of_file if statistics.candidates is None else statistics.candidates
        seen += of_file
        # Far too many already, should the other slices have about as many: they are not asked.
        if not searches and found * sum(rows) > seen * most * _MARGIN:
            break
    if searches:
        return Candidates(found, scanned, uncovered)
    if found == sum(rows) and not plan.count(Access.SKIP):
        return Declined("the index rules out no row")
    if found <= most and seen == sum(rows):
        return Candidates(found, scanned, uncovered)
    return Declined(f"the index finds {found} of {seen} rows, and Spark scans them faster")


def _most_rows(plan: QueryPlan, rows: int) -> int:
    """How many rows are read through the index: more of them Spark's own scan reads faster."""
    of_small_table = max(_FEW_ROWS, _scanned_by_spark(plan) // _BYTES_OF_A_ROW)
    if of_small_table < MOST_ROWS_HERE:
        return of_small_table
    return max(MOST_ROWS_HERE, int(rows * MOST_OF_ALL))


def _searches(plan: QueryPlan) -> bool:
    """Whether a full-text search is among the conditions."""
    predicate = plan.predicate
    return predicate is not None and any(isinstance(each, Match) for each in predicate.leaves())


def scanned_alone(run: Execution, column: str | None) -> bool:
    """Whether numbers of rows, by the values of a column or altogether, come from the index alone
    but for a few bytes that are read here."""
    served, scanned = 0, 0
    for each in run.plan.slices:
        file_slice = each.file_slice
        if run.reader.may_settle(each) and (column is None or may_have_few_values(each, column)):
            served += 1
            continue
        scanned += len(file_slice.log_files) * _LOG_FILE_BYTES
        if file_slice.base_file is not None:
            scanned += file_slice.base_file.size
    few = scanned <= MOST_BYTES_SCANNED_HERE and len(run.plan.slices) <= _MOST_SLICES_HERE
    return served > 0 and few


def _leaves_most(predicate: Predicate) -> bool:
    """Whether finding out how many rows are left would take going through most of the index."""
    match predicate:
        case And(operands):
            return all(map(_leaves_most, operands))
        case Not(Like() | RLike()):
            return True
    return False


def _without_use(plan: QueryPlan) -> Declined | None:
    served = (Access.INDEX, Access.SKIP)
    if not any(each.access in served for each in plan.slices):
        reasons = dict.fromkeys(each.reason for each in plan.slices)
        return Declined("; ".join(list(reasons)[:3]) or "the table is empty")
    by_index = _bytes(plan, *served)
    others = _bytes(plan, Access.SCAN, Access.MERGE)
    if others > max(by_index, MOST_BYTES_SCANNED_HERE):
        share = round(100 * others / (others + by_index))
        return Declined(f"no index serves {share} % of the table's bytes")
    return None


def _scanned_by_spark(plan: QueryPlan) -> int:
    return _base_file_bytes(each for each in plan.slices if each.rule != "partition_pruning")


def _bytes(plan: QueryPlan, *accesses: Access) -> int:
    return _base_file_bytes(each for each in plan.slices if each.access in accesses)


def _base_file_bytes(slices: Iterable[SlicePlan]) -> int:
    base_files = (each.file_slice.base_file for each in slices)
    return sum(each.size for each in base_files if each is not None)


def read_here(spark: "SparkSession", rows: pa.Table, output: list[Any | None]) -> Any:
    """Rows as a leaf of a plan.

    Args:
        output: Catalyst's attributes, in the order of the columns; new ones in the place of None.
    """
    jvm: Any = spark._jvm
    struct = from_arrow_schema(rows.schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, to_arrow_schema(struct)) as writer:
        writer.write_table(rows.cast(to_arrow_schema(struct)))
    stream = jvm.java.io.ByteArrayInputStream(sink.getvalue().to_pybytes())
    channel = jvm.java.nio.channels.Channels.newChannel(stream)
    arrow = module(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters")
    frame = arrow.toDataFrame(
        arrow.getBatchesFromStream(channel), struct.json(), spark._jsparkSession
    )
    relation = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation
    made = frame.queryExecution().analyzed()
    attributes = [
        new if given is None else given
        for given, new in zip(output, elements(made.output()), strict=True)
    ]
    return relation(sequence(jvm, attributes), made.data(), False)


def read_by_tasks(
    spark: "SparkSession",
    run: Execution,
    output: list[Any],
    observed: Observed | None = None,
) -> Any:
    """The same, read by Spark tasks when the query runs. Raises what `rows_by_tasks` raises.

    Args:
        observed: Adds up what the tasks read.
    """
    attributes = sequence(spark._jvm, output)
    observe = None if observed is None else observed.add
    frame = rows_by_tasks(spark, run.reader, run.plan, None, output=attributes, observe=observe)
    return frame._jdf.queryExecution().analyzed()


def types_agree(schema: pa.Schema, types: list[str]) -> bool:
    """Whether columns have the types that they have for Spark.

    Args:
        types: As Spark writes them.
    """
    return [each.dataType.simpleString() for each in from_arrow_schema(schema)] == types
