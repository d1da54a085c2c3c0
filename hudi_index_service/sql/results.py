"""Results of the index statements: rows with fixed columns."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hudi_index_service.build.progress import BuildProgress
from hudi_index_service.build.record import BuildRecord
from hudi_index_service.build.run import Build
from hudi_index_service.hudi.properties import OwnIndex
from hudi_index_service.index.metadata.column_fields import names_by_use
from hudi_index_service.index.metadata.definitions import IndexDefinition
from hudi_index_service.maintain.drop import Dropped
from hudi_index_service.maintain.status import TableStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INDEXES = """
    index_name STRING NOT NULL, index_type STRING NOT NULL, col_name STRING NOT NULL,
    options MAP<STRING, MAP<STRING, STRING>>, created TIMESTAMP, managed_by STRING NOT NULL
"""
"""CREATE and ALTER INDEX (one row) and SHOW INDEXES. The first three columns are those of Hudi's
own SHOW INDEXES; `index_type` and `col_name` join several values by commas. `options`: column → its
options, only for columns with options; a column that is only stored is there alone, with
``stored`` = ``only``. `managed_by` is ``index service`` or, without a creation
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


# Columns that are in the records under the same names.
_OF_ENTRY = ("index_type", "status", "index_bytes", "seconds", "error")
_OF_BUILD = (
    *("state", "strategy", "host", "pid", "due", "built", "failed", "seconds"),
    *("stopped_by", "cancel_requested", "error"),
)


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of a statement.

    Attributes:
        columns: In Spark's DDL, such as `INDEXES`.
        rows: By the names of columns, and of fields; what is missing is NULL.
    """

    columns: str
    rows: list[dict[str, Any]]

    def frame(self, spark: "SparkSession") -> "DataFrame":
        """The result as a DataFrame, which has the columns even without rows."""
        return spark.createDataFrame(self.rows, self.columns)


def indexes_result(
    definitions: Iterable[IndexDefinition], hudis_own: Iterable[OwnIndex] = ()
) -> Result:
    """`INDEXES`: the definitions, then Hudi's own."""
    ours = [
        {
            "index_name": definition.name,
            "index_type": ",".join(definition.index_types),
            "col_name": ",".join(names_by_use(definition)[0]),
            "options": {
                column.name: dict(column.options) for column in definition.columns if column.options
            },
            "created": datetime.fromisoformat(definition.created),
            "managed_by": "index service",
        }
        for definition in definitions
    ]
    theirs = [
        {
            "index_name": each.name,
            "index_type": each.type,
            "col_name": ",".join(each.columns),
            "options": {column: dict(each.options) for column in each.columns if each.options},
            "managed_by": "hudi",
        }
        for each in hudis_own
    ]
    return Result(INDEXES, [*ours, *theirs])


def dropped_result(dropped: Dropped) -> Result:
    """`DROPPED`"""
    remaining = None
    if dropped.purge is not None:
        remaining = [
            {"entry": each.folder, "columns": list(each.columns), "reason": each.reason}
            for each in dropped.purge.remaining
        ]
    rows = [(definition.name, True) for definition in dropped.indexes]
    rows += [(definition.name, False) for definition in dropped.narrowed]
    return Result(
        DROPPED,
        [{"index_name": name, "dropped": gone, "not_purged": remaining} for name, gone in rows],
    )


def nothing_dropped_result(name: str) -> Result:
    """`DROPPED` if IF EXISTS found no index."""
    return Result(DROPPED, [{"index_name": name, "dropped": False}])


def entries_result(build: Build) -> Result:
    """`ENTRIES`"""
    outcomes = {(outcome.path, outcome.index_type): outcome for outcome in build.outcomes}
    estimates = build.estimate.entries if build.estimate is not None else ()
    rows = []
    for position, entry in enumerate(build.due):
        row: dict[str, Any] = {
            "build_id": build.id or None,
            "index_type": entry.index_type,
            "base_file": entry.base_file.path,
        }
        outcome = outcomes.get((entry.base_file.path, entry.index_type))
        skipped = {} if outcome is None else outcome.skipped
        row["columns"] = [each.name for each in entry.columns if each.name not in skipped]
        if outcome is None:
            row["status"] = "due"
            if position < len(estimates):
                row["seconds"], row["index_bytes"] = estimates[position]
        else:
            row |= {
                "status": outcome.status.value,
                "row_count": outcome.rows,
                "index_bytes": outcome.index_bytes,
                "seconds": outcome.seconds,
                "error": outcome.error,
            }
        rows.append(row)
    return Result(ENTRIES, rows)


def indexing_result(status: TableStatus) -> Result:
    """`INDEXING`"""
    builds = [_record(record) for record in status.builds]
    rows = [
        {
            "index_name": each.definition.name,
            "index_type": each.index_type,
            "base_files": each.base_files,
            "covered": each.covered,
            "index_bytes": each.index_bytes,
            "builds": builds,
            "due": each.due,
            "lag_instants": each.lag_instants,
            "lag_seconds": float(each.lag_seconds),
            "partitions": [
                {"partition": p.partition, "base_files": p.base_files, "covered": p.covered}
                for p in each.partitions
            ],
            "outliving_entries": status.outliving.entries,
            "outliving_bytes": status.outliving.bytes,
        }
        for each in status
    ]
    return Result(INDEXING, rows)


def build_result(record: BuildRecord) -> Result:
    """`BUILD`"""
    fields = record.to_dict()
    entries = [
        {
            "base_file": each.get("path"),
            "row_count": each.get("rows"),
            **{key: each.get(key) for key in _OF_ENTRY},
        }
        for each in record.outcomes
    ]
    row = {
        "build_id": fields["build"],
        "started": _moment(fields["started"]),
        "finished": _moment(fields["finished"]),
        **{key: fields[key] for key in _OF_BUILD},
        **_progress(record.progress),
        "entries": entries,
    }
    return Result(BUILD, [row])


def cancelled_result(build_id: str | None) -> Result:
    """`CANCELLED`"""
    return Result(CANCELLED, [{"build_id": build_id, "requested": build_id is not None}])


def _record(record: BuildRecord) -> dict[str, Any]:
    finished = record.finished or {}
    return {
        "build_id": record.id,
        "state": str(record.state),
        "strategy": record.started.get("strategy"),
        "started": _moment(record.started.get("started")),
        "finished": _moment(finished.get("finished")),
        "due": record.started.get("due"),
        **{key: finished.get(key) for key in ("built", "failed", "seconds", "error")},
        **_progress(record.progress),
        "failures": [
            {"base_file": each["path"], "index_type": each["index_type"], "error": each["error"]}
            for each in record.failures
        ],
    }


def _progress(now: BuildProgress | None) -> dict[str, Any]:
    if now is None:
        return {}
    return {
        "files": now.files,
        "files_done": now.files_done,
        "row_count": now.rows,
        "rows_done": now.rows_done,
        "rows_per_second": now.rows_per_second,
        "eta_seconds": now.eta_seconds,
    }


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
