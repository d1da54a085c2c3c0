"""Record keys located by Spark's tasks, slice by slice.

Keys that the driver holds go to every task. Those of a DataFrame go to the slices that may hold
them by a shuffle, as in Hudi's own Bloom index: no key passes through the driver.
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
from hudi_index_service.errors import ConfigInvalid, TableFeatureUnsupported
from hudi_index_service.optimizer.plan import QueryPlan, SlicePlan
from hudi_index_service.read.key_locator import LOCATIONS, KeyLocator
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
    distinct,
    finds_deleted,
    named_column,
)
from hudi_index_service.storage import Storage
from hudi_index_service.table.spark import SparkHudiReader, collected

log = logging.getLogger(__name__)

_PAIRS = pa.schema([("slice", pa.int64()), (KEY, pa.string())])
_BASE_FILE = r"^(.+)_[^_]+_([0-9]+)\.parquet$"

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
        """The locations (`LOCATIONS`) of keys in slices; each with the slice where to look."""
        with self._opened() as locator:
            for plan, keys in work:
                statistics = SliceStatistics(plan.file_slice.name, plan.access)
                found = locator.locate(plan, keys, statistics, find_deleted=self.find_deleted)
                yield from found.to_batches()

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
    of_partition: dict[str, list[int]] = {}
    for number, each in enumerate(plan.slices):
        of_partition.setdefault(each.file_slice.partition, []).append(number)
    everywhere = list(range(len(slices)))

    def pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for partition, some in _by_partition(batch, partitioned=partitioned):
                wanted = everywhere if partition is None else of_partition.get(partition, [])
                for number in wanted:
                    numbers = pa.repeat(pa.scalar(number, pa.int64()), len(some))
                    yield pa.record_batch([numbers, some], schema=_PAIRS)

    def locate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from task.locations(
            (_unpacked(slices[number]), some) for number, some in _by_slice(batches)
        )

    to_slices = asked.distinct().mapInArrow(pairs, from_arrow_schema(_PAIRS))
    by_slice = to_slices.repartition("slice").sortWithinPartitions("slice")
    found = by_slice.mapInArrow(locate, from_arrow_schema(LOCATIONS))
    if find_deleted:
        found = _living(found)
    return _answered(asked, found)


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
    on = [column for column in (KEY, PARTITION) if column in asked.columns]
    # What comes out of mapInArrow Spark takes for small, however much it is.
    return asked.join(found.hint("merge"), on, "left").select(*ANSWER.names)


def _living(found: DataFrame) -> DataFrame:
    """As `tag_location.living`."""
    deleted = F.coalesce(F.col("deleted"), F.lit(False))
    alive = F.max((~deleted).cast("int")).over(Window.partitionBy(KEY))
    return found.withColumn("alive", alive).where(~deleted | (F.col("alive") == 0)).drop("alive")


def _by_partition(
    batch: pa.RecordBatch, *, partitioned: bool
) -> Iterator[tuple[str | None, pa.StringArray]]:
    """The keys of a batch by partition; by None where they are looked for in all."""
    keys = batch.column(KEY)
    if not partitioned:
        yield None, keys.drop_null()
        return
    partitions = batch.column(PARTITION)
    for partition in pc.unique(partitions).drop_null().to_pylist():
        yield partition, keys.filter(pc.equal(partitions, partition)).drop_null()


def _by_slice(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.StringArray]]:
    """The distinct keys of each slice, from pairs sorted by slice."""
    current: int | None = None
    gathered: list[pa.Array] = []
    for batch in batches:
        runs = pc.run_end_encode(batch.column("slice"))
        start = 0
        for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            if number != current and current is not None:
                yield current, distinct(pa.chunked_array(gathered, pa.string()))
                gathered = []
            current = number
            gathered.append(batch.column(KEY).slice(start, end - start))
            start = end
    if current is not None:
        yield current, distinct(pa.chunked_array(gathered, pa.string()))


def _unpacked(plan: bytes) -> SlicePlan:
    found: SlicePlan = pickle.loads(plan)  # noqa: S301 - packed by the driver, read from no table
    return found
