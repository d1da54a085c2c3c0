"""The capability gate: ordinary tables pass, unknown features are refused."""

import pytest
from pyspark.sql import functions as F

from hudi_index_service import open_table
from hudi_index_service.errors import TableFeatureUnsupported
from hudi_index_service.hudi import open_hudi_table
from hudi_index_service.hudi.gate import (
    ORDERING,
    unsupported_base_files,
    unsupported_merge,
)
from hudi_index_service.hudi.spark import SparkHudiReader
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write
from tests.indexed import indexed
from tests.same_rows import assert_same_rows

# hoodie.properties as Hudi 1.2.0 writes it.
TABLE = {
    "hoodie.archivelog.folder": "history",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.populate.meta.fields": "true",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.table.cdc.enabled": "false",
    "hoodie.table.checksum": "2110273562",
    "hoodie.table.format": "native",
    "hoodie.table.index.defs.path": ".hoodie/.index_defs/index.json",
    "hoodie.table.initial.version": "9",
    "hoodie.table.keygenerator.type": "SIMPLE",
    "hoodie.table.metadata.partitions.inflight": "",
    "hoodie.table.metadata.partitions": "column_stats,files,partition_stats",
    "hoodie.table.multiple.base.file.formats.enable": "false",
    "hoodie.table.name": "mor",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.table.partition.fields": "dt",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.timeline.timezone": "LOCAL",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "9",
    "hoodie.timeline.history.path": "history",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
}
COPY_ON_WRITE = {"hoodie.table.type": "COPY_ON_WRITE"}
VERSION_6 = {
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
}


def unsupported_feature(properties):
    return unsupported_base_files(properties) or unsupported_merge(properties)


@pytest.mark.parametrize("changes", [{}, COPY_ON_WRITE, VERSION_6, {"owner": "analytics"}])
def test_ordinary_tables_pass(changes):
    assert unsupported_feature({**TABLE, **changes}) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.bootstrap.base.path", "/data/old"),
        ("hoodie.datasource.write.drop.partition.columns", "true"),
        ("hoodie.table.base.file.format", "ORC"),
        ("hoodie.table.format", "iceberg"),
        ("hoodie.table.keygenerator.type", "TIMESTAMP"),
        ("hoodie.table.keygenerator.class", "com.example.MyKeys"),
        ("hoodie.table.multiple.base.file.formats.enable", "true"),
        ("hoodie.table.type", "SOMETHING_NEW"),
        ("hoodie.table.version", "10"),
        ("hoodie.timeline.layout.version", "1"),
        ("hoodie.timeline.path", "elsewhere"),
        ("hoodie.table.some.feature.of.tomorrow", "true"),
    ],
)
def test_unknown_feature_is_refused_by_name(key, value):
    for table_type in ({}, COPY_ON_WRITE):
        reason = unsupported_feature({**TABLE, **table_type, key: value})
        assert reason is not None
        assert reason == unsupported_base_files({**TABLE, **table_type, key: value})
        assert f"{key}={value}" in reason


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.record.merge.mode", "CUSTOM"),
        ("hoodie.record.merge.strategy.id", "00000000-0000-0000-0000-000000000000"),
        ("hoodie.compaction.payload.class", "com.example.MyPayload"),
        (
            "hoodie.table.legacy.payload.class",
            "org.apache.hudi.common.model.PartialUpdateAvroPayload",
        ),
        ("hoodie.table.partial.update.mode", "IGNORE_DEFAULTS"),
        ("hoodie.record.merge.property.hoodie.payload.delete.field", "Op"),
        ("hoodie.table.ordering.fields", "ts,id"),
        ("hoodie.table.precombine.field", "ts,id"),
    ],
)
def test_merge_properties_matter_only_for_log_files(key, value):
    reason = unsupported_feature({**TABLE, key: value})
    assert reason is not None
    assert f"{key}={value}" in reason
    assert unsupported_feature({**TABLE, **COPY_ON_WRITE, key: value}) is None
    assert unsupported_base_files({**TABLE, key: value}) is None


@pytest.mark.parametrize("key", ORDERING)
def test_several_ordering_columns_matter_only_for_log_files(golden, tmp_path, key):
    written, merged = golden("sixty_rows"), golden("inserted_and_compacted")
    on_write = order_by(written.put(tmp_path / "cow"), key, "ts,id")
    table = open_table(on_write)
    assert_same_rows(table.scan().to_arrow(), written.rows())
    indexed(table, ["id"])
    (some,) = written.rows().slice(7, 1).to_pylist()
    found = table.scan(f"id = '{some['id']}'", use_index="require").to_arrow().to_pylist()
    assert found == [some]

    on_read = open_table(order_by(merged.put(tmp_path / "mor"), key, "ts,id"))
    with pytest.raises(TableFeatureUnsupported, match=f"{key}=ts,id"):
        on_read.scan().to_arrow()
    assert on_read.scan(query_type="read_optimized").to_arrow().num_rows > 0


def order_by(table, key, columns):
    """Gives the table these ordering columns, as a writer would have; its rows stay."""
    file = table / ".hoodie" / "hoodie.properties"
    lines = file.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(ORDERING)]
    file.write_text("\n".join([*kept, f"{key}={columns}\n"]))
    return table


def test_spark_reads_two_ordering_columns_alike(spark, tmp_path):
    options = hudi_options("t", ordering_column="ts,amount", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 20), tmp_path, options)
    write(numbered_rows(spark, 15, 20, version=1), tmp_path, options)
    columns = ["id", "amount", "ts"]
    by_spark = SparkHudiReader(spark, tmp_path).read(columns)
    assert "ts,amount" in (tmp_path / ".hoodie" / "hoodie.properties").read_text()
    assert_same_rows(open_table(tmp_path).scan(columns=columns).to_arrow(), by_spark)


def assert_refused_but_readable_by_spark(spark, path, reason, rows):
    table = open_hudi_table(path)
    assert reason in table.unsupported_feature()
    with pytest.raises(TableFeatureUnsupported, match=reason.replace(".", r"\.")) as refusal:
        table.snapshot()
    assert "spark=" in refusal.value.remedy
    # The schema and the instants can still be read, and Spark reads the rows.
    assert "amount" in table.schema().names
    assert table.completed_instants()
    assert SparkHudiReader(spark, path).read(["id", "amount"]).num_rows == rows


def test_dropped_partition_columns_are_refused(spark, tmp_path):
    options = hudi_options(
        "t",
        partition_column="dt",
        **NO_METADATA_TABLE,
        **{
            "hoodie.datasource.write.drop.partition.columns": "true",
            "hoodie.datasource.write.hive_style_partitioning": "true",
        },
    )
    write(numbered_rows(spark, 0, 20), tmp_path, options)
    assert_refused_but_readable_by_spark(spark, tmp_path, "drop.partition.columns=true", 20)


def test_partial_updates_are_refused_unless_read_optimized(spark, tmp_path):
    payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    options = hudi_options(
        "t",
        "MERGE_ON_READ",
        **NO_METADATA_TABLE,
        **{"hoodie.datasource.write.payload.class": payload},
    )
    write(numbered_rows(spark, 0, 20), tmp_path, options)
    assert_refused_but_readable_by_spark(spark, tmp_path, f"legacy.payload.class={payload}", 20)
    # A read-optimized query merges no log files.
    write(numbered_rows(spark, 15, 20, version=1), tmp_path, options)
    assert list(tmp_path.glob("**/.*.log.*"))
    columns, table = ["id", "amount", "ts"], open_table(tmp_path)
    rows = table.scan("amount > 30", columns=columns, query_type="read_optimized").to_arrow()
    by_spark = SparkHudiReader(spark, tmp_path, query_type="read_optimized")
    assert_same_rows(rows, by_spark.read(columns, "amount > 30"))
    assert set(rows["ts"].to_pylist()) == {0}
    with pytest.raises(TableFeatureUnsupported, match="legacy"):
        table.scan("amount > 30").to_arrow()
    whole = open_table(tmp_path, spark=spark).scan("amount > 30", columns=columns).to_arrow()
    assert set(whole["ts"].to_pylist()) == {0, 1}


def test_metadata_only_bootstrap_is_refused(spark, tmp_path):
    nullable = [
        F.when(F.lit(True), F.col(name)).alias(name) for name in numbered_rows(spark, 0, 1).columns
    ]
    rows = numbered_rows(spark, 0, 20).select(*nullable)
    rows.write.partitionBy("dt").parquet(str(tmp_path / "source"))
    options = hudi_options(
        "t",
        partition_column="dt",
        **{
            "hoodie.bootstrap.base.path": str(tmp_path / "source"),
            "hoodie.bootstrap.mode.selector": (
                "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector"
            ),
            "hoodie.bootstrap.keygen.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
            "hoodie.datasource.write.hive_style_partitioning": "true",
        },
    )
    empty = spark.createDataFrame([], rows.schema)
    write(empty, tmp_path / "table", options, "bootstrap", "overwrite")
    assert_refused_but_readable_by_spark(
        spark, tmp_path / "table", f"hoodie.bootstrap.base.path={tmp_path / 'source'}", 20
    )
