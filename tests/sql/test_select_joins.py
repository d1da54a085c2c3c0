"""Join keys found on one side are looked up on the other."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import open_table
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW = "(SELECT * FROM cow WHERE id IN ('3', '4'))"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, b.* FROM {few} a JOIN {t} b ON a.amount = b.amount",
        "SELECT a.id, b.id FROM {t} b JOIN {few} a ON a.id = b.id AND a.msg = b.msg AND b.ts < 9",
        "SELECT a.id, b.id FROM {few} a LEFT JOIN {t} b ON a.amount = b.amount",
        "SELECT a.id, b.id FROM {t} b RIGHT JOIN {few} a ON a.amount = b.amount",
        "SELECT id FROM {t} WHERE amount IN (SELECT amount FROM {few})",
        "SELECT id FROM {few} a WHERE EXISTS (SELECT 1 FROM {t} b WHERE b.amount = a.amount)",
        "SELECT id FROM {few} a WHERE NOT EXISTS "
        "(SELECT 1 FROM {t} b WHERE a.amount = b.amount AND a.msg <> b.msg)",
        "SELECT id, a.msg = 'x' OR amount IN (SELECT amount FROM {t}) AS f FROM {few} a",
        "SELECT a.id, b.n FROM {few} a JOIN "
        "(SELECT amount, count(*) AS n, max(id) FROM {t} GROUP BY amount) b "
        "ON a.amount = b.amount",
        "SELECT a.k, b.id FROM (SELECT amount AS k FROM {few} ORDER BY id LIMIT 1) a "
        "JOIN (SELECT amount AS l, id FROM {t}) b ON k = l",
        "SELECT a.id, b.id FROM {few} a JOIN merged b ON a.amount <=> b.amount",
    ],
)
def test_other_side_of_a_join_is_looked_up_by_keys(agreed, index_session, query):
    assert agreed(query.format(t="merged", few=FEW)) == [True, True]
    looked_up = [use for use in index_session.relations if use.table.endswith("merged")]
    assert " IN (" in looked_up[0].where
    # In the merged table, one base file has an entry.
    assert looked_up[0].rows <= 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, b.id FROM partitioned b LEFT JOIN {few} a ON a.amount = b.amount",
        "SELECT a.id, b.id FROM {few} a RIGHT JOIN partitioned b ON a.amount = b.amount",
        "SELECT a.id, b.id FROM {few} a FULL JOIN partitioned b ON a.amount = b.amount",
        "SELECT id FROM partitioned b WHERE NOT EXISTS "
        "(SELECT 1 FROM {few} a WHERE a.amount = b.amount)",
        "SELECT id FROM {few} WHERE amount NOT IN (SELECT amount FROM partitioned)",
        "SELECT a.id, b.id FROM {few} a JOIN partitioned b ON a.amount = b.amount OR b.id = '7'",
        "SELECT a.id, b.id FROM {few} a JOIN partitioned b ON a.amount = b.amount + 1",
        # A row of the other side depends on the rows beside it.
        "SELECT a.id, b.n FROM {few} a JOIN "
        "(SELECT amount, row_number() OVER (ORDER BY amount) AS n FROM partitioned) b "
        "ON a.amount = b.amount",
        "SELECT a.id, b.id FROM {few} a JOIN "
        "(SELECT * FROM partitioned ORDER BY amount LIMIT 5) b ON a.amount = b.amount",
        "SELECT a.id, b.n FROM {few} a JOIN "
        "(SELECT max(amount) AS amount, count(*) AS n FROM partitioned GROUP BY ts) b "
        "ON a.amount = b.amount",
        # The union contains values of both sides.
        "SELECT a.id, b.id FROM (SELECT amount, id FROM {few} UNION ALL "
        "SELECT amount, id FROM partitioned) a JOIN partitioned b ON a.amount = b.amount",
    ],
)
def test_joins_in_which_a_look_up_would_miss_rows(agreed, index_session, query):
    agreed(query.format(few=FEW))
    for use in index_session.relations:
        assert use.by_index == use.table.endswith("cow")


def test_keys_are_passed_from_join_to_join(agreed, index_session):
    """The rows of the first join have the keys of the second."""
    query = (
        "SELECT a.id, b.id, c.msg FROM merged c JOIN partitioned b ON b.id = c.id "
        "JOIN cow a ON a.amount = b.amount WHERE a.id IN ('3', '4')"
    )
    assert agreed(query) == [True, True, True]


def test_cte_evaluated_once_is_left_to_spark(agreed, index_session):
    """Spark evaluates such a CTE once, so its random numbers are the same in both places."""
    query = (
        "WITH r AS (SELECT id, amount, rand() AS x FROM partitioned) "
        "SELECT a.id, b.id FROM {few} a JOIN r b ON a.amount = b.amount JOIN r c ON b.x = c.x"
    )
    assert agreed(query.format(few=FEW)) == [True, False]
    assert len(index_session.sql(query.format(few=FEW)).collect()) == 2


def test_keys_given_as_values_in_the_query(agreed):
    keys = "(VALUES ('3'), ('4'), (NULL), ('absent')) AS k(id)"
    query = "SELECT k.id, t.msg FROM {keys} JOIN partitioned t ON k.id = t.id"
    assert agreed(query.format(keys=keys)) == [True]
    days = "(VALUES (TIMESTAMP'2026-01-01 00:00:00')) AS k(at)"
    query = "SELECT 1 FROM {days} JOIN (SELECT timestamp(dt) AS at FROM cow) t ON k.at = t.at"
    assert agreed(query.format(days=days)) == [False]


def test_no_key(agreed):
    absent = "(SELECT * FROM cow WHERE id = 'absent')"
    query = "SELECT a.id, b.id FROM {few} a LEFT JOIN partitioned b ON a.amount = b.amount"
    assert agreed(query.format(few=absent)) == [True, True]


@pytest.mark.usefixtures("tables")
def test_keys_are_known_before_tasks_are_chosen(agreed, index_session, costs):
    """Tasks would read the relation, but few rows remain once the keys are known."""
    costs(spark_scan_ms=1e12, handing_ms=0.1, handed_row_ms=100, tasks_ms=800, task_slice_ms=0.1)
    query = "SELECT a.id, b.id FROM {few} a JOIN {t} b ON a.amount = b.amount WHERE b.id > '1'"
    assert agreed(query.format(few=FEW, t="partitioned")) == [True, True]
    assert [use.in_tasks for use in index_session.relations] == [False, False]
    query = "SELECT a.id, b.id FROM {few} a JOIN {t} b ON a.amount < b.amount WHERE b.id > '7'"
    assert agreed(query.format(few=FEW, t="partitioned")) == [True, True]
    assert [use.in_tasks for use in index_session.relations] == [False, True]


@pytest.fixture(scope="module")
def typed(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("joins") / "typed"
    values = spark.sql(
        "SELECT string(id) AS id, int(id) AS n, double(id % 5) AS d, "
        "cast(id % 7 AS decimal(12, 2)) AS price, date_add(DATE'1500-02-03', int(id % 11)) AS day, "
        "timestamp_micros(id % 13 - 6000000000000000) AS at, "
        "cast(timestamp_micros(id % 9) AS timestamp_ntz) AS wall, "
        "if(id % 3 = 0, NULL, concat('ж \\' ', id % 17, '\\\\')) AS name FROM range(60)"
    )
    write(values, path, hudi_options("typed", ordering_column=None, **NO_METADATA_TABLE), "insert")
    with open_table(path) as table:
        table.create_index("i", ["id", "n", "d", "price", "day", "at", "wall", "name"])
        table.build(strategy="all").raise_for_failures()
    spark.sql(f"CREATE TABLE typed USING hudi LOCATION '{path}'")
    yield path
    spark.sql("DROP TABLE typed")


@pytest.mark.parametrize(
    ("column", "by_keys"),
    [
        *(("n", True), ("price", True), ("day", True), ("at", True), ("name", True)),
        *(("d", False), ("wall", False)),
    ],
)
def test_key_types(agreed, typed, column, by_keys):
    query = (
        "SELECT a.id, a.{c}, b.id FROM typed a JOIN typed b ON a.{c} = b.{c} "
        "WHERE a.id IN ('1', '3')"
    )
    assert agreed(query.format(c=column)) == [True, by_keys]


def test_values_that_python_cannot_hold_beside_the_keys(agreed):
    """Python has no dates before the year 1."""
    keys = "(VALUES ('3', DATE'-0005-01-01'), ('4', NULL)) AS k(id, day)"
    query = "SELECT k.id, k.day IS NULL AS n, t.msg FROM {keys} JOIN partitioned t ON k.id = t.id"
    assert agreed(query.format(keys=keys)) == [True]
