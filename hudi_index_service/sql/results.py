"""Results of the index statements: DataFrames with fixed columns, even without rows."""

from collections.abc import Iterable
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from hudi_index_service.build.progress import BuildProgress
from hudi_index_service.build.record import BuildRecord
from hudi_index_service.build.run import Build
from hudi_index_service.hudi.hudi_native_indexes import OwnIndex
from hudi_index_service.maintain.drop import Dropped
from hudi_index_service.maintain.status import TableStatus
from hudi_index_service.metadata.definitions import IndexDefinition

INDEXES = """
    index_name STRING NOT NULL, index_type STRING NOT NULL, col_name STRING NOT NULL,
    options MAP<STRING, MAP<STRING, STRING>>, created TIMESTAMP, managed_by STRING NOT NULL
"""
"""CREATE and ALTER INDEX (one row) and SHOW INDEXES. The first three columns are those of Hudi's
own SHOW INDEXES; `index_type` and `col_name` join several values by commas. `options`: column → its
options, only for columns with options. `managed_by` is ``index service`` or, without a creation
time, ``hudi``."""

DROPPED = """
    index_name STRING NOT NULL, dropped BOOLEAN NOT NULL,
    not_purged ARRAY<STRUCT<entry: STRING, columns: ARRAY<STRING>, reason: STRING>>
"""
"""DROP INDEX: one row for the index, or for each that had one of the columns. `dropped` is false if
IF EXISTS found no index, and for an index that only lost columns. `not_purged`: with PURGE, the
table's entries that still contain dropped columns, and the reasons; another PURGE removes them."""

ENTRIES = """
    build_id STRING, index_type STRING NOT NULL, base_file STRING NOT NULL,
    columns ARRAY<STRING> NOT NULL, status STRING NOT NULL, row_count BIGINT, index_bytes BIGINT,
    seconds DOUBLE, error STRING
"""
"""OPTIMIZE TABLE and REFRESH INDEX: one row for each base file (path relative to the table) whose
entry was due. `status`: ``due`` (DRY RUN), ``built``, ``present`` (another build was faster),
``gone`` (Hudi's cleaner was faster) or ``failed``, with `error`. Of a dry run, `index_bytes` and
`seconds` (on one core) are estimates; NULL if unknown."""

INDEXING = """
    index_name STRING NOT NULL, index_type STRING NOT NULL, base_files BIGINT NOT NULL,
    covered BIGINT NOT NULL, index_bytes BIGINT NOT NULL,
    builds ARRAY<STRUCT<
        build_id: STRING, state: STRING, strategy: STRING, started: TIMESTAMP, finished: TIMESTAMP,
        due: BIGINT, built: BIGINT, failed: BIGINT, seconds: DOUBLE,
        files: BIGINT, files_done: BIGINT, row_count: BIGINT, rows_done: BIGINT,
        rows_per_second: DOUBLE, eta_seconds: DOUBLE, error: STRING,
        failures: ARRAY<STRUCT<base_file: STRING, index_type: STRING, error: STRING>>
    >> NOT NULL,
    due BIGINT NOT NULL, lag_instants BIGINT NOT NULL, lag_seconds DOUBLE NOT NULL,
    partitions ARRAY<STRUCT<
        partition: STRING, base_files: BIGINT, covered: BIGINT
    >> NOT NULL,
    outliving_entries BIGINT NOT NULL, outliving_bytes BIGINT NOT NULL
"""
"""SHOW INDEXING: one row for each index type of each index. `base_files` counts the snapshot's base
files, `covered` those with an entry, `due` those that the strategy incremental would build now;
`lag_…` is the waiting time of the oldest due one. `builds` are the table's last ten, newest first,
in state ``running``, ``finished``, ``failed``, ``cancelled``, ``stopped`` (its budget was spent) or
``dead``. `outliving_…` are the table's entries that outlive their base file, until the next
clean."""

BUILD = """
    build_id STRING NOT NULL, state STRING NOT NULL, strategy STRING, started TIMESTAMP,
    finished TIMESTAMP, host STRING, pid BIGINT, due BIGINT, built BIGINT, failed BIGINT,
    seconds DOUBLE, stopped_by STRING, cancel_requested BOOLEAN NOT NULL,
    files BIGINT, files_done BIGINT, row_count BIGINT, rows_done BIGINT,
    rows_per_second DOUBLE, eta_seconds DOUBLE, error STRING,
    entries ARRAY<STRUCT<
        base_file: STRING, index_type: STRING, status: STRING, row_count: BIGINT,
        index_bytes: BIGINT, seconds: DOUBLE, error: STRING
    >> NOT NULL
"""
"""SHOW INDEXING … BUILD: one row. `files` to `eta_seconds`: progress as of its last heartbeat, or
at its end. `entries`, once it has ended, with the statuses of `ENTRIES`, and ``left`` for entries
that were not processed. `stopped_by`: the budget limit that ended it."""

CANCELLED = "build_id STRING, requested BOOLEAN NOT NULL"
"""CANCEL INDEXING: one row. `build_id` is the build to be cancelled, NULL if none runs; it stops at
its next heartbeat, and SHOW INDEXING then shows it as ``cancelled``."""

NOTHING = ""
"""DROP and REFRESH INDEX of Hudi's own indexes."""


def indexes_frame(
    spark: SparkSession, definitions: Iterable[IndexDefinition], hudis_own: Iterable[OwnIndex] = ()
) -> DataFrame:
    """`INDEXES`: the definitions, then Hudi's own."""
    ours = [
        (
            definition.name,
            ",".join(definition.index_types),
            ",".join(column.name for column in definition.columns),
            {column.name: column.options for column in definition.columns if column.options},
            datetime.fromisoformat(definition.created),
            "index service",
        )
        for definition in definitions
    ]
    theirs = [
        (
            each.name,
            each.type,
            ",".join(each.columns),
            {column: dict(each.options) for column in each.columns if each.options},
            None,
            "hudi",
        )
        for each in hudis_own
    ]
    return spark.createDataFrame([*ours, *theirs], INDEXES)


def dropped_frame(spark: SparkSession, dropped: Dropped) -> DataFrame:
    """`DROPPED`"""
    remaining = None
    if dropped.purge is not None:
        remaining = [
            (each.folder, list(each.columns), each.reason) for each in dropped.purge.remaining
        ]
    rows = [(definition.name, True, remaining) for definition in dropped.indexes]
    rows += [(definition.name, False, remaining) for definition in dropped.narrowed]
    return spark.createDataFrame(rows, DROPPED)


def nothing_dropped_frame(spark: SparkSession, name: str) -> DataFrame:
    """`DROPPED` if IF EXISTS found no index."""
    return spark.createDataFrame([(name, False, None)], DROPPED)


def entries_frame(spark: SparkSession, build: Build) -> DataFrame:
    """`ENTRIES`"""
    outcomes = {(outcome.path, outcome.index_type): outcome for outcome in build.outcomes}
    estimates = build.estimate.entries if build.estimate is not None else ()
    rows = []
    for position, entry in enumerate(build.due):
        seconds, index_bytes = estimates[position] if position < len(estimates) else (None, None)
        outcome = outcomes.get((entry.base_file.path, entry.index_type))
        result = (
            ("due", None, index_bytes, seconds, None)
            if outcome is None
            else (
                outcome.status.value,
                outcome.rows,
                outcome.index_bytes,
                outcome.seconds,
                outcome.error,
            )
        )
        columns = [column.name for column in entry.columns]
        rows.append((build.id or None, entry.index_type, entry.base_file.path, columns, *result))
    return spark.createDataFrame(rows, ENTRIES)


def indexing_frame(spark: SparkSession, status: TableStatus) -> DataFrame:
    """`INDEXING`"""
    builds = [_record(record) for record in status.builds]
    rows = [
        (
            each.definition.name,
            each.index_type,
            each.base_files,
            each.covered,
            each.index_bytes,
            builds,
            each.due,
            each.lag_instants,
            float(each.lag_seconds),
            [(p.partition, p.base_files, p.covered) for p in each.partitions],
            status.outliving.entries,
            status.outliving.bytes,
        )
        for each in status
    ]
    return spark.createDataFrame(rows, INDEXING)


def build_frame(spark: SparkSession, record: BuildRecord) -> DataFrame:
    """`BUILD`"""
    fields, progress = record.to_dict(), record.progress
    row = (
        *(fields["build"], fields["state"], fields["strategy"]),
        *(_moment(fields["started"]), _moment(fields["finished"])),
        *(fields[key] for key in ("host", "pid", "due", "built", "failed")),
        *(fields[key] for key in ("seconds", "stopped_by", "cancel_requested")),
        *_progress(progress),
        fields["error"],
        [
            (
                *(each.get(key) for key in ("path", "index_type", "status", "rows")),
                *(each.get(key) for key in ("index_bytes", "seconds", "error")),
            )
            for each in record.outcomes
        ],
    )
    return spark.createDataFrame([row], BUILD)


def cancelled_frame(spark: SparkSession, build_id: str | None) -> DataFrame:
    """`CANCELLED`"""
    return spark.createDataFrame([(build_id, build_id is not None)], CANCELLED)


def _record(record: BuildRecord) -> tuple[object, ...]:
    finished = record.finished or {}
    return (
        record.id,
        str(record.state),
        record.started.get("strategy"),
        _moment(record.started.get("started")),
        _moment(finished.get("finished")),
        record.started.get("due"),
        finished.get("built"),
        finished.get("failed"),
        finished.get("seconds"),
        *_progress(record.progress),
        finished.get("error"),
        [(each["path"], each["index_type"], each["error"]) for each in record.failures],
    )


def _progress(now: BuildProgress | None) -> tuple[object, ...]:
    if now is None:
        return (None,) * 6
    counts = (now.files, now.files_done, now.rows, now.rows_done)
    return (*counts, now.rows_per_second, now.eta_seconds)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
