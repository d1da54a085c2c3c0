"""Statements that write, and frames that are held across a write, see what they would see without
the rule."""

# ruff: noqa: S608 - the queries are the test's own

from itertools import count

import pytest
from pyspark.sql import functions as F

from hudi_index_service.sql import last_queries
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.spark_rule.conftest import by_index, rows, rows_of, write_indexed

_numbers = count(1)


@pytest.fixture
def twins(spark, tmp_path):
    """The names of two equal indexed tables, the first for the session with the rule. They are new
    ones, since a session goes on to know a table that another one has dropped."""
    number = next(_numbers)
    names = f"with_rule_{number}", f"without_rule_{number}"
    for name in names:
        write_indexed(spark, tmp_path / name, f"{name}_cow", count=60)
        spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{tmp_path / name}'")
    yield names
    for name in names:
        spark.sql(f"DROP TABLE {name}")


_SOURCE = "(SELECT * FROM rule_cow WHERE amount BETWEEN 30 AND 60)"
_STATEMENTS = [
    "UPDATE {t} SET msg = 'changed', ts = 9 WHERE id = '3' OR amount < 6",
    "DELETE FROM {t} WHERE id IN ('4', '5')",
    f"MERGE INTO {{t}} t USING {_SOURCE} s ON t.id = s.id "
    "WHEN MATCHED AND s.amount > 40 THEN UPDATE SET msg = concat(s.msg, '!'), ts = s.ts + 1 "
    "WHEN MATCHED THEN DELETE",
    "INSERT INTO {t} SELECT concat('n', id) AS id, msg, amount, age, price, score, day, at, flag, "
    "place, tags, ts, dt FROM rule_cow WHERE amount < 9",
]


def test_update_delete_merge_and_insert(spark, enabled, tables, twins, tmp_path):
    mine, other = twins
    columns = [each for each in spark.table("rule_cow").columns if not each.startswith("_hoodie")]
    for statement in _STATEMENTS:
        enabled.sql(statement.format(t=mine))
        spark.sql(statement.format(t=other))
        # By path: a session does not see at once what another one writes to a table.
        found, plain = (
            spark.read.format("hudi").load(str(tmp_path / each)).select(columns) for each in twins
        )
        assert rows_of(found) == rows_of(plain), statement
        after = enabled.table(mine).select(columns).where("amount < 30")
        assert rows_of(after) == rows_of(plain.where("amount < 30"))
    used = [use for query in last_queries(enabled) for use in query if use.by_index]
    assert any(use.table.endswith("rule_cow") for use in used)


def test_created_and_inserted_tables(spark, enabled, tables, tmp_path):
    query = "SELECT id, msg, price FROM rule_cow WHERE amount < 30"
    expected = rows_of(spark.sql(query))
    enabled.sql(f"CREATE TABLE few_rows USING parquet LOCATION '{tmp_path / 'few'}' AS {query}")
    assert any(any(by_index(each)) for each in last_queries(enabled)[-2:])
    assert rows_of(spark.read.parquet(str(tmp_path / "few"))) == expected
    enabled.sql(f"INSERT OVERWRITE few_rows {query}")
    assert rows_of(spark.read.parquet(str(tmp_path / "few"))) == expected
    enabled.sql(query).write.mode("overwrite").parquet(str(tmp_path / "files"))
    assert rows_of(spark.read.parquet(str(tmp_path / "files"))) == expected
    enabled.sql(query).write.format("noop").mode("overwrite").save()
    assert by_index(last_queries(enabled)[-1]) == [True]
    spark.sql("DROP TABLE few_rows")


def test_frames_held_across_a_write_of_the_session(spark, enabled, twins):
    """Each is planned before the write; one has also run."""

    def held(session, name):
        table = session.table(name)
        frames = [table.where("amount < 30").select("id", "msg") for _ in range(3)]
        frames[0].collect()
        frames[1]._jdf.queryExecution().executedPlan()
        return frames

    both = list(zip((enabled, spark), twins, strict=True))
    mine, plain = (held(session, name) for session, name in both)
    for session, name in both:
        session.sql(f"UPDATE {name} SET msg = 'changed', ts = 9 WHERE id = '3'")
        session.sql(f"DELETE FROM {name} WHERE id = '4'")
    assert [rows_of(each) for each in mine] == [rows_of(each) for each in plain]
    [use] = [use for use in last_queries(enabled)[-1] if use.table.endswith(twins[0])]
    assert not use.by_index  # no entry for the new file yet


def test_frames_held_across_a_write_of_another_session(spark, enabled, tmp_path):
    path = tmp_path / "written"
    write_indexed(spark, path, "written_cow", count=60)

    def frames(session):
        table = session.read.format("hudi").load(str(path))
        return [table.where("amount < 30").select("id", "msg") for _ in range(2)]

    mine, plain = frames(enabled), frames(spark)
    for each in (mine, plain):
        each[0]._jdf.queryExecution().executedPlan()
    write(rows(spark, 3, 4, 1), path, hudi_options("written_cow", **NO_METADATA_TABLE))
    assert [rows_of(each) for each in mine] == [rows_of(each) for each in plain]
    assert rows_of(frames(enabled)[0]) == rows_of(frames(spark)[0])


def test_cached_frames(spark, enabled, twins):
    """Spark computes a cached frame again after a write to its table by the session."""

    def cached(session, name):
        frame = session.table(name).where("amount < 30").select("id", "msg").cache()
        return frame, frame.groupBy("msg").agg(F.count("id").alias("n"))

    sessions = list(zip((enabled, spark), twins, strict=True))
    both = [cached(session, name) for session, name in sessions]
    first = [rows_of(counted) for _, counted in both]
    assert first[0] == first[1]
    assert any(any(by_index(each)) for each in last_queries(enabled))
    for session, name in sessions:
        session.sql(f"UPDATE {name} SET msg = 'changed', ts = 9 WHERE id = '3'")
    second = [rows_of(frame) for frame, _ in both]
    assert second[0] == second[1]
    for frame, _ in both:
        frame.unpersist()
