"""Locates record keys in Spark's tasks.

Keys that the driver holds are sent to every task. Keys of a DataFrame do not pass through the
driver: of a small table, each task searches all slices for its share of the keys; of a large one,
keys are shuffled to the groups of slices that may hold them.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from hudi_index_service.arrow import integer_scalar
from hudi_index_service.errors import ConfigInvalid, NeedsSpark, Remedy, TableFeatureUnsupported
from hudi_index_service.hudi.files.log_file import RECORD_KEY
from hudi_index_service.hudi.spark import SparkHudiReader, collected
from hudi_index_service.optimizer.decide import each_task_reads_all_keys
from hudi_index_service.optimizer.plan import QueryPlan, SlicePlan
from hudi_index_service.read.base_file.record_keys import RecordKeys
from hudi_index_service.read.keys.key_locator import KeyLocator
from hudi_index_service.read.keys.key_routes import (
    KEY,
    PARTITION,
    KeyRoutes,
    routed,
    slice_groups,
)
from hudi_index_service.read.keys.tag_location import (
    ANSWER,
    NAMED_LOCATIONS,
    KeySearch,
    RequestedKeys,
    key_columns,
)
from hudi_index_service.read.spark.slice_task import SliceTask, numbers_in
from hudi_index_service.read.statistics import ReadStatistics

log = logging.getLogger(__name__)

_GROUP, _TIMES = "group", "times"
_ROUTED_KEYS = pa.schema([(_GROUP, pa.int64()), (KEY, pa.string())])
_TASKS_PER_SLOT = 2
_ROWS_PER_BATCH = 65_536
_KEYS_AT_ONCE = 750_000  # in a task, at about 200 bytes each with all intermediate data
_BASE_FILE = r"^(.+)_[^_]+_([0-9]+)\.parquet$"

_LATE_REMEDY = Remedy(
    "Give the keys as a list or an Arrow table to a table that was opened with spark=<session with "
    "Hudi>, and no session to tag_location: Spark's own reader locates them, without row ids."
)

_BYTES_A_ROW = 20  # of a base file, at least: it stores the row's key, which hardly compresses


@dataclass(frozen=True, slots=True)
class _LocatorTask:
    """The data that a task needs to do the work of a locator on groups of slices. Make it by
    `of`."""

    task: SliceTask
    keys: RecordKeys
    find_deleted: bool

    @classmethod
    def of(cls, locator: KeyLocator, groups: Iterable[Sequence[SlicePlan]]) -> "_LocatorTask":
        """The task that searches groups of slices."""
        return cls(SliceTask.of(locator.reader, groups), locator.keys, locator.find_deleted)

    def locations(
        self, work: Iterable[tuple[int, RequestedKeys]]
    ) -> Iterator[tuple[RequestedKeys, pa.Table]]:
        """The same keys, and their `LOCATIONS` in groups of slices.

        Args:
            work: Numbers of groups, those of one group consecutive, and the keys to look for.

        Raises:
            NeedsSpark: only Spark can read a slice.
            SnapshotChanged: a file of the snapshot is gone.
        """
        plans_of = lru_cache(1)(self.task.plans)
        with self.task.opened() as reader:
            locator = KeyLocator(reader, self.keys, self.find_deleted)
            for group, requested in work:
                plans, statistics = plans_of(group), ReadStatistics()
                statistics.start(plans)
                routes = KeyRoutes(self.keys, requested.every_key, requested.by_partition())
                try:
                    located = locator.locate(dict(enumerate(plans)), routes, statistics)
                except TableFeatureUnsupported as error:
                    raise NeedsSpark(error.message, remedy=_LATE_REMEDY) from error
                yield requested, located


def answer(
    search: KeySearch, requested: RequestedKeys, reader: SparkHudiReader, *, by_tasks: bool
) -> pa.Table:
    """The answer (`ANSWER`) for keys that the driver holds.

    Args:
        reader: Serves tables that only Spark can read; belongs to the session in use.
        by_tasks: Whether one Spark job locates the keys, instead of threads of this process.

    Raises:
        TableFeatureUnsupported, SnapshotChanged: see `KeySearch.answer`.
        StorageFailed: Spark's tasks cannot read the table.
    """
    spark = reader.spark
    try:
        if not by_tasks:
            return search.answer(requested)
        plan, locator = search.planned(partitioned=requested.partitioned)
        with reader.failures_named():
            located = _locations_by_job(spark, locator, plan, requested)
            return requested.answered(requested.placed(located))
    except TableFeatureUnsupported as error:
        with reader.failures_named():
            rows = _by_meta_columns(reader, error)
            schema = from_arrow_schema(requested.table.schema)
            frame = spark.createDataFrame(requested.table.to_pylist(), schema)
            locations = rows.join(frame, frame.columns, "left_semi")
            named = collected(locations.select(*NAMED_LOCATIONS.names)).cast(NAMED_LOCATIONS)
            return requested.answered(requested.placed(named))


def _locations_by_job(
    spark: SparkSession, locator: KeyLocator, plan: QueryPlan, requested: RequestedKeys
) -> pa.Table:
    """The locations (`NAMED_LOCATIONS`) of keys that the driver holds, found by one job."""
    asked = requested.by_partition()
    slices = [
        each
        for each in plan.slices
        if len(requested.every_key if asked is None else asked(each.file_slice.partition))
    ]
    if not slices:
        return pa.Table.from_batches([], NAMED_LOCATIONS)
    tasks = min(len(slices), _tasks(spark))
    ends = [part * len(slices) // tasks for part in range(tasks + 1)]
    task = _LocatorTask.of(locator, [slices[start:end] for start, end in pairwise(ends)])
    broadcast = spark.sparkContext.broadcast(requested.table)

    def locate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        requested = RequestedKeys(broadcast.value)
        for _, located in task.locations((number, requested) for number in numbers_in(batches)):
            yield from requested.named(located).to_batches(max_chunksize=_ROWS_PER_BATCH)

    numbers = spark.range(0, tasks, 1, tasks)
    try:
        return collected(numbers.mapInArrow(locate, from_arrow_schema(NAMED_LOCATIONS)))
    finally:
        broadcast.destroy()


def frame_answer(
    search: KeySearch, keys: DataFrame, reader_on: Callable[[SparkSession], SparkHudiReader]
) -> DataFrame:
    """The answer (`ANSWER`) for a DataFrame of keys, computed lazily.

    Args:
        reader_on: Makes a reader for tables that only Spark can read.

    Raises:
        ConfigInvalid: the DataFrame has no column of keys.
        TableFeatureUnsupported: not even Spark's reader can locate rows.
    """
    requested = named_keys(keys)
    try:
        plan, locator = search.planned(partitioned=PARTITION in requested.columns)
        by_each = _each_task_may_answer(plan.slices)
        by_tasks = _answer_by_each_task if by_each else _answer_by_groups
        return by_tasks(locator, plan, requested)
    except TableFeatureUnsupported as error:
        rows = _by_meta_columns(reader_on(keys.sparkSession), error)
        return _with_locations(requested, rows).select(*ANSWER.names)


def _tasks(spark: SparkSession) -> int:
    """The number of tasks that share the slices."""
    return _TASKS_PER_SLOT * spark.sparkContext.defaultParallelism


def _each_task_may_answer(slices: Sequence[SlicePlan]) -> bool:
    """Whether each task may search all these slices: they are few enough, and without log files,
    which each task would have to merge."""
    rows = 0  # rather too many
    for each in slices:
        rows += each.total if each.entries else each.file_slice.base_file.size // _BYTES_A_ROW
    return each_task_reads_all_keys(rows) and not any(e.file_slice.log_files for e in slices)


def _answer_by_each_task(locator: KeyLocator, plan: QueryPlan, requested: DataFrame) -> DataFrame:
    """The answer by tasks that each search all slices for a share of the keys: no key is then
    shuffled to slices, and no location back to its key."""
    task = _LocatorTask.of(locator, [plan.slices])

    def answer_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shares = portions(((0, batch) for batch in batches), _KEYS_AT_ONCE)
        for share, located in task.locations(shares):
            answered = share.answered(located, ordered=False)
            yield from answered.to_batches(max_chunksize=_ROWS_PER_BATCH)

    # One task a slot: with more of them, the keys of the base files would be read more often.
    slots = requested.sparkSession.sparkContext.defaultParallelism
    shares = requested.repartition(slots, KEY)
    return shares.mapInArrow(answer_all, from_arrow_schema(ANSWER))


def _answer_by_groups(locator: KeyLocator, plan: QueryPlan, requested: DataFrame) -> DataFrame:
    """The answer by tasks that each search a group of slices for the keys that it may hold."""
    partitioned = PARTITION in requested.columns
    tasks, record_keys = _tasks(requested.sparkSession), locator.keys
    groups = slice_groups(plan.slices, record_keys, tasks, by_partition=partitioned)
    task = _LocatorTask.of(locator, [[plan.slices[n] for n in each.slices] for each in groups])
    # Distinct keys from here on: the keys are computed once, and each is looked up once.
    distinct_keys = requested.groupBy(*requested.columns).agg(F.count(F.lit(1)).alias(_TIMES))

    def to_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, group_keys in routed(batch, groups, record_keys):
                numbers = pa.repeat(integer_scalar(number, pa.int64()), len(group_keys))
                yield pa.record_batch([numbers, group_keys], schema=_ROUTED_KEYS)

    def locate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for keys, located in task.locations(portions(_by_group(batches), _KEYS_AT_ONCE)):
            yield from keys.named(located).to_batches(max_chunksize=_ROWS_PER_BATCH)

    routed_keys = distinct_keys.mapInArrow(to_groups, from_arrow_schema(_ROUTED_KEYS))
    by_group = routed_keys.repartition(max(1, min(tasks, len(groups))), _GROUP)
    key_locations = by_group.sortWithinPartitions(_GROUP).mapInArrow(
        locate, from_arrow_schema(NAMED_LOCATIONS)
    )
    if locator.find_deleted:
        key_locations = _living(key_locations)
    repeated = F.explode(F.sequence(F.lit(1), F.col(_TIMES))).alias(_TIMES)
    return (
        _with_locations(distinct_keys, key_locations).select(*ANSWER.names, repeated).drop(_TIMES)
    )


def _by_meta_columns(reader: SparkHudiReader, error: TableFeatureUnsupported) -> DataFrame:
    """The locations of all rows by Hudi's meta columns, as Spark's own reader gives them since the
    service cannot: without row ids, and without instant for rows in log files. Raises that error
    if the rows have no meta columns."""
    if RECORD_KEY not in reader.schema().names:
        raise error
    log.info("Spark's own reader locates these keys: %s", error.message)
    rows = reader.frame([RECORD_KEY, "_hoodie_partition_path", "_hoodie_file_name"])
    name = F.col("_hoodie_file_name")
    in_base_file = name.rlike(_BASE_FILE)
    return rows.select(
        F.col(RECORD_KEY).alias(KEY),
        F.col("_hoodie_partition_path").alias(PARTITION),
        F.when(in_base_file, F.regexp_extract(name, _BASE_FILE, 1))
        .otherwise(name)
        .alias("file_id"),
        F.when(in_base_file, F.regexp_extract(name, _BASE_FILE, 2)).alias("instant"),
        F.lit(None).cast("long").alias("row_id"),
        F.lit(False).alias("deleted"),
    )


def named_keys(keys: DataFrame) -> DataFrame:
    """The columns ``record_key`` and, if there is one, ``partition`` of a DataFrame of keys.

    Raises:
        ConfigInvalid: it has no column of keys.
    """
    names = key_columns(keys.columns)
    if KEY not in names:
        raise ConfigInvalid(
            f"The DataFrame has no column {KEY}.",
            remedy=f"Name the columns {KEY} and, where keys are looked for in one partition each, "
            f"{PARTITION}.",
        )
    return keys.select(*(keys[name].cast("string").alias(column) for column, name in names.items()))


def _with_locations(requested: DataFrame, locations: DataFrame) -> DataFrame:
    on = [column for column in (KEY, PARTITION) if column in requested.columns]
    # Spark assumes that the output of mapInArrow is small, even if it is not.
    return requested.join(locations.hint("merge"), on, "left")


def _living(locations: DataFrame) -> DataFrame:
    """Without rows that log files delete and whose keys are elsewhere, as `RequestedKeys`."""
    living = ~F.col("deleted")
    alive = F.max(living.cast("int")).over(Window.partitionBy(KEY))
    return locations.withColumn("alive", alive).where(living | (F.col("alive") == 0)).drop("alive")


def portions(
    batches_by_group: Iterable[tuple[int, pa.RecordBatch]], most: int
) -> Iterator[tuple[int, RequestedKeys]]:
    """The keys of each group joined into portions of about `most` at most.

    Args:
        batches_by_group: Numbers of groups, and keys as for `RequestedKeys`; those of one group are
            consecutive.
    """
    current, batches = 0, list[pa.RecordBatch]()
    for number, batch in batches_by_group:
        if batches and (number != current or sum(map(len, batches)) >= most):
            yield current, RequestedKeys(pa.Table.from_batches(batches))
            batches = []
        current = number
        batches.append(batch)
    if batches:
        yield current, RequestedKeys(pa.Table.from_batches(batches))


def _by_group(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The keys of each group, from batches sorted by group."""
    for batch in batches:
        runs = pc.run_end_encode(batch.column(_GROUP))
        start = 0
        for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield number, batch.select([KEY]).slice(start, end - start)
            start = end
