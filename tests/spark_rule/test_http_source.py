"""Sessions that ask a daemon: the same rows as Spark's own, by index where they would be by index
with Python, and Spark's scan whenever the daemon does not answer."""

# ruff: noqa: S608 - the queries are the test's own

import re
import textwrap
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_index_service import Column, open_table
from hudi_index_service.sql import enable, last_queries
from hudi_index_service.sql.daemon import questions
from tests.golden.table import Golden
from tests.indexed import indexed
from tests.spark_rule.conftest import compared, rows_of
from tests.spark_rule.daemons import TOKEN, answering, asks, daemon
from tests.spark_rule.programs import run_program
from tests.spark_rule.without_python import JAR
from tests.spark_session import PATIENT


@pytest.fixture
def session(spark: SparkSession, enabled_once: SparkSession) -> Iterator[SparkSession]:
    """A session that asks nobody yet, see `asks`."""
    other = spark.newSession()
    for key, value in PATIENT.items():
        other.conf.set(key, value)
    yield other
    enable(other)
    enable(enabled_once)


@pytest.fixture
def served(session, tables) -> Iterator[SparkSession]:
    """The session with a daemon for the tables."""
    with daemon(tables.folder) as listener:
        yield asks(session, listener.url)


@pytest.mark.fast
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM rule_cow WHERE amount = 300",
        "SELECT id, place.city, tags, at, price FROM rule_partitioned WHERE msg = 'Buying car 3'",
        "SELECT * FROM rule_merged WHERE amount BETWEEN 30 AND 50",
        "SELECT count(*), count(msg) FROM rule_cow WHERE amount < 60",
        "SELECT msg, count(*) FROM rule_cow WHERE age > 40 GROUP BY msg",
        "SELECT 1 FROM rule_cow WHERE amount > 590 LIMIT 3",
        "SELECT id FROM rule_cow WHERE amount = (SELECT max(amount) FROM rule_partitioned)",
        "SELECT t.id FROM rule_cow t JOIN VALUES ('7'), ('9') v(k) ON t.id = v.k",
        "SELECT t.id FROM rule_cow t WHERE id IN (SELECT id FROM rule_merged WHERE amount = 300)",
    ],
)
def test_queries(served, spark, query):
    assert any(each.by_index for each in compared(served, spark, query))
    assert "HudiIndexScan" in served.sql(query)._jdf.queryExecution().toString()


def test_no_row_is_read_by_index_if_all_match(served, spark, costs):
    costs(spark_scan_ms=1e12)
    [use] = compared(served, spark, "SELECT * FROM rule_cow WHERE amount >= 0")
    assert (use.by_index, use.in_tasks, use.rows) == (False, False, None), "all rows"
    [use] = compared(served, spark, "SELECT * FROM rule_cow WHERE amount >= 30")
    assert (use.by_index, use.in_tasks, use.rows) == (True, False, 190)


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch, costs: Callable[..., None]) -> None:
    """Rows come in parts of a batch each, and Spark's scan is never cheaper."""
    for name in ("DRIVER_VALUES", "DRIVER_BYTES"):
        monkeypatch.setattr(f"hudi_index_service.sql.rule.by_index.{name}", 1)
    monkeypatch.setattr("hudi_index_service.hook.streaming.SENT_AT_ONCE", 1)
    costs(spark_scan_ms=1e12)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize(
    "query",
    [
        pytest.param("SELECT * FROM rule_cow WHERE amount >= 30", marks=pytest.mark.fast),
        "SELECT * FROM rule_merged WHERE amount BETWEEN 30 AND 300",
        "SELECT id, place.city, tags, at, price FROM rule_partitioned WHERE amount < 500",
        "SELECT id, amount / 3 FROM rule_cow WHERE amount > 30 AND length(msg) > 11",
        "SELECT max(t.amount), s.dt FROM rule_cow t JOIN rule_partitioned s ON t.id = s.id "
        "WHERE t.amount > 30 AND s.amount > 60 GROUP BY s.dt",
        "SELECT t.id FROM rule_cow t JOIN VALUES ('7'), ('9'), ('11') v(k) ON t.id = v.k",
        "SELECT id FROM rule_cow WHERE amount > (SELECT min(amount) FROM rule_partitioned)",
        "SELECT id FROM rule_cow WHERE amount >= 30 ORDER BY id LIMIT 7",
        "SELECT 1 FROM rule_cow WHERE amount < 0",
    ],
)
def test_many_rows_come_in_parts(served, spark, query):
    uses = compared(served, spark, query)
    assert any(each.by_index for each in uses)
    assert not any(each.in_tasks for each in uses)


def test_tasks_of_a_cluster_read_the_parts(tables, tmp_path, monkeypatch):
    """The jar is on the class path of the driver alone, as the Thrift server needs it."""
    for name in ("DRIVER_VALUES", "DRIVER_BYTES"):
        monkeypatch.setattr(f"hudi_index_service.sql.rule.by_index.{name}", 1)
    with daemon(tables.folder) as listener:
        settings = {
            "spark.driver.extraClassPath": str(JAR),
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension,"
            "hudiindex.spark.IndexExtensions",
            "spark.hudi.index.address": listener.url,
            "spark.hudi.index.token": TOKEN,
        }
        program = f"""
        spark = session("local-cluster[1,2,1024]", **{settings!r})
        few = table(spark).where("amount < 30").select("id")
        print(few._jdf.queryExecution().toString().count("HudiIndexScan"))
        print(sorted(int(row.id) for row in few.collect()), few.rdd.getNumPartitions())
        """
        lines = run_program(
            textwrap.indent(textwrap.dedent(program), "    "), tables.folder, tmp_path
        )
    assert lines[0] != "0"
    assert lines[1].startswith(f"{list(range(10))} ")


@pytest.mark.usefixtures("in_parts")
def test_what_parts_have_cost_is_told(served, spark):
    [use] = compared(served, spark, "SELECT id FROM rule_cow WHERE amount >= 30")
    assert use.observed is not None
    assert use.observed.rows == 190
    assert use.observed.bytes > 0


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("kept", [4, 500, -1])
def test_spark_scans_if_the_parts_end_early(served, spark, monkeypatch, kept):
    """After a part of the length, in the middle of the rows, before the cost."""
    whole = questions.in_parts

    def cut(*arguments: Any) -> Iterator[bytes]:
        sent = b"".join(whole(*arguments))
        yield sent[: kept if kept > 0 else sent.rindex(b"{") - 4]
        raise OSError("gone")

    monkeypatch.setattr(questions, "in_parts", cut)
    [use] = compared(served, spark, "SELECT id FROM rule_cow WHERE amount >= 30")
    assert use.reason.startswith("reading by index failed: ")
    assert "Exception" in use.reason


@pytest.mark.usefixtures("in_parts")
def test_spark_scans_if_the_parts_take_too_long(served, spark, monkeypatch):
    over = Event()

    def slow(*_: Any) -> Iterator[bytes]:
        yield (2**20).to_bytes(8) + bytes(300_000)
        over.wait(60)
        yield b""

    monkeypatch.setattr(questions, "in_parts", slow)
    served.conf.set("spark.hudi.index.readMillis", "300")
    try:
        [use] = compared(served, spark, "SELECT id FROM rule_cow WHERE amount >= 30")
    finally:
        over.set()
    assert use.reason == "reading by index failed: no answer within 300 ms"


@pytest.fixture
def texts(spark, session, golden: Golden, tmp_path) -> Iterator[SparkSession]:
    """The session with a table ``searched``, whose index knows all rows."""
    path = golden("searched_texts").put(tmp_path / "texts", "two base files")
    words = Column(name="msg", options={"analyzer": "standard", "ranked": "true"})
    indexed(path, [words, "amount"]).close()
    spark.sql(f"CREATE TABLE searched USING hudi LOCATION '{path}'")
    with daemon(tmp_path) as listener:
        yield asks(session, listener.url)
    spark.sql("DROP TABLE searched")


@pytest.mark.fast
def test_full_text(texts, spark):
    search = "match(msg, 'car')"
    found = {int(row.id) for row in texts.sql(f"SELECT id FROM searched WHERE {search}").collect()}
    with open_table(last_queries(texts)[-1][0].table) as table:
        assert found == {int(each["id"]) for each in table.scan(search).to_arrow().to_pylist()}
    assert last_queries(texts)[-1][0].by_index
    best = texts.sql(
        f"SELECT id, score() s FROM searched t WHERE {search} ORDER BY s DESC LIMIT 3"
    ).collect()
    assert len(best) == 3
    assert last_queries(texts)[-1][0].reason == "the index finds the 3 best rows"


def test_full_text_that_only_python_evaluates(texts):
    with pytest.raises(Py4JJavaError, match=r"PREDICATE_UNSUPPORTED: match .* no Python"):
        texts.sql("SELECT id, match(msg, 'car') FROM searched").collect()
    texts.conf.set("spark.hudi.index.enabled", "false")
    with pytest.raises(Py4JJavaError, match=r"PREDICATE_UNSUPPORTED: match .* no Python"):
        texts.sql("SELECT id FROM searched WHERE match(msg, 'car')").collect()


def test_full_text_without_a_daemon(session, tables):
    with answering(None) as address:
        pass
    with pytest.raises(PySparkException, match=r"INDEX_NOT_ANSWERING.* cannot be reached"):
        asks(session, address).sql("SELECT id FROM rule_cow WHERE match(msg, 'car')")


QUERY = "SELECT id, msg FROM rule_cow WHERE amount = {}"


def reason(session: SparkSession, spark: SparkSession, number: int) -> str:
    """Why Spark reads the rows with some amount."""
    [use] = compared(session, spark, QUERY.format(number))
    assert not use.by_index
    return use.reason


@pytest.mark.fast
def test_daemon_that_dies_and_comes_back(session, spark, tables):
    with daemon(tables.folder) as listener:
        asks(session, listener.url)
        planned = session.sql(QUERY.format(30))
        planned._jdf.queryExecution().executedPlan()
        assert compared(session, spark, QUERY.format(33))[0].by_index
    assert rows_of(planned) == rows_of(spark.sql(QUERY.format(30)))
    reasons = [each.reason for each, *_ in last_queries(session)]
    assert reasons[-2].startswith("reading by index failed: 127.0.0.1:")
    assert reason(session, spark, 36) == (
        "the index was not asked: it has failed, and is tried again later"
    )
    port = int(listener.url.rsplit(":", 1)[1])
    with daemon(tables.folder, port=port) as listener:
        asks(session, listener.url)  # or after the pause
        assert compared(session, spark, QUERY.format(39))[0].by_index


def test_idle_connections_that_the_daemon_closes(session, spark, tables):
    """The pooled connection of the first daemon is of no use with the second, at the same port."""
    with daemon(tables.folder) as listener:
        asks(session, listener.url)
        assert compared(session, spark, QUERY.format(42))[0].by_index
    with daemon(tables.folder, port=int(listener.url.rsplit(":", 1)[1])):
        assert compared(session, spark, QUERY.format(45))[0].by_index


def test_daemon_that_is_not_there(session, spark, tables):
    with answering(None) as address:
        pass
    asks(session, address)
    assert "cannot be reached (ConnectException)" in reason(session, spark, 48)
    assert "tried again later" in reason(session, spark, 51)


def test_daemon_that_hangs(session, spark, tables):
    with answering(None) as address:
        asks(session, address)
        session.conf.set("spark.hudi.index.decideMillis", "200")
        for number in (54, 57, 60):
            assert reason(session, spark, number) == (
                "the index was not asked: no answer within 200 ms"
            )
        assert "tried again later" in reason(session, spark, 63)


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (b"", "cannot be reached"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{", "cannot be reached"),
        (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nNone",
            "it is not a hudi-index daemon",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nNone", "no JSON"),
        (b"SSH-2.0-OpenSSH\r\n", "cannot be reached"),
    ],
)
def test_something_else_answers(session, spark, tables, response, why):
    with answering(response) as address:
        assert why in reason(asks(session, address), spark, 66)


@pytest.mark.parametrize("response", [b"", b"\xff" * 40, b'{"failed": "no answer"}'])
def test_rows_that_are_none(session, spark, tables, monkeypatch, response):
    monkeypatch.setattr("hudi_index_service.sql.rule.answers.arrow_stream", lambda rows: response)
    with daemon(tables.folder) as listener:
        assert "reading by index failed" in reason(asks(session, listener.url), spark, 69)


@pytest.mark.fast
def test_wrong_token(session, spark, tables):
    with daemon(tables.folder) as listener:
        asks(session, listener.url, "another")
        why = reason(session, spark, 72)
        assert "401: The header Authorization is missing or wrong" in why
        assert "tried again later" in reason(session, spark, 75)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        (
            *("daemon.questions.answered_versions", lambda: range(98, 100)),
            "400: The session's jar asks in version 1, and .* answers version 98 and 99",
        ),
        (
            *("daemon.questions.Answers.decision", lambda *_: str(1 / 0)),
            "500: The daemon has failed: ZeroDivisionError",
        ),
    ],
)
def test_errors_of_the_daemon(session, spark, tables, monkeypatch, name, value, why):
    monkeypatch.setattr(f"hudi_index_service.sql.{name}", value)
    with daemon(tables.folder) as listener:
        assert re.search(why, reason(asks(session, listener.url), spark, 78))


def test_tables_elsewhere(session, spark, tables, tmp_path):
    with daemon(tmp_path) as listener:
        asks(session, listener.url)
        for number in (81, 84, 87, 90):  # which is no failure
            assert "in none of the folders that this daemon reads" in reason(session, spark, number)


@pytest.mark.parametrize("address", ["not an address", "127.0.0.1:7051", "ftp://host", ""])
def test_addresses_that_are_none(session, tables, address):
    with pytest.raises(Exception, match="IllegalArgumentException"):
        asks(session, address)


def test_a_token_that_cannot_be_sent_is_not_shown(session, tables):
    with pytest.raises(Exception, match=r"spark\.hudi\.index\.token cannot be sent") as raised:
        asks(session, "http://127.0.0.1:1", "sécret")
    assert "sécret" not in str(raised.value)
