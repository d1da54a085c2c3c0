"""The rows that take a relation's place in a plan: read here where they are few, else by tasks."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from hudi_index_service.read.execution import Execution
from hudi_index_service.read.spark import module, rows_by_tasks
from hudi_index_service.sql.select.observed import Observed
from hudi_index_service.sql.select.scala import elements, sequence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_BYTES = 4 * 1024 * 1024
"""Rows of more bytes in memory are not handed over by the driver."""


def read_here(spark: "SparkSession", rows: pa.Table, output: list[Any | None]) -> Any:
    """Rows as a leaf of a plan.

    Args:
        output: Catalyst's attributes, in the order of the columns; new ones in the place of None.
    """
    jvm: Any = spark._jvm
    struct = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, to_arrow_schema(struct)) as writer:
        writer.write_table(rows.cast(to_arrow_schema(struct)))
    stream = jvm.java.io.ByteArrayInputStream(sink.getvalue().to_pybytes())
    channel = jvm.java.nio.channels.Channels.newChannel(stream)
    arrow = module(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters")
    frame = arrow.toDataFrame(
        arrow.getBatchesFromStream(channel), struct.json(), spark._jsparkSession
    )
    relation = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation
    made = frame.queryExecution().analyzed()
    attributes = [
        new if given is None else given
        for given, new in zip(output, elements(made.output()), strict=True)
    ]
    return relation(sequence(jvm, attributes), made.data(), False)


def read_by_tasks(
    spark: "SparkSession",
    run: Execution,
    output: list[Any],
    observed: Observed | None = None,
) -> Any:
    """The same, read by Spark tasks when the query runs. Raises what `rows_by_tasks` raises.

    Args:
        observed: Adds up what the tasks read.
    """
    attributes = sequence(spark._jvm, output)
    frame = rows_by_tasks(
        spark,
        run.reader,
        run.plan,
        None,
        output=attributes,
        history=run.history,
        observe=None if observed is None else observed.read_by_task,
    )
    return frame._jdf.queryExecution().analyzed()
