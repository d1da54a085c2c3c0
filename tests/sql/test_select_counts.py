"""Counts and tests of existence are answered by the index alone where it is exact."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from hudi_index_service import open_table
from hudi_index_service.read.slices import value_counts
from hudi_index_service.sql import IndexSession, enable
from hudi_index_service.sql.rule import weighing
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTED = "the index counts its rows"


COUNTS = [
    "SELECT count(*) FROM {t} WHERE id = '3'",
    "SELECT count(1) FROM {t} WHERE ID IN ('1', '2') OR amount BETWEEN 30 AND 60",
    "SELECT count(*) + 1 AS x, count(msg) AS y, count(*) AS Z FROM {t} WHERE NOT id < '3'",
    "SELECT count(*) FROM {t}",
    "SELECT count(k) FROM {t}_view WHERE k < '3' AND dt = '2026-01-01'",
    "SELECT count(*) FROM {t} WHERE id = 'absent'",
    "SELECT count(id, msg) FROM {t} WHERE id < '3'",
    "SELECT msg, count(*) AS n FROM {t} GROUP BY msg",
    "SELECT upper(msg), count(*) AS n, count(id) FROM {t} WHERE amount < 100 GROUP BY msg "
    "HAVING count(*) > 3 ORDER BY n DESC, msg LIMIT 3",
    "SELECT k, count(k) FROM (SELECT msg AS k, id AS msg FROM {t}) WHERE msg < '3' GROUP BY k",
    "SELECT DISTINCT msg FROM {t} WHERE id < '3'",
    "SELECT msg, count(*) FROM {t} WHERE id = 'absent' GROUP BY msg",
    "SELECT 1 FROM {t} WHERE id < '3' LIMIT 1",
    "SELECT 'x' AS x FROM {t} WHERE id < '3' LIMIT 3",
    "SELECT 1 FROM {t} WHERE id = 'absent' LIMIT 3",
    "SELECT count(*) FROM (SELECT * FROM {t} WHERE id < '3' LIMIT 2)",
    "SELECT EXISTS (SELECT * FROM {t} WHERE id = '3') AS e",
    "SELECT EXISTS (SELECT * FROM {t} WHERE id = 'absent') AS e",
    "SELECT count(*) FROM (SELECT msg, count(*) AS n FROM {t} GROUP BY msg) WHERE n > 28",
]


@pytest.mark.parametrize(
    ("kind", "query"),
    [*(("cow", query) for query in COUNTS), *(("merged", query) for query in COUNTS[::3])],
)
def test_count_is_answered_by_the_index_alone(agreed, index_session, kind, query):
    assert agreed(query.format(t=kind)) == [True]
    (use,) = index_session.relations
    assert use.reason == COUNTED
    assert (use.read.pages, use.read.bytes_read) == (0, 0), "no page is read"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM cow WHERE upper(id) = '3' AND id < '5'",
        "SELECT count(*) FROM cow WHERE id < '3' AND ts = 0",
        "SELECT count(*), max(amount) FROM cow WHERE id < '3'",
        "SELECT count(DISTINCT msg) FROM cow WHERE id < '3'",
        "SELECT count(*) FILTER (WHERE msg = 'Buying car 3') FROM cow WHERE id < '3'",
        "SELECT ts, count(*) FROM cow WHERE id < '3' GROUP BY ts",
        "SELECT amount, count(*) FROM cow WHERE id < '3' GROUP BY amount",
        "SELECT msg, dt, count(*) FROM cow WHERE id < '3' GROUP BY msg, dt",
        "SELECT dt, count(*) FROM cow WHERE id < '3' GROUP BY ROLLUP (dt)",
        "SELECT count(twice) FROM cow_view WHERE k < '3'",
        "SELECT count(*) FROM (SELECT id FROM cow WHERE id < '3' ORDER BY id LIMIT 2)",
        "SELECT id FROM cow WHERE id < '3' ORDER BY id LIMIT 1",
    ],
)
def test_queries_that_need_more_than_a_count_read_rows(agreed, index_session, query):
    assert agreed(query) == [True]
    (use,) = index_session.relations
    assert use.reason.startswith("the index finds")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT input_file_name() FROM cow WHERE id = '3' LIMIT 1",
        "SELECT rand(3) FROM cow WHERE id = '3' LIMIT 1",
        "SELECT count(*), rand(3) AS x FROM cow WHERE id < '3'",
    ],
)
def test_queries_that_depend_on_the_reader_are_not_counted(agreed, index_session, query):
    assert agreed(query) == [False]


@pytest.fixture(scope="module")
def sparse(
    spark: "SparkSession", index_session: IndexSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A table whose word is NULL in every third row and empty in others; the second of its two
    partitions has no entry."""
    path = tmp_path_factory.mktemp("counts") / "sparse"
    number = F.col("amount") / 3
    word = F.when(number % 3 != 0, F.when(number % 2 == 0, "").otherwise("wörd"))
    worded = numbered_rows(spark, 0, 60).withColumn("word", word)
    options = hudi_options("sparse", partition_column="dt", **NO_METADATA_TABLE)
    write(worded.where("dt = '2026-01-01'"), path, options, "insert")
    with open_table(path) as table:
        table.create_index("i", ["word", "id"])
        table.build(strategy="all").raise_for_failures()
    write(worded.where("dt = '2026-01-02'"), path, options, "insert")
    spark.sql(f"CREATE TABLE sparse USING hudi LOCATION '{path}'")
    yield path
    spark.sql("DROP TABLE sparse")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT word, count(*), count(word) FROM sparse GROUP BY word",
        "SELECT word, count(*) FROM sparse WHERE id < '3' GROUP BY word",
        "SELECT DISTINCT word FROM sparse WHERE dt = '2026-01-01'",
        "SELECT count(*), count(word) FROM sparse",
        "SELECT count(*) FROM sparse WHERE word IS NULL",
        "SELECT count(*) FROM sparse WHERE word <=> NULL AND id > '2'",
        "SELECT dt, count(*) FROM sparse WHERE id < '3' GROUP BY dt",
    ],
)
def test_counts_with_null_and_with_slices_without_an_entry(agreed, index_session, sparse, query):
    assert agreed(query) == [True]
    assert index_session.relations[0].reason.startswith(COUNTED)


def test_group_by_a_column_of_many_values_reads_rows(
    spark, agreed, index_session, tables, monkeypatch
):
    monkeypatch.setattr(value_counts, "COUNTED_VALUES", 6)
    query = "SELECT msg, count(*) FROM cow WHERE id < '3' GROUP BY msg"
    assert agreed(query) == [True]
    assert index_session.relations[0].reason == "the index finds 123 rows"
    # The manifest only has an estimate. The decision before is forgotten.
    enable(spark)
    monkeypatch.setattr(weighing, "may_have_few_values", lambda plan, column: True)
    assert agreed(query) == [True]
    (use,) = index_session.relations
    assert use.reason == COUNTED
    assert use.read.rows_checked == use.read.rows_returned == 123


def test_damaged_entry_is_not_counted(spark, agreed, index_session, tables, tmp_path):
    path = tmp_path / "damaged"
    write(numbered_rows(spark, 0, 40), path, hudi_options("d", **NO_METADATA_TABLE), "insert")
    with open_table(path) as table:
        table.create_index("i", ["id", "msg"])
        table.build(strategy="all").raise_for_failures()
    for data in (path / ".hoodie" / ".index" / "lucene").rglob("*.pack"):
        data.write_bytes(bytes(data.stat().st_size))
    spark.sql(f"CREATE TABLE damaged USING hudi LOCATION '{path}'")
    assert agreed("SELECT msg, count(*) FROM damaged WHERE id < '3' GROUP BY msg") == [True]
    assert agreed("SELECT count(*) FROM damaged WHERE id < '3'") == [True]
    assert index_session.relations[0].read.rows_checked == 40
    spark.sql("DROP TABLE damaged")
