"""Spark writes Hudi tables to a real HDFS, where hook, Spark builds and SQL work as elsewhere."""

from contextlib import closing

from pyspark.sql import SparkSession

from hudi_index_service import IndexedTable, IndexHook, open_table
from hudi_index_service.config import Settings
from hudi_index_service.hudi.spark import SparkHudiReader, collected
from hudi_index_service.sql import IndexSession
from hudi_index_service.storage.store import Storage
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, read_rows, write
from tests.same_rows import assert_same_rows

WHERES = ("msg = 'Buying car 3' AND amount > 9", "NOT (amount < 60)", "ts = 2")


def assert_sparks_answers(spark: SparkSession, table: IndexedTable) -> None:
    """Every answer of the index and of a scan is Spark's."""
    rows = SparkHudiReader(spark, table.uri).frame(table.schema().names).cache()
    for where in WHERES:
        expected = collected(rows.where(where))
        for use_index in ("auto", "never"):
            assert_same_rows(table.scan(where, use_index=use_index).to_arrow(), expected)
    rows.unpersist()


def test_commits_call_back_and_entries_are_built(
    spark: SparkSession, storage: Storage, settings: Settings
) -> None:
    options = hudi_options("hooked", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 40), storage.uri, options, "bulk_insert")
    table = open_table(storage.uri, settings=settings)
    table.create_index("by_all", ["msg", "amount", "ts"])
    clustering = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}

    with IndexHook([storage.uri], spark=spark, wait=120, settings=settings) as hook:
        for version in (1, 2):
            rows = numbered_rows(spark, 0, 20 * version, version)
            write(rows, storage.uri, options | clustering | hook.write_options(storage.uri))
            assert [status.covered for status in table.status()] == [2]
            assert_sparks_answers(spark, table)

    found = table.scan("amount > 30").to_spark(spark)
    assert sorted(each.id for each in found.collect()) == sorted(
        table.scan("amount > 30", use_index="never").to_arrow()["id"].to_pylist()
    )


def test_index_in_sql(spark: SparkSession, storage: Storage, settings: Settings) -> None:
    options = hudi_options("in_sql", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 200), storage.uri, options, "bulk_insert")
    enabled = spark.newSession()
    with closing(IndexSession(enabled, settings=settings)) as session:
        session.sql(f"CREATE INDEX by_all ON hudi.`{storage.uri}` USING btree (id, amount)")
        session.sql(f"OPTIMIZE TABLE hudi.`{storage.uri}` STRATEGY ALL")
        query = "SELECT count(*) FROM {t} WHERE amount IN (12, 30) AND id <> '4'"
        found = session.sql(query, t=read_rows(enabled, storage.uri)).collect()
        served = [each.by_index for each in session.relations]
    assert found == spark.sql(query, t=read_rows(spark, storage.uri)).collect()
    assert served == [True]
