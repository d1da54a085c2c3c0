"""Index statements in plain ``spark.sql``, as in `IndexSession.sql`."""

# ruff: noqa: S608 - the queries are the test's own

import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from hudi_index_service import open_table
from hudi_index_service.errors import IndexNotFound, StatementFailed
from hudi_index_service.sql import IndexSession
from hudi_index_service.sql.grammar import first_words
from hudi_index_service.sql.rule.statements import SqlStatements
from hudi_index_service.sql.statements import EXPLAIN, EXPLAIN_ANALYZE, STATEMENTS
from tests.hudi_tables import IN_PROCESS_LOCK
from tests.spark_rule import needs
from tests.spark_rule.outcomes import IN_ORDER, POSITIONED, outcome, with_messages
from tests.spark_rule.programs import run_program


@pytest.fixture(scope="module")
def started_enabled(enabled_once: SparkSession) -> SparkSession:
    """A session that was started after the extension had been there."""
    return enabled_once.newSession()


@pytest.fixture
def session(started_enabled, written, tmp_path) -> SparkSession:
    """The session, with a copy of the table as ``messages`` in its current database."""
    return with_messages(started_enabled, "with_extension", written, tmp_path / "extension")


@pytest.fixture
def reference(spark, written, tmp_path) -> IndexSession:
    """The same for `IndexSession`, on another copy."""
    return IndexSession(with_messages(spark.newSession(), "with_session", written, tmp_path / "s"))


def test_results_and_errors_equal_those_of_index_session(session, reference):
    for statement, args in IN_ORDER:
        expected = outcome(reference.sql, statement, args)
        assert outcome(session.sql, statement, args) == expected, statement
        if (statement, args) == POSITIONED:
            assert expected[1][0].condition == "`id` = '3'"


def test_statements_run_once_and_at_once(session):
    created = session.sql("CREATE INDEX i ON messages USING lucene (id)")
    assert [row.index_name for row in session.sql("SHOW INDEXES FROM messages").collect()] == ["i"]
    assert created.collect() == created.collect()
    assert created.where("index_type = 'lucene'").count() == 1


def test_frames_in_an_explained_query(session):
    session.sql("CREATE INDEX i ON messages USING lucene (id)")
    session.sql("OPTIMIZE TABLE messages STRATEGY ALL")
    messages = session.table("messages")
    [row] = session.sql(
        "EXPLAIN INDEX SELECT * FROM {t} WHERE id = {id}", t=messages, id="3"
    ).collect()
    assert row.reader == "driver"


@pytest.mark.fast
def test_errors_are_sparks_with_code_and_remedy(session):
    with pytest.raises(ParseException) as raised:
        session.sql("DROP INDEX i\nON messages CASCADE")
    assert raised.value.getErrorClass() == "STATEMENT_INVALID"
    assert "line 2, column 13 of the statement, found 'CASCADE'. Correct" in str(raised.value)
    with pytest.raises(AnalysisException) as raised:
        session.sql("DROP INDEX i ON messages")
    assert raised.value.getErrorClass() == "INDEX_NOT_FOUND"
    assert str(raised.value) == (
        "INDEX_NOT_FOUND: messages has no index named i. SHOW INDEXES FROM messages lists them, "
        "including Hudi's own."
    )


def test_only_texts_that_begin_like_index_statements_are_asked_about(session, monkeypatch):
    asked = []

    def described(self, jvm_session, text):
        asked.append(text)
        return "{}"

    monkeypatch.setattr(SqlStatements, "described", described)
    parser = session._jsparkSession.sessionState().sqlParser()
    assert parser.getClass().getSimpleName() == "IndexParser"
    first = {*STATEMENTS, EXPLAIN, EXPLAIN_ANALYZE}
    texts = [
        *(" ".join(words) + " t" for words in first),
        *("/* a */ drop\tindex t", "--\nSHOW--\\\nx\n/*/**/*/indexing", "\r\nAlter Index"),
        *("DROP", "", " ", "/*", "/* DROP INDEX", "-- DROP INDEX", "/*+ x */ DROP INDEX i"),
        *(
            "DROPINDEX",
            "DROP INDEX_ t",
            "DROP_ INDEX",
            "DROP.INDEX",
            "DROP `INDEX`",
            "ſHOW INDEXES",
        ),
        *("EXPLAIN ANALYZE SELECT", "EXPLAIN ANALYZE", "EXPLAIN", "SHOW TABLES", "DROP(INDEX)"),
        *("DROP\u00a0INDEX i", "DROP\u2028INDEX", "DROP\fINDEX i", "1 DROP INDEX", "CREATE  TABLE"),
    ]
    for text in texts:
        with suppress(ParseException):
            parser.parsePlan(text)
    expected = [each for each in texts if first & {first_words(each), first_words(each, 3)}]
    assert asked == expected
    assert len(asked) == len(first) + 3


def test_other_statements_are_as_before(session):
    assert session.sql("SELECT 'DROP INDEX' AS a").collect() == [("DROP INDEX",)]
    session.conf.set("named", "messages")
    assert session.sql("SELECT count(*) FROM ${named}").collect() == [(40,)]
    session.sql("CREATE TEMPORARY VIEW optimize AS SELECT 1 AS indexing")
    assert session.sql("EXPLAIN SELECT * FROM optimize").first().plan.startswith("== Physical")
    assert session.sql("TABLE optimize").collect() == [(1,)]
    assert session.sql("SELECT :a + 1 AS b", {"a": 1}).collect() == [(2,)]
    session.sql("DROP VIEW optimize")
    with pytest.raises(ParseException, match=r"STATEMENT_INVALID.*: OPTIMIZE TABLE <table>\."):
        session.sql("OPTIMIZE messages")
    for text in ("DROP INDEXES", "EXPLAIN ANALYZE SELECT 1", "INDEX"):
        with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
            session.sql(text)
    parsed = session._jsparkSession.sessionState().sqlParser()
    assert parsed.parseExpression("a + 1").toString() == "('a + 1)"
    assert parsed.parseTableIdentifier("a.b").toString() == "`a`.`b`"
    assert session.range(1).selectExpr("cast(id AS decimal(3, 1)) AS d").schema["d"].dataType.scale


@pytest.mark.parametrize("name", ["table", "on"])
def test_tables_and_indexes_named_like_keywords(session, written, tmp_path, name):
    shutil.copytree(written, tmp_path / name)
    session.sql(f"CREATE TABLE `{name}` USING hudi LOCATION '{tmp_path / name}'")
    try:
        session.sql(f"CREATE INDEX `{name}` ON `{name}` USING lucene (id)")
        [shown] = session.sql(f"SHOW INDEXES FROM with_extension.`{name}`").collect()
        assert shown.index_name == name
        assert session.sql(f"OPTIMIZE TABLE `{name}` STRATEGY ALL").count() == 2
        assert session.sql(f"DROP INDEX `{name}` ON `{name}`").first().dropped
    finally:
        session.sql(f"DROP TABLE `{name}`")


def test_names_are_those_of_the_session(session, written, tmp_path):
    session.sql("CREATE INDEX mine ON messages USING lucene (id)")
    new = with_messages(session.newSession(), "of_new_session", written, tmp_path / "new")
    new.sql("CREATE INDEX others ON messages USING lucene (id)")
    new.range(1).createTempView("viewed")
    for spark, name in ((session, "mine"), (new, "others")):
        assert [r.index_name for r in spark.sql("SHOW INDEXES FROM messages").collect()] == [name]
    with pytest.raises(AnalysisException, match="NOT_A_HUDI_TABLE: viewed is a view"):
        new.sql("SHOW INDEXING viewed")
    with pytest.raises(AnalysisException, match="TABLE_NOT_FOUND"):
        session.sql("SHOW INDEXING viewed")


HUDI_WRITER = {
    **IN_PROCESS_LOCK,
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    # Otherwise ten files for two rows; the second key is the older name.
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "1",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.index.column.stats.enable": "false",
}
"""Hudi settings with which it builds its indexes: as a second writer, which needs a lock."""


@pytest.fixture
def documented_table(session, tmp_path) -> Iterator[str]:
    """The table of Hudi's page "SQL DDL", created and filled as there, on which Hudi can build its
    own indexes."""
    for key, value in HUDI_WRITER.items():
        session.conf.set(key, value)
    session.sql(
        f"""
        CREATE TABLE hudi_indexed_table (
            ts BIGINT, uuid STRING, rider STRING, driver STRING, fare DOUBLE, city STRING
        ) USING HUDI
        options(primaryKey ='uuid', hoodie.write.record.merge.mode = "COMMIT_TIME_ORDERING")
        PARTITIONED BY (city)
        LOCATION '{tmp_path / "hudi_indexed_table"}'
        """
    )
    session.sql(
        """
        INSERT INTO hudi_indexed_table VALUES
        (1695159649, '334e26e9', 'rider-A', 'driver-S', 19.10, 'san_francisco'),
        (1695091554, 'e96c4396', 'rider-E', 'driver-T', 27.70, 'san_francisco')
        """
    )
    yield "hudi_indexed_table"
    session.sql("DROP TABLE hudi_indexed_table")
    for key in HUDI_WRITER:
        session.conf.unset(key)


# Hudi's page "SQL DDL", sections "Create Index" and "Create Expression Index".
CREATED = {
    "CREATE INDEX idx_bloom_driver ON hudi_indexed_table USING bloom_filters(driver) "
    "OPTIONS(expr='identity');": ("expr_index_idx_bloom_driver", "bloom_filters", "driver"),
    "CREATE INDEX IF NOT EXISTS ts_datestr ON hudi_indexed_table\n  USING column_stats(ts)\n  "
    "OPTIONS(expr='from_unixtime', format = 'yyyy-MM-dd');": (
        *("expr_index_ts_datestr", "column_stats", "ts"),
    ),
    "CREATE INDEX record_index ON hudi_indexed_table (uuid)": ("record_index", "record_index", ""),
    "CREATE INDEX idx_rider ON hudi_indexed_table (rider)": (
        *("secondary_index_idx_rider", "secondary_index", "rider"),
    ),
}


@needs.HIVE
def test_hudis_documented_statements_reach_hudi(session, spark, documented_table):
    name, index_session = f"with_extension.{documented_table}", IndexSession(session)
    ours = ("by_rider", "lucene", "rider")
    session.sql(f"CREATE INDEX by_rider ON {documented_table} USING lucene (rider)")

    def shown():
        """The rows of Hudi's own indexes, which are the same whoever is asked."""
        of_hudi, *others = (
            {tuple(row)[:3] for row in sql(f"SHOW INDEXES FROM {name}").collect()}
            for sql in (spark.sql, session.sql, index_session.sql)
        )
        assert others == [of_hudi | {ours}] * 2
        return of_hudi

    present = shown()
    for statement, row in CREATED.items():
        done = session.sql(statement)
        assert (done.columns, done.collect()) == ([], [])
        present |= {row}
        assert shown() == present
    rows = session.sql(f"SHOW INDEXES IN TABLE spark_catalog.{name}").collect()
    assert rows[0].index_name == "by_rider"
    assert {tuple(row)[:3] for row in rows if row.managed_by == "hudi"} == present
    assert {row.index_name: row.options for row in rows if row.options} == {
        "expr_index_idx_bloom_driver": {"driver": {"expr": "identity"}},
        "expr_index_ts_datestr": {"ts": {"expr": "from_unixtime", "format": "yyyy-MM-dd"}},
    }
    found = session.sql("SELECT uuid FROM hudi_indexed_table WHERE rider = 'rider-E'").collect()
    assert [row.uuid for row in found] == ["e96c4396"]

    for index in ("idx_rider", "secondary_index_idx_rider", "record_index"):
        assert session.sql(f"REFRESH INDEX {index} ON {documented_table}").columns == []
    # IndexSession passes what it leaves to Hudi through the same parser.
    assert index_session.sql(f"DROP INDEX idx_rider ON {documented_table}").columns == []
    session.sql(f"DROP INDEX IF EXISTS expr_index_idx_bloom_driver ON TABLE {documented_table}")
    session.sql(f"DROP INDEX IF EXISTS nothing ON {documented_table}")
    gone = ("secondary_index_idx_rider", "expr_index_idx_bloom_driver")
    assert shown() == {row for row in present if row[0] not in gone}
    for sql in (session.sql, index_session.sql):
        with pytest.raises((AnalysisException, IndexNotFound), match="INDEX_NOT_FOUND: hudi_in"):
            sql(f"DROP INDEX idx_rider ON {documented_table}")
    with pytest.raises(StatementFailed, match="Hudi creates no such index"):
        index_session.sql(f"CREATE INDEX theirs ON {documented_table} (rider, uuid)")


def test_failing_index_service_is_reported(session, monkeypatch):
    def fail(self, *request):
        raise RuntimeError("secret")

    for method in ("described", "result"):
        with monkeypatch.context() as patched:
            patched.setattr(SqlStatements, method, fail)
            with pytest.raises(AnalysisException, match="RuntimeError in Python") as raised:
                session.sql("SHOW INDEXES FROM messages")
        assert raised.value.getErrorClass() == "INDEX_NOT_ANSWERING"
        assert "secret" not in str(raised.value)
    assert session.sql("SHOW INDEXES FROM messages").collect() == []


def test_index_dropped_between_parsing_and_running(session, monkeypatch):
    """Hudi's statement has another result."""
    session.sql("CREATE INDEX i ON messages USING lucene (id)")
    described = SqlStatements.described

    def then_dropped(self, jvm_session, text):
        answer = described(self, jvm_session, text)
        with open_table(session.conf.get("path")) as table:
            table.drop_index("i")
        return answer

    location = session.sql("DESCRIBE FORMATTED messages").where("col_name = 'Location'").first()
    session.conf.set("path", location.data_type.removeprefix("file:"))
    with monkeypatch.context() as patched:
        patched.setattr(SqlStatements, "described", then_dropped)
        with pytest.raises(AnalysisException, match=r"INDEX_CHANGED: .* Run it again"):
            session.sql("DROP INDEX IF EXISTS i ON messages")


def test_index_that_is_turned_off_is_still_built_and_explained(session):
    session.conf.set("spark.hudi.index.enabled", "false")
    try:
        session.sql("CREATE INDEX i ON messages USING lucene (id)")
        session.sql("OPTIMIZE TABLE messages STRATEGY ALL")
        explained = "EXPLAIN INDEX SELECT msg FROM messages WHERE id = '3'"
        row = session.sql(explained).first()
        assert (row.reader, row.reason) == ("spark", "spark.hudi.index.enabled is false")
    finally:
        session.conf.unset("spark.hudi.index.enabled")


def test_jobs_of_a_statement_belong_to_its_group(session):
    session.sql("CREATE INDEX i ON messages USING lucene (id)")
    context = session.sparkContext
    context.setJobGroup("a build", "of an index")
    try:
        session.sql("OPTIMIZE TABLE messages STRATEGY ALL")
        assert len(context.statusTracker().getJobIdsForGroup("a build")) >= 2
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


def test_statements_of_several_threads_do_not_wait_for_each_other(session, monkeypatch):
    begun, end = threading.Event(), threading.Event()
    result = SqlStatements.result

    def waiting(self, jvm_session, text, arguments):
        if text.startswith("OPTIMIZE"):
            begun.set()
            assert end.wait(60)
        return result(self, jvm_session, text, arguments)

    monkeypatch.setattr(SqlStatements, "result", waiting)
    long = threading.Thread(target=lambda: session.sql("OPTIMIZE TABLE messages"))
    long.start()
    assert begun.wait(60)
    assert session.sql("SHOW INDEXING messages").collect() == []
    assert session.sql("SELECT count(*) FROM messages WHERE id = '3'").collect() == [(1,)]
    end.set()
    long.join(60)
    assert not long.is_alive()


_BOTH = """
    import hudi_index_spark, shutil, sys
    both = HUDI_SETTINGS["spark.sql.extensions"] + "," + hudi_index_spark.EXTENSIONS
    settings = {"spark.sql.extensions": both}
    jar = hudi_index_spark.jar_path()

    def failure(text):
        try:
            spark.sql(text)
        except Exception as error:
            return type(error).__name__ + ": " + str(error).strip().splitlines()[0]

    def defined():
        spark.sql(f"CREATE TABLE rules USING hudi LOCATION '{FOLDER}/table'")

    def built():
        spark.sql("CREATE INDEX i ON rules USING lucene (id, msg OPTIONS(analyzer='standard'))")
        print([row.status for row in spark.sql("OPTIMIZE TABLE rules STRATEGY ALL").collect()])
        found = spark.sql("SELECT * FROM rules WHERE id = '3'")
        print(len(found.collect()), uses(spark)[0].by_index)
        search = "SELECT id FROM rules WHERE match(msg, '3')"
        print(len(spark.sql(search).collect()), spark.sql("EXPLAIN INDEX " + search).first().reader)
        spark.sql("DROP INDEX i ON rules PURGE")
"""

_BUILT = ["['built', 'built']", "1 True", "6 driver"]

# An interrupt leaves a build that can be cancelled; and a program ends, though a statement runs.
_INTERRUPTED = """
    import signal, threading
    from hudi_index_service.build.spark import SparkExecutor
    spark.sql("CREATE INDEX i ON rules USING lucene (id)")
    begun, end = threading.Event(), threading.Event()

    def waiting(self, schedule):
        begun.set()
        while not end.wait(0.1):
            yield None

    SparkExecutor._run = waiting

    def press():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    try:
        spark.sql("OPTIMIZE TABLE rules STRATEGY ALL")
    except BaseException as error:
        print(type(error).__name__ in ("KeyboardInterrupt", "Py4JError"))
    [cancelled] = spark.sql("CANCEL INDEXING rules").collect()
    print(cancelled.requested)
    state = "running"
    while state == "running":
        state = spark.sql(f"SHOW INDEXING rules BUILD '{cancelled.build_id}'").first().state
    print(state)
    begun.clear()
    build = lambda: spark.sql("OPTIMIZE TABLE rules STRATEGY ALL")
    threading.Thread(target=build, daemon=True).start()
    begun.wait()
"""


@pytest.fixture
def programs_table(written, tmp_path) -> Path:
    shutil.copytree(written, tmp_path / "table")
    return tmp_path


def test_extension_named_in_the_settings(programs_table):
    program = f"""{_BOTH}
    spark = session(jars=[jar], **settings)
    defined()
    for text in (
        "SHOW INDEXING rules",
        "/**/ explain analyze index SELECT 1",
        "ALTER INDEX i",
        "create index i on rules using btree (id)",
    ):
        print(failure(text))
    print(failure("OPTIMIZE rules"))
    print(failure("SHOW INDEXING_ rules")[:36])
    print(failure("SELECT id FROM rules WHERE match(msg, '3')")[:36])
    print(spark.sql("SHOW INDEXES FROM rules").columns)
    enable(spark)
    built()
    spark.sparkContext._gateway.shutdown_callback_server()
    print(failure("SHOW INDEXING rules")[:60])
    enable(spark)
    built()
    spark.stop()
    spark = session(jars=[jar], **settings)
    enable(spark)
    defined()
    built()
    {_INTERRUPTED}
    """
    lines = run_program(program, programs_table, programs_table)
    disabled = (
        "AnalysisException: INDEX_NOT_ENABLED: The index service is not enabled yet, which runs "
        "this statement. Call hudi_index_service.sql.enable(spark) first; without Python, "
        "start the session with the settings that hudi-index serve-spark prints."
    )
    assert lines == [
        *[disabled] * 4,
        "ParseException: STATEMENT_INVALID: No parser of this session takes this OPTIMIZE. To "
        "build what is due of a table's indexes: OPTIMIZE TABLE <table>.",
        "ParseException: [PARSE_SYNTAX_ERROR]",
        "AnalysisException: INDEX_NOT_ENABLED",
        "['index_name', 'index_type', 'col_name']",
        *_BUILT,
        "AnalysisException: INDEX_NOT_ANSWERING: The index service ha",
        *_BUILT * 2,
        *("True", "True", "cancelled"),
    ]


def test_extension_on_the_class_path_of_the_driver(programs_table):
    """Its class is loaded by another loader than that of Hudi's bundle."""
    program = f"""{_BOTH}
    spark = session(**{{**settings, "spark.driver.extraClassPath": jar}})
    defined()
    print(failure("SHOW INDEXING rules")[:36])
    enable(spark)
    built()
    spark = spark.newSession()
    built()
    """
    lines = run_program(program, programs_table, programs_table)
    assert lines == [
        "AnalysisException: INDEX_NOT_ENABLED",
        *_BUILT * 2,
    ]
