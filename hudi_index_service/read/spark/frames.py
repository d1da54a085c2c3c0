"""Returns a scan's rows as a DataFrame whose partitions run the slice reader in Spark's tasks.

Executors need this package and both native distributions installed, and JAVA_HOME for the Lucene
index type, as for building.
"""

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import inf
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from hudi_index_service.errors import IndexServiceError, StorageFailed
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.decide import most_tasks
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.recording import is_remembered, recorder_of_tasks
from hudi_index_service.read.spark.parts import FileSplits, Weight, shared
from hudi_index_service.read.spark.slice_task import SliceTask, numbers_in
from hudi_index_service.read.spark.task_reports import Listener, task_reports
from hudi_index_service.read.statistics import SliceStatistics

log = logging.getLogger(__name__)

_NO_COLUMN = "_"
_SCALA_OBJECTS = "_hudi_index_scala_objects"
_MOST_PARTITIONS = 10_000
_ROW_OVERHEAD = 8  # bytes, as Spark itself counts
_WEIGHTS = pa.schema([("weights", pa.binary())])  # pickled


def rows_by_tasks(
    spark: SparkSession,
    run: Execution,
    limit: int | None = None,
    observe: Callable[[SliceStatistics], None] | None = None,
) -> DataFrame:
    """The rows of a query, read lazily in Spark tasks. A small job first estimates the size of the
    slices for Spark's planner. The run's history gets the statistics of the tasks each time all
    slices have been read completely; not with a limit, for which Spark stops early.

    Args:
        limit: The maximum number of rows.
        observe: Called in the driver with the statistics of each slice.

    Raises:
        IndexServiceError: an error of reading a slice that its first rows show.
    """
    plan, reader, history = run.plan, run.reader, run.history
    plans = [plan.slices[number] for number in plan.left()]
    task = SliceTask.of(reader, [[each] for each in plans], limit)
    schema = reader.query.output or pa.schema([(_NO_COLUMN, pa.bool_())])
    struct = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    if not plans:
        return _without_stand_in(spark.createDataFrame([], struct))
    splits = FileSplits.of(spark)
    # Each task opens the entries anew.
    model = replace(CostModel.of(plan, reader.settings), opened=frozenset())
    weights = [
        each._replace(most_tasks=_most_tasks(model, planned, each, limit))
        for planned, each in zip(plans, _weights(spark, task, splits.whole_bytes), strict=True)
    ]
    tasks = shared(weights, splits)
    parts = [part for parts in tasks for part in parts]
    partitions = min(len(tasks), _MOST_PARTITIONS)
    listeners: list[Listener] = []
    if observe is not None:
        listeners.append(lambda number, statistics: observe(statistics))
    if history is not None and limit is None and is_remembered(plan):
        by_slice = [part.slice_number for part in parts]
        listeners.append(recorder_of_tasks(history, plan, by_slice))
    send = None
    if listeners:
        send = task_reports(spark.sparkContext).expect(len(parts), listeners)
    arrow = to_arrow_schema(struct)

    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in task.batches((x for each in numbers_in(numbers) for x in tasks[each]), send):
            if batch.num_columns:
                yield batch.cast(arrow)
            else:
                yield pa.record_batch([pa.nulls(batch.num_rows, pa.bool_())], schema=arrow)

    frame = spark.range(0, len(tasks), 1, partitions).mapInArrow(read, struct)
    size = _size(weights, limit, frame)
    log.info("About %d bytes from %d slices by %d Spark tasks.", size, len(plans), len(tasks))
    sized_frame = _without_stand_in(_with_size(spark, frame, partitions, size))
    return sized_frame if limit is None else sized_frame.limit(limit)


def _without_stand_in(frame: DataFrame) -> DataFrame:
    return frame.select() if frame.columns == [_NO_COLUMN] else frame


def _most_tasks(model: CostModel, plan: SlicePlan, weight: Weight, limit: int | None) -> float:
    """The most tasks that share a slice. With a limit, one reads it, which may stop early."""
    if limit is not None:
        return 1
    is_looked_up = len(weight.groups) > 1 and plan.access is Access.INDEX
    return most_tasks(model, plan, weight.rows) if is_looked_up else inf


def _size(weights: Sequence[Weight], limit: int | None, frame: DataFrame) -> int:
    """The approximate size of the rows in bytes, rather too large than too small."""
    columns = float(frame._jdf.schema().defaultSize())
    # A slice without sampled rows may have rows as large as the largest of other slices.
    largest = max((each.row_bytes or 0.0 for each in weights), default=0.0)
    rows = sum(each.rows for each in weights)
    if limit is not None:
        rows = min(rows, limit)
    return int(rows * (max(columns, largest) + _ROW_OVERHEAD))


def _weights(spark: SparkSession, task: SliceTask, whole: float) -> list[Weight]:
    """The sizes of the slices, from one job on the workers that will read them."""

    def weigh(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        weights: list[Weight] | IndexServiceError
        try:
            weights = task.weights(numbers_in(numbers), whole=whole)
        except IndexServiceError as error:
            weights = error
        yield pa.RecordBatch.from_pylist([{"weights": pickle.dumps(weights)}], schema=_WEIGHTS)

    slices = len(task.packed)
    numbers = spark.range(0, slices, 1, min(slices, 4 * spark.sparkContext.defaultParallelism))
    try:
        rows = numbers.mapInArrow(weigh, from_arrow_schema(_WEIGHTS)).collect()
    except (PySparkException, Py4JJavaError) as error:
        raise StorageFailed(
            f"Spark's tasks cannot read {task.storage.uri}: {str(error).splitlines()[0]}",
            remedy="See Spark's log; executors need this package and its native distributions.",
        ) from error
    found: list[Weight] = []
    for row in rows:
        weights = pickle.loads(row.weights)  # noqa: S301 - packed by a task of ours
        if isinstance(weights, IndexServiceError):
            raise weights
        found += weights
    return found


def _with_size(spark: SparkSession, frame: DataFrame, partitions: int, size: int) -> DataFrame:
    """The same rows with a size for Spark's planner. Spark assumes that the output of mapInArrow is
    as large as its input: here a few numbers, which it would always broadcast."""
    jvm: Any = spark._jvm
    execution = frame._jdf.queryExecution()
    option = jvm.scala.Option
    # Statistics can be made only in Scala; those of a range are eight bytes per row.
    statistics = spark.range(-(-size // 8))._jdf.queryExecution().optimizedPlan().stats()
    plans = jvm.org.apache.spark.sql.catalyst.plans
    rows = jvm.org.apache.spark.sql.execution.LogicalRDD(
        execution.analyzed().output(),
        execution.toRdd(),
        plans.physical.UnknownPartitioning(partitions),
        _scala_object(jvm, "scala.collection.immutable.Nil"),
        False,
        spark._jsparkSession,
        option.apply(statistics),
        option.empty(),
    )
    dataset = _scala_object(jvm, "org.apache.spark.sql.Dataset")
    return DataFrame(dataset.ofRows(spark._jsparkSession, rows), spark)


def _scala_object(jvm: Any, path: str) -> Any:
    """A Scala object by its dotted name, kept with the JVM's view: each dot takes a call."""
    cache: dict[str, Any] = jvm.__dict__.setdefault(_SCALA_OBJECTS, {})
    if path not in cache:
        cache[path] = reduce(getattr, f"{path}$.MODULE$".split("."), jvm)
    return cache[path]
