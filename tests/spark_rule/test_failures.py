"""A failing index costs time, never an answer, and not much time."""

import os
import shutil
import signal
import threading
import time

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import InheritableThread

from hudi_index_service.errors import SnapshotChanged, StorageFailed
from hudi_index_service.sql import enable, last_queries
from hudi_index_service.sql.rule import answers
from hudi_index_service.sql.rule.enable import Callback
from hudi_index_service.sql.rule.reader import RelationReader
from tests.spark_rule.conftest import compared, rows_of


@pytest.fixture
def fresh(enabled, tables):
    """The session, without what it knows of earlier queries and failures; so again at the end."""
    enable(enabled)
    yield enabled
    enable(enabled)


@pytest.fixture
def hanging(monkeypatch):
    """Makes a method of the reader hang until the test ends."""
    end = threading.Event()
    calls = []

    def of(name):
        def hang(self, *_):
            calls.append(name)
            end.wait()
            raise OSError("too late")

        monkeypatch.setattr(RelationReader, name, hang)
        return calls

    yield of
    end.set()


def _agrees(session, spark, where):
    [use] = compared(session, spark, lambda each: each.table("rule_cow").where(where))
    return use


def _moved(*_):
    raise SnapshotChanged("The table moved.")


def test_decision_that_hangs_costs_its_deadline_and_then_nothing(fresh, spark, hanging):
    calls = hanging("decide")
    fresh.conf.set("spark.hudi.index.decideMillis", "200")
    reasons = [_agrees(fresh, spark, f"id = '{n}'").reason for n in range(5)]
    assert reasons[:3] == ["the index was not asked: no answer within 200 ms"] * 3
    assert reasons[3:] == ["the index was not asked: it has failed, and is tried again later"] * 2
    assert len(calls) == 3


def test_rows_that_hang_are_scanned(fresh, spark, hanging):
    hanging("rows")
    fresh.conf.set("spark.hudi.index.readMillis", "200")
    use = _agrees(fresh, spark, "id = '3'")
    assert use.reason == "reading by index failed: no answer within 200 ms"
    assert not use.by_index


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("method", ["decide", "rows"])
def test_exceptions_in_the_callback(fresh, spark, monkeypatch, raised, method):
    def fail(self, *_):
        raise raised("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(RelationReader, method, fail)
        use = _agrees(fresh, spark, "id = '3'")
    assert not use.by_index
    assert f"{raised.__name__} in Python" in use.reason
    assert _agrees(fresh, spark, "id = '3'").by_index


@pytest.mark.parametrize(
    ("method", "failing", "reason"),
    [
        ("decide", _moved, "The table moved"),
        ("decide", lambda *_: b"\xff".decode(), "UnicodeDecodeError in Python"),
        ("rows", lambda *_: b"\xff".decode(), "UnicodeDecodeError in Python"),
    ],
)
def test_errors_of_a_table_or_a_query_do_not_stop_asking(
    fresh, spark, monkeypatch, method, failing, reason
):
    with monkeypatch.context() as patched:
        patched.setattr(RelationReader, method, failing)
        for number in range(4):
            use = _agrees(fresh, spark, f"id = '{number}'")
            assert (use.by_index, use.reason) == (False, reason)
    assert _agrees(fresh, spark, "id = '7'").by_index


def test_rows_in_other_types_are_not_taken(fresh, spark, monkeypatch):
    """Spark would read strings with long offsets as rubbish."""

    def long_strings(rows):
        schema = pa.schema(
            each.with_type(pa.large_string()) if pa.types.is_string(each.type) else each
            for each in rows.schema
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(rows.cast(schema))
        return sink.getvalue().to_pybytes()

    monkeypatch.setattr(answers, "arrow_stream", long_strings)
    use = _agrees(fresh, spark, "id = '3'")
    assert "LargeUtf8" in use.reason


def test_broken_answers(fresh, spark, monkeypatch):
    for answer in ("no JSON", '{"reader": "somebody"}', "{}"):
        with monkeypatch.context() as patched:
            patched.setattr(Callback, "apply", lambda *_, answer=answer: answer)
            enable(fresh)
            _agrees(fresh, spark, "id = '3'")


def test_entries_that_are_gone_when_the_query_runs(fresh, tables, tmp_path):
    path = shutil.copytree(tables.folder / "rule_cow", tmp_path / "gone")
    frame = fresh.read.format("hudi").load(str(path)).where("id = '3'")
    assert "HudiIndexScan" in frame._jdf.queryExecution().toString()
    shutil.rmtree(path / ".hoodie" / ".index")
    assert len(frame.collect()) == 1


def test_a_table_that_moved(fresh, spark, tables, tmp_path):
    """Its index moves along; at the old place, there is an error as without the rule, or another
    table."""
    old, new = tmp_path / "old", tmp_path / "new"
    shutil.copytree(tables.folder / "rule_cow", old)

    def few(session, path):
        return session.read.format("hudi").load(str(path)).where("amount < 30").select("id", "msg")

    def uses_index():
        [use] = last_queries(fresh)[-1]
        return use.by_index

    assert rows_of(few(fresh, old)) == rows_of(few(spark, old))
    assert uses_index()
    held = [few(session, old) for session in (fresh, spark)]
    for frame in held:
        frame._jdf.queryExecution().executedPlan()
    old.rename(new)
    assert rows_of(few(fresh, new)) == rows_of(few(spark, new))
    assert uses_index()
    for frame in held:
        with pytest.raises(Py4JJavaError, match="TableNotFoundException"):
            frame.collect()
    shutil.copytree(tables.folder / "rule_partitioned", old)
    assert rows_of(few(fresh, old)) == rows_of(few(spark, old))
    assert uses_index()


def test_a_wrong_setting_leaves_queries_to_spark(fresh, spark):
    planned = fresh.table("rule_cow").where("id = '3'")
    assert "HudiIndexScan" in planned._jdf.queryExecution().toString()
    fresh.conf.set("spark.hudi.index.decideMillis", "soon")
    assert len(planned.collect()) == 1
    [use] = last_queries(fresh)[-1]
    assert "spark.hudi.index.decideMillis is no number of milliseconds: soon" in use.reason
    assert len(fresh.table("rule_cow").where("id = '4'").collect()) == 1


def test_cancelled_job_group(fresh, hanging, spark):
    """The rows that hang are left, and Spark's scan, which is cancelled, does not begin anew."""
    hanging("rows")
    fresh.conf.set("spark.hudi.index.readMillis", "1000")
    outcome = []
    few = fresh.table("rule_cow").where("id = '3'")
    _cancelled(fresh, "cancelled", lambda: outcome.append(few.count()))
    assert outcome == [1]


def _cancelled(session, group, run, begun=lambda: True):
    """Runs a query in a thread whose jobs have a group, which is cancelled once it has begun."""

    def in_the_group():
        session.sparkContext.setJobGroup(group, "a query", True)
        run()

    thread = InheritableThread(target=in_the_group)
    thread.start()
    while not begun():
        time.sleep(0.01)
    session.sparkContext.cancelJobGroup(group)
    thread.join(60)
    assert not thread.is_alive()


def test_cancelled_jobs_for_rows_end_the_query(fresh, monkeypatch):
    message = "Job 7 cancelled part of cancelled job group mine"

    def cancelled(self, *_):
        raise StorageFailed("Spark's tasks cannot read the table.") from OSError(message)

    monkeypatch.setattr(RelationReader, "rows", cancelled)
    with pytest.raises(Py4JJavaError, match=message):
        fresh.table("rule_cow").where("id = '3'").collect()


def test_cancelled_job_group_while_rows_are_read(fresh, monkeypatch):
    """What cancels the query cancels the jobs that find its rows, and Spark does not scan then."""
    context = fresh.sparkContext

    def slow(self, *_):
        context.parallelize([0], 1).foreach(lambda _: time.sleep(100))

    monkeypatch.setattr(RelationReader, "rows", slow)
    errors = []

    def run():
        try:
            fresh.table("rule_cow").where("id = '3'").collect()
        except Py4JJavaError as error:
            errors.append(str(error))

    _cancelled(fresh, "slow", run, lambda: context.statusTracker().getJobIdsForGroup("slow"))
    assert "cancelled job group slow" in errors[0]
    assert len(context.statusTracker().getJobIdsForGroup("slow")) == 1


def test_jobs_for_rows_belong_to_the_querys_group(fresh, spark, read_by_tasks):
    fresh.sparkContext.setJobGroup("mine", "a query")
    try:
        fresh.table("rule_cow").where("amount < 300").collect()
        assert last_queries(fresh)[-1][0].in_tasks
        jobs = fresh.sparkContext.statusTracker().getJobIdsForGroup("mine")
        assert len(jobs) >= 2  # sizes first, then rows
    finally:
        fresh.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        fresh.sparkContext.setLocalProperty("spark.job.description", None)


def test_interrupt_by_the_user(fresh, spark, hanging):
    """Ctrl-C ends the wait in Python; the JVM ends it by the deadline."""
    calls = hanging("rows")
    fresh.conf.set("spark.hudi.index.readMillis", "2000")

    def press():
        while not calls:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    # PySpark's own handler calls the JVM amidst a call, which py4j may not survive.
    with pytest.raises((KeyboardInterrupt, Py4JError)):
        fresh.table("rule_cow").where("id = '3'").collect()
    presser.join()
    fresh.conf.set("spark.hudi.index.enabled", "false")
    assert fresh.table("rule_cow").where("id = '3'").count() == 1


def test_breaker(fresh):
    loader = fresh._jsparkSession.sharedState().jarClassLoader()
    kind = loader.loadClass("hudiindex.spark.source.Breaker")
    gateway = fresh.sparkContext._gateway
    now = [0]

    class Clock:
        def getAsLong(self):
            return now[0]

        class Java:
            implements = ("java.util.function.LongSupplier",)

    [constructor] = kind.getConstructors()
    arguments = gateway.jvm.java.util.ArrayList()
    for each in (2, 100, Clock()):
        arguments.add(each)
    breaker = constructor.newInstance(arguments.toArray())
    assert breaker.allowsCall()
    assert not breaker.failed(False)
    assert breaker.allowsCall()
    assert breaker.failed(False)
    assert not breaker.allowsCall()
    now[0] = 101
    assert breaker.allowsCall()
    assert not breaker.allowsCall(), "one at a time"
    assert not breaker.failed(False)
    now[0] = 202
    assert breaker.allowsCall()
    breaker.succeeded()
    assert breaker.allowsCall()
    assert breaker.allowsCall()
