"""Tables with an index in HBase: every answer equals Spark's."""

from collections.abc import Sequence
from contextlib import closing

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dev.hbase import HBase
from hudi_index_service import Column, IndexedTable
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.hudi.spark import collected
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.sql import IndexSession
from tests.golden.table import Golden, GoldenTable
from tests.hbase.conftest import GOLDEN, Cells, Open, in_hbase
from tests.hudi_tables import read_rows
from tests.indexed import indexed
from tests.read.test_answers import PREDICATES
from tests.read.test_btree import RANGES
from tests.same_rows import assert_same_rows

WHERES = (*PREDICATES, *RANGES)


def agree_with_spark(table: IndexedTable, spark: SparkSession, wheres: Sequence[str]) -> None:
    """Checks that scan, count and exists give the same rows as plain Spark."""
    rows = read_rows(spark, table.uri)
    for where in wheres:
        agree(table, where, collected(rows.where(where).select("id")))


def agree_with_golden(table: IndexedTable, golden: GoldenTable) -> None:
    """Checks that for all of `WHERES`."""
    for where in WHERES:
        agree(table, where, golden.answer(where))


def agree(table: IndexedTable, where: str, expected: pa.Table) -> None:
    """Checks that scan, count and exists give these rows."""
    scan = table.scan(where, columns=["id"])
    found = scan.to_arrow().column("id").to_pylist()
    assert sorted(found) == sorted(expected.column("id").to_pylist()), where
    assert scan.count() == expected.num_rows, where
    assert scan.exists() == bool(expected.num_rows), where


@pytest.mark.parametrize("name", ["cow", "mor"])
def test_predicates_give_sparks_rows(name: str, open_copy: Open, golden: Golden) -> None:
    agree_with_golden(in_hbase(open_copy(name)), golden(GOLDEN[name]))


def test_composite_key_and_stored_values_give_sparks_rows(
    open_copy: Open, spark: SparkSession
) -> None:
    table = open_copy("cow")
    key = [Column(name=name, options={"key": "composite"}) for name in ("flag", "amount")]
    indexed(table, key, include=["id"], using="hbase")
    wheres = ["flag AND amount > 30", "NOT flag AND amount IN (3, 300)", "flag IS NULL"]
    agree_with_spark(table, spark, wheres)
    scan = table.scan(wheres[0], columns=["id", "amount"], use_index="require")
    scan.to_arrow()
    assert all(each.stored for each in scan.statistics.slices if each.pages)
    assert table.verify().problems == ()


def test_index_is_used_and_verifies(open_copy: Open, cells: Cells) -> None:
    table = in_hbase(open_copy("cow"))
    scan = table.scan("amount BETWEEN 30 AND 300", use_index="require")
    plan = scan.explain().plan
    assert plan is not None
    assert {each.access for each in plan.slices} == {Access.INDEX}
    assert scan.count() > 0
    read = scan.explain(analyze=True).actual
    assert read is not None
    assert read.notes == ()
    assert table.verify().problems == ()
    assert table.verify().entries == 3
    assert len(cells.all()) > 3


def test_rows_have_all_columns(open_copy: Open, spark: SparkSession) -> None:
    # Read pages, not whole files, even though the files are small.
    table = in_hbase(open_copy("cow", read=ReadSettings(scan_fraction=1)))
    where = "name = 'plain' AND amount > 100"
    expected = pa.Table.from_pandas(
        read_rows(spark, table.uri).where(where).select("id", "msg", "amount").toPandas()
    )
    found = table.scan(where, columns=["id", "msg", "amount"], use_index="require").to_arrow()
    assert found.num_rows > 0
    assert_same_rows(found, expected.cast(found.schema).replace_schema_metadata())


def test_tag_location(open_copy: Open, spark: SparkSession) -> None:
    table = open_copy("mor")
    keys = [str(number) for number in (*range(0, 600, 7), 9999)]
    expected = table.tag_location(keys)
    in_hbase(table, ["_hoodie_record_key"])

    assert_same_rows(table.tag_location(keys), expected)
    assert_same_rows(table.tag_location(keys, spark=spark), expected)
    by_key = table.scan("_hoodie_record_key IN ('7', '14')", query_type="read_optimized")
    assert sum(len(rows) for rows in by_key.row_ids().values()) == 2


def test_index_in_sql(open_copy: Open, spark: SparkSession, settings: Settings) -> None:
    path = open_copy("cow").uri
    enabled = spark.newSession()
    with closing(IndexSession(enabled, settings=settings)) as session:
        session.sql(f"CREATE INDEX by_name ON hudi.`{path}` USING hbase (name, amount)")
        session.sql(f"OPTIMIZE TABLE hudi.`{path}` STRATEGY ALL")
        (shown,) = session.sql(f"SHOW INDEXING hudi.`{path}`").collect()
        query = "SELECT count(*) FROM {t} WHERE name = 'plain' AND amount > 100"
        found = session.sql(query, t=read_rows(enabled, path)).collect()
        served = [each.by_index for each in session.relations]
    assert found == spark.sql(query, t=read_rows(spark, path)).collect()
    assert served == [True]
    assert shown["index_type"] == "hbase"


def test_index_in_a_namespace(hbase: HBase, open_copy: Open, settings: Settings) -> None:
    hbase.create_namespaces("of_tests")
    inside = settings.hbase.model_copy(update={"namespace": "of_tests"})
    table = in_hbase(open_copy("cow", hbase=inside), ["amount"])
    assert table.scan("amount = 300", use_index="require").count() == 1
    assert Cells(hbase, f"of_tests:{inside.table}").all() != {}
    assert Cells(hbase, inside.table).all() == {}
