"""Record keys located by Spark's tasks, slice by slice.

Keys that the driver holds go to every task. Those of a DataFrame go by a shuffle to the groups of
slices that may hold them: no key passes through the driver.
"""

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from hudi_index_service.config import BuildSettings, ReadSettings
from hudi_index_service.errors import ConfigInvalid, NeedsSpark, TableFeatureUnsupported
from hudi_index_service.optimizer.plan import QueryPlan, SlicePlan
from hudi_index_service.read.key_locator import LOCATIONS, KeyLocator
from hudi_index_service.read.location.groups import portions, routed, slice_groups
from hudi_index_service.read.record_keys import RECORD_KEY, RecordKeys
from hudi_index_service.read.slice_task import opened_table
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.read.tag_location import (
    ANSWER,
    KEY,
    KEY_NAMES,
    PARTITION,
    PARTITION_NAMES,
    AskedKeys,
    KeySearch,
    finds_deleted,
    named_column,
)
from hudi_index_service.storage import Storage
from hudi_index_service.table.spark import SparkHudiReader, collected

log = logging.getLogger(__name__)

_GROUP, _TIMES = "group", "times"
_SENT = pa.schema([(_GROUP, pa.int64()), (KEY, pa.string())])
_TASKS_A_SLOT = 2
_ROWS_A_BATCH = 65_536
_KEYS_AT_ONCE = 500_000  # in a task, at about 200 bytes each for all that is made of them
_BASE_FILE = r"^(.+)_[^_]+_([0-9]+)\.parquet$"

_LATE_REMEDY = (
    "Give the keys as a list or an Arrow table to a table that was opened with spark=<session with "
    "Hudi>, and no session to tag_location: Spark's own reader locates them, without row ids."
)

SliceKeys = tuple[SlicePlan, pa.StringArray]


@dataclass(frozen=True, slots=True)
class KeyTask:
    """What a Spark task needs to locate keys. Make it by `of`."""

    storage: Storage
    keys: RecordKeys
    schema: pa.Schema
    instant: str
    read: ReadSettings
    build: BuildSettings
    find_deleted: bool

    @classmethod
    def of(cls, locator: KeyLocator, *, find_deleted: bool) -> "KeyTask":
        """What another process needs to do what `locator` does."""
        return cls(
            storage=locator.table.storage,
            keys=locator.keys,
            schema=locator.schema,
            instant=locator.instant,
            read=locator.settings.read,
            build=locator.settings.build,
            find_deleted=find_deleted,
        )

    def locations(self, work: Iterable[SliceKeys]) -> Iterator[pa.RecordBatch]:
        """The locations (`LOCATIONS`) of keys in slices; each with the slice where to look.

        Raises:
            NeedsSpark: a slice cannot be read here, which only a task finds out.
            SnapshotChanged: a file of the snapshot is gone.
        """
        with self._opened() as locator:
            for plan, keys in work:
                statistics = SliceStatistics(plan.file_slice.name, plan.access)
                try:
                    found = locator.locate(plan, keys, statistics, find_deleted=self.find_deleted)
                except TableFeatureUnsupported as error:
                    raise NeedsSpark(error.message, remedy=_LATE_REMEDY) from error
                yield from found.to_batches(max_chunksize=_ROWS_A_BATCH)

    @contextmanager
    def _opened(self) -> Iterator[KeyLocator]:
        with opened_table(self.storage, self.read, self.build) as (table, pool, chosen):
            yield KeyLocator(table, self.keys, self.schema, self.instant, pool, chosen)


def answer(
    search: KeySearch, asked: AskedKeys, reader: SparkHudiReader, *, by_tasks: bool
) -> pa.Table:
    """The answer (`ANSWER`) for keys that the driver holds.

    Args:
        reader: Serves a table that only Spark reads; of the session that is used.
        by_tasks: Whether one Spark job locates them, or threads of this process do.

    Raises:
        TableFeatureUnsupported, SnapshotChanged: see `KeySearch.answer`.
        StorageFailed: Spark's tasks cannot read the table.
    """
    spark = reader.spark
    try:
        if not by_tasks:
            return search.answer(asked)
        plan = search.plan()
        with reader.failures_named():
            return asked.answered(_found(spark, search.locator(plan), plan, asked))
    except TableFeatureUnsupported as error:
        if not _tells_locations(reader):
            raise
        log.info("Spark's own reader locates these keys: %s", error.message)
        schema = from_arrow_schema(asked.table.schema)
        frame = spark.createDataFrame(asked.table.to_pylist(), schema)
        with reader.failures_named():
            found = _by_meta_columns(reader).join(frame, frame.columns, "left_semi")
            return asked.answered(collected(found.select(*LOCATIONS.names)).cast(LOCATIONS))


def _found(spark: SparkSession, locator: KeyLocator, plan: QueryPlan, asked: AskedKeys) -> pa.Table:
    """What is found (`LOCATIONS`) of keys that the driver holds, by one job."""
    keys = asked.by_partition()
    slices = [pickle.dumps(each) for each in plan.slices if len(keys(each.file_slice.partition))]
    if not slices:
        return LOCATIONS.empty_table()
    task = KeyTask.of(locator, find_deleted=finds_deleted(plan, asked.partitioned))
    everywhere = spark.sparkContext.broadcast(asked.table)

    def locate(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        within = AskedKeys(everywhere.value).by_partition()
        mine = [number for batch in numbers for number in batch.column(0).to_pylist()]
        plans = (_unpacked(slices[number]) for number in mine)
        yield from task.locations((each, within(each.file_slice.partition)) for each in plans)

    numbers = spark.range(0, len(slices), 1, len(slices))
    try:
        return collected(numbers.mapInArrow(locate, from_arrow_schema(LOCATIONS)))
    finally:
        everywhere.destroy()


def frame_answer(
    search: KeySearch, keys: DataFrame, reader_on: Callable[[SparkSession], SparkHudiReader]
) -> DataFrame:
    """The answer (`ANSWER`) for a DataFrame of keys, worked out when it is asked for.

    Args:
        reader_on: Makes what serves a table that only Spark reads.

    Raises:
        ConfigInvalid: the DataFrame has no column of keys.
        TableFeatureUnsupported: not even Spark's reader tells where rows lie.
    """
    asked = named_keys(keys)
    try:
        plan = search.plan()
        return _located(search.locator(plan), plan, asked)
    except TableFeatureUnsupported as error:
        reader = reader_on(keys.sparkSession)
        if not _tells_locations(reader):
            raise
        log.info("Spark's own reader locates these keys: %s", error.message)
        return _answered(asked, _by_meta_columns(reader))


def _located(locator: KeyLocator, plan: QueryPlan, asked: DataFrame) -> DataFrame:
    partitioned = PARTITION in asked.columns
    find_deleted = finds_deleted(plan, partitioned)
    task = KeyTask.of(locator, find_deleted=find_deleted)
    slices = [pickle.dumps(each) for each in plan.slices]
    tasks = _TASKS_A_SLOT * asked.sparkSession.sparkContext.defaultParallelism
    groups = slice_groups(plan.slices, locator.keys, tasks, by_partition=partitioned)
    # Once from here on: the keys are worked out once, and nothing is looked for twice.
    times = asked.groupBy(*asked.columns).agg(F.count(F.lit(1)).alias(_TIMES))

    def to_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, some in routed(batch, groups):
                numbers = pa.repeat(pa.scalar(number, pa.int64()), len(some))
                yield pa.record_batch([numbers, some], schema=_SENT)

    def locate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from task.locations(
            (_unpacked(slices[number]), some)
            for group, some in portions(_by_group(batches), _KEYS_AT_ONCE)
            for number in groups[group].slices
        )

    sent = times.mapInArrow(to_groups, from_arrow_schema(_SENT))
    by_group = sent.repartition(max(1, min(tasks, len(groups))), _GROUP)
    found = by_group.sortWithinPartitions(_GROUP).mapInArrow(locate, from_arrow_schema(LOCATIONS))
    if find_deleted:
        found = _living(found)
    repeated = F.explode(F.sequence(F.lit(1), F.col(_TIMES))).alias(_TIMES)
    return _joined(times, found).select(*ANSWER.names, repeated).drop(_TIMES)


def _tells_locations(reader: SparkHudiReader) -> bool:
    """Whether rows have Hudi's meta columns."""
    return RECORD_KEY in reader.schema().names


def _by_meta_columns(reader: SparkHudiReader) -> DataFrame:
    """Where all rows lie by Hudi's meta columns: without row ids, and without instant where a log
    file holds the row."""
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
        F.lit(None).cast("boolean").alias("deleted"),
    )


def named_keys(keys: DataFrame) -> DataFrame:
    """The columns ``record_key`` and, if there is one, ``partition`` of a DataFrame of keys.

    Raises:
        ConfigInvalid: it has no column of keys.
    """
    key = named_column(keys.columns, KEY_NAMES)
    if key is None:
        raise ConfigInvalid(
            f"The DataFrame has no column {KEY}.",
            remedy=f"Name the columns {KEY} and, where keys are looked for in one partition each, "
            f"{PARTITION}.",
        )
    partition = named_column(keys.columns, PARTITION_NAMES)
    found = {KEY: key} if partition is None else {KEY: key, PARTITION: partition}
    return keys.select(*(keys[column].cast("string").alias(name) for name, column in found.items()))


def _answered(asked: DataFrame, found: DataFrame) -> DataFrame:
    return _joined(asked, found).select(*ANSWER.names)


def _joined(asked: DataFrame, found: DataFrame) -> DataFrame:
    on = [column for column in (KEY, PARTITION) if column in asked.columns]
    # What comes out of mapInArrow Spark takes for small, however much it is.
    return asked.join(found.hint("merge"), on, "left")


def _living(found: DataFrame) -> DataFrame:
    """As `tag_location.living`."""
    deleted = F.coalesce(F.col("deleted"), F.lit(False))
    alive = F.max((~deleted).cast("int")).over(Window.partitionBy(KEY))
    return found.withColumn("alive", alive).where(~deleted | (F.col("alive") == 0)).drop("alive")


def _by_group(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.StringArray]]:
    """The keys of each group, from what was sent, sorted by group."""
    for batch in batches:
        runs = pc.run_end_encode(batch.column(_GROUP))
        start = 0
        for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield number, batch.column(KEY).slice(start, end - start)
            start = end


def _unpacked(plan: bytes) -> SlicePlan:
    found: SlicePlan = pickle.loads(plan)  # noqa: S301 - packed by the driver, read from no table
    return found
