"""Statements that write, and frames that are held across a write, see what they would see without
the rule."""

# ruff: noqa: S608 - the queries are the test's own

import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from pyspark.sql import functions as F

from hudi_index_service.sql import last_queries
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, timeline_folder, write
from tests.indexed import indexed
from tests.spark_rule import needs
from tests.spark_rule.conftest import KINDS, build, by_index, rows, rows_of

_numbers = count(1)


_OTHERS = "amount, age, price, score, day, at, flag, place, tags"
_ROW = f"msg, {_OTHERS}, ts, dt"
_SOURCE = "(SELECT * FROM rule_cow WHERE amount BETWEEN 30 AND 60)"
_OF_SOME_COLUMNS = (
    f"MERGE INTO {{t}} t USING {_SOURCE} s ON t.id = s.id "
    "WHEN MATCHED AND s.amount > 40 THEN UPDATE SET msg = concat(s.msg, '!'), ts = s.ts + 1 "
    "WHEN MATCHED THEN DELETE"
)
_STATEMENTS = {
    "UPDATE {t} SET msg = 'changed', ts = 9 WHERE id = '3' OR amount < 6": {"target": True},
    "UPDATE {t} SET msg = concat(msg, '?'), ts = 10 WHERE amount BETWEEN 60 AND 90 AND id IN "
    "(SELECT id FROM rule_cow WHERE amount BETWEEN 70 AND 120)": {"target": True, "source": True},
    "DELETE FROM {t} WHERE id IN ('4', '5', '6')": {"target": True},
    "DELETE FROM {t} WHERE upper(msg) = 'CHANGED'": {"target": False},
    # Hudi's writer looks for the target's rows itself.
    _OF_SOME_COLUMNS: {"source": True},
    f"MERGE INTO {{t}} t USING (SELECT id, concat(msg, '?') AS msg, {_OTHERS}, ts + 2 AS ts, dt "
    "FROM rule_cow WHERE amount BETWEEN 60 AND 120) s ON t.id = s.id "
    "WHEN MATCHED AND s.amount > 70 THEN UPDATE SET * WHEN MATCHED THEN DELETE": {"source": True},
    "MERGE INTO {t} t USING (SELECT * FROM rule_cow WHERE amount < 30) s ON t.id = s.id "
    "WHEN NOT MATCHED THEN INSERT *": {"source": True},
    f"INSERT INTO {{t}} SELECT concat('n', id) AS id, {_ROW} FROM rule_cow WHERE amount < 9": {
        "source": True
    },
    f"INSERT INTO {{t}} SELECT concat('m', id) AS id, {_ROW} FROM {{t}} WHERE id IN ('7', '8')": {
        "target": True
    },
    f"INSERT OVERWRITE {{t}} SELECT id, {_ROW} FROM rule_cow WHERE amount < 60": {"source": True},
}


@pytest.fixture
def copies(spark, tables, tmp_path):
    """Two copies of a shared table, down to the names of its files: the first for the session with
    the rule. Their names are new, since a session goes on to know a table that another one has
    dropped."""
    made = []

    def of(kind):
        number = next(_numbers)
        names = f"{kind}_with_rule_{number}", f"{kind}_without_rule_{number}"
        for name in names:
            shutil.copytree(tables.folder / kind, tmp_path / name)
            spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{tmp_path / name}'")
            made.append(name)
        return names

    yield of
    for name in made:
        spark.sql(f"DROP TABLE {name}")


# Not _OF_SOME_COLUMNS: Hudi 1.2.0 then writes log records of these columns alone, and reads them
# with the columns of others: the next MERGE fails, or the JVM crashes.
_OF_LOG_FILES = [each for each in list(_STATEMENTS)[::2] if each != _OF_SOME_COLUMNS]


@needs.HIVE
@pytest.mark.usefixtures("no_metadata_table")
@pytest.mark.parametrize(
    ("kind", "statements"),
    [
        ("rule_cow", list(_STATEMENTS)),
        ("rule_partitioned", list(_STATEMENTS)[1::2]),
        ("rule_merged", _OF_LOG_FILES),
    ],
    ids=KINDS,
)
def test_statements_that_write(spark, enabled, copies, tmp_path, kind, statements):
    """After each statement, both copies have the same rows in the same files; and the index was
    used where it is said to be used."""
    mine, other = copies(kind)
    for statement, used in ((each, _STATEMENTS[each]) for each in statements):
        build(tmp_path / mine)
        found = _run(enabled, statement.format(t=mine), mine)
        if kind == "rule_merged":  # a statement has written log files, and a look-up may not pay
            found, used = ({**each, "target": None} for each in (found, used))
        assert found == used, statement
        spark.sql(statement.format(t=other))
        assert _stored(spark, tmp_path / mine) == _stored(spark, tmp_path / other), statement
        after = enabled.table(mine).drop(*_OF_A_WRITE).where("amount < 30")
        plain = spark.read.format("hudi").load(str(tmp_path / other)).drop(*_OF_A_WRITE)
        assert rows_of(after) == rows_of(plain.where("amount < 30")), statement


_STATEMENTS_WITHOUT_KEYS = {
    "UPDATE {t} SET msg = 'changed', ts = 9 WHERE id = '3' OR amount < 6": {"target": True},
    "DELETE FROM {t} WHERE id IN ('4', '5', '6')": {"target": True},
    "MERGE INTO {t} t USING (SELECT * FROM rule_cow WHERE amount BETWEEN 30 AND 60) s "
    "ON t.id = s.id AND t.amount < 50 WHEN MATCHED THEN UPDATE SET msg = concat(s.msg, '!') "
    "WHEN NOT MATCHED THEN INSERT (id, msg, amount, ts) VALUES (concat('n', s.id), 'new', 0, 1)": {
        "target": True,
        "source": True,
    },
}


@needs.HIVE
@pytest.mark.usefixtures("no_metadata_table")
def test_statements_on_tables_without_keys(spark, enabled, tables, tmp_path):
    """Hudi's MERGE then joins the source with the target's rows and their file names."""
    number = next(_numbers)
    mine, other = f"keyless_{number}", f"keyless_{number}_plain"
    query = "SELECT id, msg, amount, ts FROM rule_cow WHERE amount < 300"
    spark.sql(f"CREATE TABLE {mine} USING hudi LOCATION '{tmp_path / mine}' AS {query}")
    shutil.copytree(tmp_path / mine, tmp_path / other)
    spark.sql(f"CREATE TABLE {other} USING hudi LOCATION '{tmp_path / other}'")
    for statement, used in _STATEMENTS_WITHOUT_KEYS.items():
        indexed(tmp_path / mine, ["id", "msg", "amount"], if_not_exists=True).close()
        found = _run(enabled, statement.format(t=mine), mine)
        spark.sql(statement.format(t=other))
        both = [_stored(spark, tmp_path / each) for each in (mine, other)]
        assert both[0] == both[1], statement
        assert found == used, statement
    for name in (mine, other):
        spark.sql(f"DROP TABLE {name}")


@needs.HIVE
@pytest.mark.usefixtures("no_metadata_table")
def test_statements_without_optimized_writes(spark, enabled, copies, settings_of_both, tmp_path):
    """Hudi then looks for the files of rows by their keys."""
    mine, other = copies("rule_partitioned")
    settings_of_both("hoodie.spark.sql.optimized.writes.enable", "false")
    for statement in [each for each in _STATEMENTS if "target" in _STATEMENTS[each]][:3]:
        enabled.sql(statement.format(t=mine))
        spark.sql(statement.format(t=other))
        assert _stored(spark, tmp_path / mine) == _stored(spark, tmp_path / other), statement
        build(tmp_path / mine)


_OF_A_WRITE = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]
_OF_A_WRITE += ["_hoodie_record_key"]


def _stored(spark, path):
    """A table's rows with their keys, partitions and file groups; of file groups and generated keys
    that a statement has made, the names are random."""
    # By path: a session does not see at once what another one writes to a table.
    frame = spark.read.format("hudi").load(str(path))
    first = min(each.name for each in timeline_folder(path).glob("[0-9]*commit"))[:17]
    groups = [each.name.partition("_")[0] for each in path.rglob(f"*_{first}.parquet")]
    group = F.regexp_extract("_hoodie_file_name", "^[^_]*", 0)
    key = F.col("_hoodie_record_key")
    is_made = key.rlike(r"^\d{17}_") & ~key.startswith(first)
    frame = frame.withColumn("file_group", F.when(group.isin(groups), group))
    return rows_of(frame.withColumn("key", F.when(~is_made, key)).drop(*_OF_A_WRITE))


def _run(session, statement, target):
    """For the target of a statement and for its source, whether the index was used."""

    def run():
        session.sql(statement)
        return last_queries(session)

    with ThreadPoolExecutor(1) as thread:  # a new one, which has no earlier queries
        queries = thread.submit(run).result()
    return {
        "target" if use.table.endswith(target) else "source": use.by_index
        for query in queries
        for use in query
    }


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


@needs.HIVE
def test_frames_held_across_a_write_of_the_session(spark, enabled, copies):
    """Each is planned before the write; one has also run."""
    twins = copies("rule_cow")

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


def test_frames_held_across_a_write_of_another_session(spark, enabled, tables, tmp_path):
    path = shutil.copytree(tables.folder / "rule_cow", tmp_path / "written")

    def frames(session):
        few = session.read.format("hudi").load(str(path)).where("amount < 30")
        return [few.select("id", "msg"), few.groupBy("msg").count(), few.select("id", "msg")]

    mine, plain = frames(enabled), frames(spark)
    for planned in (*mine[:2], *plain[:2]):
        planned._jdf.queryExecution().executedPlan()
    assert last_queries(enabled)[-1][0].reason == "the index counts its rows"
    write(rows(spark, 3, 4, 1), path, hudi_options("rule_cow", **NO_METADATA_TABLE))
    assert [rows_of(each) for each in mine] == [rows_of(each) for each in plain]
    assert rows_of(frames(enabled)[0]) == rows_of(frames(spark)[0])


def test_the_snapshot_that_spark_has_cached_by_name(
    spark, agreed, enabled, tables, named, tmp_path
):
    """Also in sub-queries."""
    path = named(shutil.copytree(tables.folder / "rule_cow", tmp_path / "growing"))
    query = (
        "SELECT *, (SELECT max(amount) FROM growing WHERE id < '2') AS m FROM growing "
        "WHERE id IN ('1', '200')"
    )

    def instant(*used):
        uses = agreed(query)
        assert sorted(by_index(uses)) == sorted(used)
        (instant,) = {use.instant for use in uses}
        return instant

    before = instant(True, True)
    options = hudi_options("rule_cow", **NO_METADATA_TABLE)
    write(rows(spark, 200, 201), path, options, "insert")
    assert instant(True, True) == before
    assert [row.id for row in enabled.sql(query).collect()] == ["1"]
    for session in (spark, enabled):
        session.sql("REFRESH TABLE growing")
    # The base file is new and has no entry.
    assert instant(False, False) > before
    assert len(enabled.sql(query).collect()) == 2


@needs.HIVE
def test_cached_frames(spark, enabled, copies):
    """Spark computes a cached frame again after a write to its table by the session."""

    def cached(session, name):
        frame = session.table(name).where("amount < 30").select("id", "msg").cache()
        return frame, frame.groupBy("msg").agg(F.count("id").alias("n"))

    sessions = list(zip((enabled, spark), copies("rule_cow"), strict=True))
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
