"""The rows that replace a relation in a plan: few are read in the driver, more by tasks."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from hudi_index_service.read.execution import Execution
from hudi_index_service.read.spark.frames import jvm_name, rows_by_tasks, scala_object
from hudi_index_service.sql.catalyst.scala import elements, sequence
from hudi_index_service.sql.relations.observed import Observed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SQL = "org.apache.spark.sql"


def read_here(spark: "SparkSession", rows: pa.Table, output: list[Any | None]) -> Any:
    """The rows as a leaf of a plan.

    Args:
        output: Catalyst's attributes, in the order of the columns; None creates a new one.
    """
    jvm: Any = spark._jvm
    struct = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, to_arrow_schema(struct)) as writer:
        writer.write_table(rows.cast(to_arrow_schema(struct)))
    stream = jvm_name(jvm, "java.io.ByteArrayInputStream")(sink.getvalue().to_pybytes())
    channel = jvm_name(jvm, "java.nio.channels.Channels").newChannel(stream)
    arrow = scala_object(jvm, f"{_SQL}.execution.arrow.ArrowConverters")
    frame = arrow.toDataFrame(
        arrow.getBatchesFromStream(channel), struct.json(), spark._jsparkSession
    )
    relation = jvm_name(jvm, f"{_SQL}.catalyst.plans.logical.LocalRelation")
    plan = frame.queryExecution().analyzed()
    attributes = [
        new if attribute is None else attribute
        for attribute, new in zip(output, elements(plan.output()), strict=True)
    ]
    return relation(sequence(jvm, attributes), plan.data(), False)


def read_by_tasks(
    spark: "SparkSession",
    run: Execution,
    output: list[Any],
    observed: Observed | None = None,
) -> Any:
    """A leaf whose rows Spark tasks read when the query runs. Raises the errors of `rows_by_tasks`.

    Args:
        observed: Sums what the tasks read.
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
