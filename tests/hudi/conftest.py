"""Real tables for the tests of `hudi_index_service.hudi`, each written once for all tests."""

from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
import pytest

from hudi_index_service.config import Settings
from hudi_index_service.hudi import HudiTable, Snapshot, open_hudi_table
from hudi_index_service.hudi.snapshot import FileSlice
from hudi_index_service.hudi.spark import SparkHudiReader
from hudi_index_service.optimizer import decide
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.read.query import Binding
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.statistics import SliceStatistics
from tests.same_rows import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_all(table: HudiTable, snapshot: Snapshot, columns: list[str]) -> pa.Table:
    """All slices of the snapshot, merged, as one table. Slices of which only the log rows can be
    merged have the same rows then."""
    schema = pa.schema([table.schema().field(name) for name in columns])
    slices = []
    for each in snapshot.slices:
        batches = list(
            table.read_slice(each, columns, as_of=snapshot.instant, schema=table.schema())
        )
        slices.append(pa.Table.from_batches(batches, schema=schema))
        in_part = merged_in_part(table, snapshot, each, columns)
        if in_part is not None:
            assert_same_rows(in_part, slices[-1])
    return pa.concat_tables([schema.empty_table(), *slices])


def merged_in_part(
    table: HudiTable, snapshot: Snapshot, file_slice: FileSlice, columns: list[str]
) -> pa.Table | None:
    """The rows of a slice, of which only the log rows are merged; None if it has to be merged
    whole."""
    if not file_slice.log_files:
        return None
    query = Binding(None, columns, "UTC").to(snapshot.schema)
    pool = ReaderPool(table.storage, Settings())
    reader = SliceReader(table, query, snapshot.instant, pool, Settings())
    plan = SlicePlan(file_slice, Access.SCAN)
    statistics = SliceStatistics(file_slice.name, plan.access)
    with patch.object(decide, "MOST_TOUCHED", 100.0):
        log_rows = reader.log_rows.of(reader.log_slice(plan), statistics)
    if log_rows is None:
        assert statistics.note
        return None
    batches = [batch.select(columns) for batch in log_rows.batches]
    for row_ids, batch, _ in reader.candidates(plan, statistics):
        kept = [row not in log_rows.replaced for row in row_ids]
        batches.append(batch.filter(pa.array(kept)).select(columns))
    return pa.Table.from_batches(batches, pa.schema(list(query.output)))


@pytest.fixture
def check_against_spark(spark: "SparkSession"):
    """Opens a table, reads its slices in full and compares every cell with Spark's, and the
    slices with those of Hudi's own file system view."""

    def check(path: Path | str, as_of: str | None = None) -> Snapshot:
        table = open_hudi_table(str(path))
        snapshot = table.snapshot(as_of)
        columns = table.schema().names
        expected = SparkHudiReader(spark, path, as_of=as_of).read(columns)
        assert_same_rows(read_all(table, snapshot, columns), expected)
        slices = _sparks_slices(spark, path, as_of)
        if as_of is None:
            assert {s.name: {*s.log_files} for s in snapshot.slices} == slices
        else:  # Hudi's own have later log files, too, of which it reads no block
            assert {s.name for s in snapshot.slices} == slices.keys()
        return snapshot

    return check


def _sparks_slices(
    spark: "SparkSession", path: Path | str, as_of: str | None
) -> dict[str, set[str]]:
    """Base file → log files of each file slice in Hudi's own file system view."""
    jvm = spark._jvm
    assert jvm is not None
    configuration = jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(
        spark._jsc.hadoopConfiguration()
    )
    client = (
        jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        .setBasePath(str(path))
        .setConf(configuration)
        .build()
    )
    context = jvm.org.apache.hudi.common.engine.HoodieLocalEngineContext(configuration)
    view = jvm.org.apache.hudi.common.table.view.FileSystemViewManager.createInMemoryFileSystemView(
        context,
        client,
        jvm.org.apache.hudi.common.config.HoodieMetadataConfig.newBuilder().enable(False).build(),
    )
    timeline = client.getCommitsTimeline().filterCompletedInstants()
    last = as_of or timeline.lastInstant().get().requestedTime()
    view.loadAllPartitions()
    found = {}
    partitions = jvm.org.apache.hudi.common.fs.FSUtils.getAllPartitionPaths(context, client, False)
    for partition in partitions:
        folder = f"{partition}/" if partition else ""
        slices = view.getLatestMergedFileSlicesBeforeOrOn(partition, last).iterator()
        while slices.hasNext():
            file_slice = slices.next()
            logs = file_slice.getLogFiles().iterator()
            log_files = set()
            while logs.hasNext():
                name = logs.next().getFileName()
                if not name.endswith(".cdc"):  # changes, which no snapshot reads
                    log_files.add(folder + name)
            found[folder + file_slice.getBaseFile().get().getFileName()] = log_files
    return found
