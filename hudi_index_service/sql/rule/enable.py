"""Puts the optimizer rule on a Spark session that runs, and answers its questions."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, cast
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame

from hudi_index_service.config import Settings
from hudi_index_service.errors import NativeModuleMissing, SparkUnsupported
from hudi_index_service.index.factory import ready_index_types
from hudi_index_service.spark_session import require_session
from hudi_index_service.sql.rule.answers import Answers
from hudi_index_service.sql.rule.by_index import session_readers
from hudi_index_service.sql.rule.reader import RelationReader
from hudi_index_service.sql.rule.statements import SqlStatements
from hudi_index_service.sql.rule.uses import USES_OF_QUERIES, Read, RelationUse

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_CLASS = "hudiindex.spark.IndexExtensions"

_enabling = Lock()
_readers: "WeakKeyDictionary[SparkContext, list[RelationReader]]" = WeakKeyDictionary()


def enable(
    spark: "SparkSession",
    *,
    storage_options: Mapping[str, str] | None = None,
    settings: Settings | None = None,
) -> None:
    """Lets all queries of a session read Hudi tables through the index where that is cheaper:
    ``spark.sql``, DataFrames, views, and pandas on Spark, which Spark 3.5 imports only with pandas
    below 3. Sessions of ``spark.newSession()`` take part. Answers equal Spark's own. After
    ``spark.stop()``, enable the next session again.

    If the session was started with the extension (docs/sql.md), its ``sql`` also takes index
    statements, as `IndexSession.sql` does.

    Waits until the installed index types can read, so that a session's first query is decided in
    time: the first call in a process starts Lucene's JVM, which takes about half a second.

    ``spark.conf.set("spark.hudi.index.enabled", "false")`` turns it off for a session at once.

    Calling it again changes nothing but the arguments; it also forgets failures and decisions.

    Args:
        spark: A session with Hudi's bundle.
        storage_options: As for `open_table`, for tables in remote stores.
        settings: Override the process's settings.

    Raises:
        NativeModuleMissing: the distribution hudi-index-spark is not installed.
        SparkUnsupported: the session has no JVM in reach (Spark Connect), or another Spark than the
            jar was made for.
        ConfigInvalid: `spark` is no session.
    """
    enabled(spark, storage_options, settings)


def enabled(
    spark: "SparkSession", storage_options: Mapping[str, str] | None, settings: Settings | None
) -> SqlStatements:
    """Does what `enable` does, and returns what runs the session's index statements. Raises what
    `enable` raises."""
    jar = _jar_for(spark)
    ready_index_types()
    with _enabling:
        extensions = _extensions(spark, jar)
        context = spark.sparkContext
        reader = _reader(context, storage_options, settings)
        statements = SqlStatements(reader, extensions)
        answers = Answers(reader, session_readers(spark))
        callback = Callback(answers, statements)
        extensions.enable(spark._jsparkSession, callback, _callback_client(context))
    return statements


def last_queries(spark: "SparkSession") -> list[tuple[RelationUse, ...]]:
    """How the latest queries of the calling thread that read Hudi tables read them, the oldest
    first, up to 16 of them: each occurrence of a table, with its reader and the reason. A query
    counts when Spark has planned it; `RelationUse.rows` is known once it has run. It belongs to the
    thread that wrote it down, and to the one that runs it; Spark may plan it on another, as for
    ``toPandas`` by Arrow.

    Raises:
        NativeModuleMissing, SparkUnsupported: as `enable`.
    """
    jar = _jar_for(spark)
    with _enabling:
        extensions = _extensions(spark, jar)
        readers = tuple(_readers.get(spark.sparkContext, ()))

    def read_of(use: int) -> Read | None:
        return next((read for each in readers if (read := each.read(use))), None)

    queries = USES_OF_QUERIES.validate_json(extensions.lastQueries())
    return [tuple(each.relation(read_of) for each in uses) for uses in queries]


def _reader(
    context: "SparkContext", storage_options: Mapping[str, str] | None, settings: Settings | None
) -> RelationReader:
    """The reader with these arguments: sessions of one Spark context share its open files. Those of
    contexts that have been stopped are closed."""
    for stopped in [each for each in _readers if each._jsc is None]:
        for reader in _readers.pop(stopped):
            reader.close()
    readers = _readers.setdefault(context, [])
    for each in readers:
        if each.has(storage_options, settings):
            return each
    readers.append(RelationReader(storage_options, settings))
    return readers[-1]


def _callback_client(context: "SparkContext") -> Any:
    """What calls Python in the JVM, with Python's end begun."""
    gateway: Any = context._gateway
    server = gateway.__dict__.get("_callback_server")
    if server is not None and server.is_shutdown:
        gateway._callback_server = None  # or PySpark would take it to be there
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    return JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()


def _jar_for(spark: "SparkSession") -> Path:
    """The jar of the extension, if the session can use it."""
    require_session(spark)
    try:
        import hudi_index_spark
    except ImportError as error:
        raise NativeModuleMissing(
            "The jar for Spark's queries is not installed.",
            remedy="Install it with pip install 'hudi-index-service[spark]', or hudi-index-spark "
            "alone.",
        ) from error
    version, jvm = str(spark.version), cast(Any, spark._jvm)
    scala = _line(str(jvm.scala.util.Properties.versionNumberString()))
    jar = Path(hudi_index_spark.jar_path(scala, _line(version)))
    if _line(version) != hudi_index_spark.SPARK and not jar.is_file():
        raise SparkUnsupported(
            f"The session is of Spark {version}, and the jars for Spark {hudi_index_spark.SPARK}."
        )
    if scala not in hudi_index_spark.SCALA:
        raise SparkUnsupported(
            f"The session's Scala is {scala}, and the jars are for "
            f"{' and '.join(hudi_index_spark.SCALA)}."
        )
    return jar


def _line(version: str) -> str:
    """The line of releases, such as 3.5, that a version belongs to."""
    return ".".join(version.split(".")[:2])


def _extensions(spark: "SparkSession", jar: Path) -> Any:
    """An object of the extension's class in the JVM, with the jar put on the session if need be:
    each Spark context has a class loader of its own for jars that are added."""
    present = _extensions_in_jvm(spark)
    if present is not None:
        if unfit := present.unfit():
            message, _, remedy = str(unfit).rpartition(". ")
            raise SparkUnsupported(f"{message}.", remedy=remedy)
        return present
    if not jar.is_file():
        raise NativeModuleMissing(
            f"The distribution hudi-index-spark is broken: {jar} is gone.",
            remedy="Install hudi-index-spark again.",
        )
    # What ADD JAR does, without SQL: for the driver and for executors, present and future ones.
    spark._jsparkSession.sessionState().resourceLoader().addJar(jar.as_uri())
    return _extensions_in_jvm(spark)


def _extensions_in_jvm(spark: "SparkSession") -> Any | None:
    """An object of the extension's class; None if the session's JVM has no such class."""
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    try:
        return loader.loadClass(_CLASS).newInstance()
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != "java.lang.ClassNotFoundException":
            raise
    return None


class Callback:
    """Answers the JVM. Called by threads of py4j, several at a time."""

    def __init__(self, answers: Answers, statements: SqlStatements) -> None:
        self._answers = answers
        self._statements = statements

    def apply(self, question: str, request: Any) -> Any:
        """The answer to a question. Never raises: py4j would end the thread on SystemExit, which a
        signal handler of the program may raise, and the JVM would wait for an answer."""
        try:
            match question:
                case "statement":
                    return self._statements.described(*request)
                case "run":
                    return self._statements.result(*request)
                case "rows":
                    session, text, use = request
                    rows = self._answers.rows(text, session, use)
                    return rows._jdf if isinstance(rows, DataFrame) else rows
                case "bind":
                    return self._answers.bound(request)
                case "function":
                    return self._answers.function(request)
            return self._answers.decision(request)
        except BaseException as error:
            log.exception("The JVM gets no answer.")
            return json.dumps({"failed": f"{type(error).__name__} in Python"})

    class Java:
        """An interface of Java's own: others would have to be on the class loader of the thread."""

        implements: ClassVar = ["java.util.function.BiFunction"]
