"""What the index statements return: DataFrames whose columns stay the same, also without rows."""

from collections.abc import Iterable
from datetime import datetime

from pyspark.sql import DataFrame, Row, SparkSession

from hudi_index_service.build.record import BuildRecord
from hudi_index_service.build.run import Build
from hudi_index_service.definitions import IndexDefinition
from hudi_index_service.status import IndexStatus

INDEXES = """
    index_name STRING NOT NULL, index_type STRING NOT NULL, col_name STRING NOT NULL,
    options MAP<STRING, MAP<STRING, STRING>>, created TIMESTAMP, managed_by STRING NOT NULL
"""
"""CREATE INDEX (one row) and SHOW INDEXES. The first three columns are those of Hudi's own SHOW
INDEXES; `col_name` joins several by commas. `options`: column → its options, columns with options
only. `managed_by` is ``index service`` or, with neither options nor creation time, ``hudi``."""

DROPPED = "index_name STRING NOT NULL, dropped BOOLEAN NOT NULL"
"""DROP INDEX: one row; `dropped` is false if IF EXISTS found none."""

ENTRIES = """
    build_id STRING, index_type STRING NOT NULL, base_file STRING NOT NULL,
    columns ARRAY<STRING> NOT NULL, status STRING NOT NULL, row_count BIGINT, index_bytes BIGINT,
    seconds DOUBLE, error STRING
"""
"""OPTIMIZE TABLE and REFRESH INDEX: one row for each base file (path relative to the table) whose
entry was due; none if nothing was. `status`: ``due`` (DRY RUN), ``built``, ``present`` (another
build was faster), ``gone`` (Hudi's cleaner was) or ``failed``, with `error`."""

INDEXING = """
    index_name STRING NOT NULL, index_type STRING NOT NULL, base_files BIGINT NOT NULL,
    indexed BIGINT NOT NULL, covered BIGINT NOT NULL, index_bytes BIGINT NOT NULL,
    builds ARRAY<STRUCT<
        build_id: STRING, state: STRING, strategy: STRING, started: TIMESTAMP, finished: TIMESTAMP,
        due: BIGINT, built: BIGINT, failed: BIGINT, seconds: DOUBLE
    >> NOT NULL
"""
"""SHOW INDEXING: one row for each index. `base_files` are the snapshot's, `indexed` those with an
entry, `covered` those of them without log files above; `builds` are the table's, newest first, in
state ``running``, ``finished``, ``failed`` or ``dead``."""


def indexes_frame(
    spark: SparkSession, definitions: Iterable[IndexDefinition], hudis_own: Iterable[Row] = ()
) -> DataFrame:
    """`INDEXES`: the definitions, then the rows of Hudi's own SHOW INDEXES."""
    ours = [
        (
            definition.name,
            definition.index_type,
            ",".join(column.name for column in definition.columns),
            {column.name: column.options for column in definition.columns if column.options},
            datetime.fromisoformat(definition.created),
            "index service",
        )
        for definition in definitions
    ]
    theirs = [
        (row["index_name"], row["index_type"], row["col_name"], None, None, "hudi")
        for row in hudis_own
    ]
    return spark.createDataFrame([*ours, *theirs], INDEXES)


def dropped_frame(spark: SparkSession, name: str, dropped: bool) -> DataFrame:
    """`DROPPED`"""
    return spark.createDataFrame([(name, dropped)], DROPPED)


def entries_frame(spark: SparkSession, build: Build) -> DataFrame:
    """`ENTRIES`"""
    outcomes = {(outcome.path, outcome.index_type): outcome for outcome in build.outcomes}
    rows = []
    for due in build.due:
        outcome = outcomes.get((due.base_file.path, due.index_type))
        done = (
            ("due", None, None, None, None)
            if outcome is None
            else (
                outcome.status.value,
                outcome.rows,
                outcome.index_bytes,
                outcome.seconds,
                outcome.error,
            )
        )
        columns = [column.name for column in due.columns]
        rows.append((build.id or None, due.index_type, due.base_file.path, columns, *done))
    return spark.createDataFrame(rows, ENTRIES)


def indexing_frame(
    spark: SparkSession, statuses: Iterable[IndexStatus], builds: Iterable[BuildRecord]
) -> DataFrame:
    """`INDEXING`"""
    records = [_record(record) for record in builds]
    rows = [
        (
            status.definition.name,
            status.definition.index_type,
            status.base_files,
            status.indexed,
            status.covered,
            status.index_bytes,
            records,
        )
        for status in statuses
    ]
    return spark.createDataFrame(rows, INDEXING)


def _record(record: BuildRecord) -> tuple[object, ...]:
    finished = record.finished or {}
    return (
        f"{record.number:06d}",
        record.state,
        record.started.get("strategy"),
        _moment(record.started.get("started")),
        _moment(finished.get("finished")),
        record.started.get("due"),
        finished.get("built"),
        finished.get("failed"),
        finished.get("seconds"),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
