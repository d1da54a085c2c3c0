"""Spark's own results for predicates, on the same data as the evaluator's."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SparkAnswers = Callable[..., list[list[bool | None]]]
"""Makes a list for each predicate: its truth value in each row, in the order of the rows."""


@pytest.fixture
def spark_answers(spark: "SparkSession", tmp_path: Path) -> SparkAnswers:
    """Evaluates many predicates on a table with Spark, in one job."""
    from tests.proof.answers import INTERPRETED, settings_of

    def evaluate_all(
        data: pa.Table, predicates: Sequence[str], *, time_zone: str = "UTC"
    ) -> list[list[bool | None]]:
        path = str(tmp_path / "data.parquet")
        pq.write_table(data, path)
        with settings_of(spark, INTERPRETED | {"spark.sql.session.timeZone": time_zone}):
            frame = spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(path)
            truths = [f"({where}) AS p{i}" for i, where in enumerate(predicates)]
            rows = frame.selectExpr(*truths).collect()
        return [list(column) for column in zip(*rows, strict=True)]

    return evaluate_all
