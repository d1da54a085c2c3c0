"""Some of the queries by DataFrames: the answers equal Spark's, by index."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from pyspark.sql import functions as F

from hudi_index_service.sql import last_queries
from tests.tpch.test_queries import each_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.tpch.conftest import Tpch

# The first test creates the tables.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


class Tables(NamedTuple):
    """The tables that the frames below read."""

    lineitem: "DataFrame"
    orders: "DataFrame"
    customer: "DataFrame"
    part: "DataFrame"


def q3(t: Tables) -> "DataFrame":
    day = date(1995, 3, 15)
    customers = t.customer.where(F.col("c_mktsegment") == "BUILDING")
    orders = t.orders.where(F.col("o_orderdate") < F.lit(day))
    return (
        customers.join(orders, F.col("c_custkey") == F.col("o_custkey"))
        .join(t.lineitem, F.col("l_orderkey") == F.col("o_orderkey"))
        .where(F.col("l_shipdate") > F.lit(day))
        .groupBy("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(F.sum(F.expr("l_extendedprice * (1 - l_discount)")).alias("revenue"))
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .orderBy(F.desc("revenue"), "o_orderdate")
        .limit(10)
    )


def q6(t: Tables) -> "DataFrame":
    return (
        t.lineitem.where(F.col("l_shipdate") >= F.lit(date(1994, 1, 1)))
        .where(F.col("l_shipdate") < F.lit(date(1995, 1, 1)))
        .where(F.expr("l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01"))
        .where(F.col("l_quantity") < 24)
        .agg(F.sum(F.expr("l_extendedprice * l_discount")).alias("revenue"))
    )


def q14(t: Tables) -> "DataFrame":
    promotion = "CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END"
    lines = t.lineitem.where(F.col("l_shipdate").between(date(1995, 9, 1), date(1995, 9, 30)))
    return lines.join(t.part, F.col("l_partkey") == F.col("p_partkey")).agg(
        F.expr(f"100.00 * sum({promotion}) / sum(l_extendedprice * (1 - l_discount))").alias(
            "promo_revenue"
        )
    )


def a_day_of_shipping(t: Tables) -> "DataFrame":
    return (
        t.lineitem.filter(t.lineitem.l_shipdate == F.lit(date(1994, 6, 5)))
        .groupBy("l_shipmode")
        .agg(
            F.count("*").alias("parts"),
            F.sum("l_quantity").alias("quantity"),
            F.avg("l_discount").alias("discount"),
        )
        .orderBy("l_shipmode")
    )


def buyers_of_a_part(t: Tables) -> "DataFrame":
    bought = t.lineitem.where("l_partkey = 1552 AND l_shipmode <> 'RAIL'")
    return (
        bought.join(t.orders, F.col("l_orderkey") == F.col("o_orderkey"))
        .join(t.customer, F.col("o_custkey") == F.col("c_custkey"))
        .groupBy("c_name")
        .agg(F.sum("l_quantity").alias("quantity"))
        .orderBy(F.desc("quantity"), "c_name")
    )


def orders_shipped_early(t: Tables) -> "DataFrame":
    late = t.lineitem.where(F.col("l_shipdate") >= F.lit(date(1996, 1, 1)))
    return (
        t.orders.where(F.col("o_custkey").isin(370, 781, 1234))
        .join(late, F.col("l_orderkey") == F.col("o_orderkey"), "left_anti")
        .select("o_orderkey", "o_custkey")
        .orderBy("o_orderkey")
    )


SELECTIVE = {
    "a_day_of_shipping": (a_day_of_shipping, ["lineitem"]),
    "buyers_of_a_part": (buyers_of_a_part, ["lineitem", "orders"]),
    "orders_shipped_early": (orders_shipped_early, ["lineitem", "orders"]),
    "q3": (q3, []),
    "q6": (q6, []),
    "q14": (q14, []),
}


@pytest.mark.parametrize("name", SELECTIVE)
def test_data_frames(tpch: "Tpch", name: str) -> None:
    enabled = tpch.session.spark
    frame, by_index = SELECTIVE[name]
    [query] = [each for each in _QUERIES if each.stem == name]

    found = _frame(frame, enabled)

    expected = tpch.plain(query)
    assert found.schema == expected.schema
    assert list(map(repr, found.collect())) == expected.rows
    assert [each for each in by_index if each not in _tables_by_index(enabled)] == []


_QUERIES: list[Path] = list(each_query.args[1])


def _frame(frame: "Callable[[Tables], DataFrame]", spark: "SparkSession") -> "DataFrame":
    return frame(Tables(*(spark.table(name) for name in Tables._fields)))


def _tables_by_index(spark: "SparkSession") -> list[str]:
    """The tables of the last query that were read by index, one for each occurrence."""
    uses = [each for each in last_queries(spark)[-1] if each.by_index]
    return sorted(each.table.rpartition("/")[2] for each in uses)
