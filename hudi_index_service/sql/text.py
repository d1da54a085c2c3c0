"""DataFrames as text, with values in Spark's format."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hudi_index_service.errors import StatementFailed
from hudi_index_service.row_formats import SPARK_OPTIONS, csv_line
from hudi_index_service.sql.build_statements import ENTRIES
from hudi_index_service.sql.spark_errors import first_line
from hudi_index_service.sql.statement import TableStatement
from hudi_index_service.sql.statements import parse_statement

_ALL_ROWS = 2**31 - 100  # Spark's maximum; Spark itself requests one more


def table_lines(frame: DataFrame) -> Iterator[str]:
    """The table that Spark's ``show`` prints, with every row and without truncation."""
    if frame.columns:
        yield frame._jdf.showString(_ALL_ROWS, 0, False).rstrip("\n")


def json_lines(frame: DataFrame) -> Iterator[str]:
    """An object for each row, as `hudi-index query` prints it."""
    if frame.columns:
        row = F.to_json(F.struct(*_unambiguous(frame)), SPARK_OPTIONS)
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
    """The frame with unique column names."""
    return frame.toDF(*(f"_{number}" for number in range(len(frame.columns))))


def _unambiguous(frame: DataFrame) -> list[Column]:
    return [F.col(f"_{number}").alias(name) for number, name in enumerate(frame.columns)]
