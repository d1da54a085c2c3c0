"""Spark's own results for predicates, on the same data as the evaluator's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Answer:
    """Spark's results for one predicate."""

    truth: list[bool | None]
    """The truth value of each row, in the order of the rows."""
    kept: list[int]
    """The positions of the rows that the predicate keeps as a filter condition."""


SparkAnswers = Callable[..., list[Answer]]


@pytest.fixture
def spark_answers(spark: "SparkSession", tmp_path: Path) -> SparkAnswers:
    """Evaluates many predicates on a table with Spark, in one job."""

    def evaluate_all(
        data: pa.Table, predicates: Sequence[str], *, time_zone: str = "UTC"
    ) -> list[Answer]:
        path = str(tmp_path / "data.parquet")
        pq.write_table(data.append_column("_row", pa.array(range(len(data)), pa.int32())), path)
        # Compiling hundreds of expressions takes far longer than interpreting them.
        settings = {
            "spark.sql.session.timeZone": time_zone,
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        }
        previous = {key: spark.conf.get(key) for key in settings}
        for key, value in settings.items():
            spark.conf.set(key, value)
        try:
            frame = spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(path)
            truths = [f"({where}) AS p{i}" for i, where in enumerate(predicates)]
            kept = [
                f"CASE WHEN ({where}) THEN _row END AS k{i}" for i, where in enumerate(predicates)
            ]
            rows = frame.selectExpr(*truths, *kept).collect()
        finally:
            for key, value in previous.items():
                spark.conf.set(key, value)
        count = len(predicates)
        return [
            Answer(
                [row[i] for row in rows],
                [row[count + i] for row in rows if row[count + i] is not None],
            )
            for i in range(count)
        ]

    return evaluate_all
