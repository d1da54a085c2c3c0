"""Sub-queries that Spark's optimizer leaves as expressions are read through the index too."""

import pytest

from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, numbered_rows, write


@pytest.mark.parametrize(
    ("query", "by_index"),
    [
        (
            "SELECT id FROM {t} WHERE amount = (SELECT max(amount) FROM {t} WHERE id < '5') "
            "AND id > '1'",
            [True, True],
        ),
        # One nested in another, and beside it one without anything to look up.
        (
            "SELECT id FROM {t} WHERE msg = 'Buying car 3' AND id > (SELECT min(id) FROM {t} "
            "WHERE id < '3' AND amount > (SELECT min(amount) FROM {t} WHERE id > '7')) "
            "AND amount < (SELECT max(amount) FROM {t})",
            [True, True, True, False],
        ),
        # The optimizer merges the two into one query.
        (
            "SELECT id, (SELECT max(amount) FROM {t} WHERE id = '3') AS a, "
            "(SELECT min(ts) FROM {t} WHERE id = '3') AS b FROM {t} WHERE id < '11'",
            [True, True, True],
        ),
        ("SELECT (SELECT msg FROM {t} WHERE id = '3') AS m, (SELECT 7) AS n", [True]),
        (
            "SELECT id, CASE WHEN id IN (SELECT id FROM {t} WHERE amount < 9) THEN 1 END AS n "
            "FROM {t} WHERE id < '11'",
            [True, True],
        ),
        (
            "SELECT dt, count(*) FROM {t} WHERE id < '11' GROUP BY dt "
            "HAVING count(*) > (SELECT max(ts) FROM {t} WHERE id = '1')",
            [True, True],
        ),
        (
            "SELECT a.id, (SELECT max(b.amount) FROM {t} b WHERE b.id = a.id AND b.amount < 9) "
            "FROM {t} a WHERE a.id < '11'",
            [True, True],
        ),
        # It becomes a side of a join, after Spark has optimized it by itself.
        (
            "SELECT a.id FROM {t} a JOIN {t} c ON a.id = c.id AND c.msg = 'Buying car 3' WHERE "
            "a.amount > (SELECT 0.2 * avg(b.amount) FROM {t} b WHERE b.id = c.id AND b.id < '5')",
            [True, True, True],
        ),
    ],
)
def test_sub_queries_are_read_through_the_index(agreed, query, by_index):
    assert agreed(query.format(t="merged")) == by_index


def test_partition_pruning_sub_query_is_counted_once(agreed):
    """Spark turns the plan of the small side into a sub-query in the large side's filter."""
    query = "SELECT p.id, c.id FROM partitioned p JOIN cow c ON p.dt = c.dt WHERE c.id = '3'"
    assert agreed(query)[-1:] == [True]


def test_sub_query_reads_the_snapshot_of_the_query(spark, agreed, index_session, tmp_path):
    path = tmp_path / "growing"
    options = hudi_options("cow", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 40), path, options, "insert")
    index_session.sql(f"CREATE INDEX i ON '{path}' USING lucene (id)")
    index_session.sql(f"OPTIMIZE TABLE '{path}' STRATEGY ALL")
    spark.sql(f"CREATE TABLE growing USING hudi LOCATION '{path}'")
    query = (
        "SELECT id, (SELECT max(amount) FROM growing WHERE id < '2') AS m FROM growing "
        "WHERE id IN ('1', '40')"
    )
    assert agreed(query) == [True, True]
    # Spark caches a table's metadata by name: later writes are not seen.
    write(numbered_rows(spark, 0, 41, 1), path, options)
    assert agreed(query) == [True, True]
    assert len({use.instant for use in index_session.relations}) == 1
    assert [row.id for row in index_session.sql(query).collect()] == ["1"]
    spark.sql("DROP TABLE growing")
