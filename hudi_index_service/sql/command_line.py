"""SQL on the command line: a Spark session with Hudi, and results as text, with values in Spark's
format."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_index_service.errors import ConfigInvalid, StatementFailed
from hudi_index_service.hudi.bundle import how_to_get_it, named_bundle
from hudi_index_service.hudi.spark import HUDI_SETTINGS
from hudi_index_service.row_formats import SPARK_OPTIONS, csv_line
from hudi_index_service.sql.build_statements import ENTRIES
from hudi_index_service.sql.errors import first_line
from hudi_index_service.sql.statement import TableStatement
from hudi_index_service.sql.statements import parse_statement

# Quiet, and only on this machine.
_CONF = {
    "spark.master": "local[*]",
    "spark.app.name": "hudi-index sql",
    **HUDI_SETTINGS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Hudi 1.2.0 loses rows of LIKE 'prefix%' when it skips files by column statistics.
    "hoodie.enable.data.skipping": "false",
}
_ALL_ROWS = 2**31 - 100  # Spark's maximum; Spark itself requests one more


@contextmanager
def own_session(conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session in this process, stopped at the end of the context.

    Args:
        conf: Settings of Spark and Hudi, which override the session's own. Hudi's bundle is named
            by ``spark.jars`` or ``spark.jars.packages``, else by the variable HUDI_INDEX_HUDI_JAR,
            else it is one of Spark's own jars.

    Raises:
        ConfigInvalid: the variable names no file, or the session has no Hudi.
    """
    settings: dict[str, Any] = {**_CONF, **conf}
    if not {"spark.jars", "spark.jars.packages"} & conf.keys() and (bundle := named_bundle()):
        settings["spark.jars"] = str(bundle)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _standard_output_for_results():
        spark = SparkSession.builder.config(map=settings).getOrCreate()
    try:
        for key, value in settings.items():
            if not key.startswith("spark."):
                spark.conf.set(key, value)
        _refuse_without_hudi(spark)
        yield spark
    finally:
        spark.stop()


@contextmanager
def _standard_output_for_results() -> Iterator[None]:
    """Makes the JVM inherit standard error as its standard output, since Hudi's libraries print
    there."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def _refuse_without_hudi(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        loader.loadClass("org.apache.hudi.DefaultSource")
    except Py4JJavaError as error:
        raise ConfigInvalid("The Spark session has no Hudi.", remedy=how_to_get_it()) from error


def table_lines(frame: DataFrame) -> Iterator[str]:
    """The table that Spark's ``show`` prints, with every row and without truncation."""
    if frame.columns:
        yield frame._jdf.showString(_ALL_ROWS, 0, False).rstrip("\n")


def json_lines(frame: DataFrame) -> Iterator[str]:
    """An object for each row, as `hudi-index query` prints it."""
    if frame.columns:
        columns = (F.col(f"_{number}").alias(name) for number, name in enumerate(frame.columns))
        row = F.to_json(F.struct(*columns), SPARK_OPTIONS)
        for each in _with_unique_names(frame).select(row).toLocalIterator():
            yield each[0]


def csv_lines(frame: DataFrame) -> Iterator[str]:
    """A line of names, and one for each row; NULL is an empty field, an empty text is quoted."""
    if not frame.columns:
        return
    yield csv_line(frame.columns)
    unique_frame = _with_unique_names(frame)
    texts = unique_frame.select(*(F.col(each).cast("string") for each in unique_frame.columns))
    for row in texts.toLocalIterator():
        yield csv_line(row)


FORMATS: dict[str, Callable[[DataFrame], Iterator[str]]] = {
    "table": table_lines,
    "json": json_lines,
    "csv": csv_lines,
}


def has_failed_builds(statement: str, frame: DataFrame) -> bool:
    """Whether a statement's result contains an entry that could not be built."""
    parsed = parse_statement(statement)
    builds = isinstance(parsed, TableStatement) and parsed.result == ENTRIES
    return builds and "status" in frame.columns and not frame.where("status = 'failed'").isEmpty()


@contextmanager
def spark_errors_named() -> Iterator[None]:
    """Raises StatementFailed for errors of Spark or Hudi."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise StatementFailed(first_line(error)) from error


def _with_unique_names(frame: DataFrame) -> DataFrame:
    """The frame with its columns named by their numbers: ``_0``, ``_1``, …"""
    return frame.toDF(*(f"_{number}" for number in range(len(frame.columns))))
