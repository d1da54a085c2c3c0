"""Statements about builds: OPTIMIZE TABLE, SHOW INDEXING and CANCEL INDEXING."""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hudi_index_service.build.outcomes import Build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import (
    BuildNotFound,
    ColumnNotFound,
    PredicateInvalid,
    PredicateUnsupported,
)
from hudi_index_service.index.metadata.build_records import BuildRecord
from hudi_index_service.maintain.status import TableStatus
from hudi_index_service.sql.grammar import Parser, TableReference
from hudi_index_service.sql.statement import Open, Result, TableStatement
from hudi_index_service.table import IndexedTable

log = logging.getLogger(__name__)

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

_OF_PROGRESS = ("files", "files_done", "rows_done", "rows_per_second", "eta_seconds")
_AFTER_WHERE = {"STRATEGY": {each.value.upper() for each in Strategy}, "DRY": {"RUN"}}


@dataclass(frozen=True, slots=True)
class OptimizeTable(TableStatement):
    """``OPTIMIZE TABLE t [WHERE predicate] [STRATEGY INCREMENTAL|ALL|REFRESH] [DRY RUN]``

    The predicate on partition columns limits the base files to partitions where it is TRUE. `where`
    begins with blanks, so that it keeps its lines and columns in the statement.
    """

    first_words = ("OPTIMIZE", "TABLE")
    result = ENTRIES

    table: TableReference
    strategy: Strategy = Strategy.INCREMENTAL
    dry_run: bool = False
    where: str | None = None

    @classmethod
    def parsed(cls, text: Parser) -> "OptimizeTable":
        table = text.table_reference("table name or 'path'")
        where = text.where(_AFTER_WHERE) if text.accept("WHERE") else None
        strategy = None
        if text.accept("STRATEGY"):
            words = [each for each in Strategy if text.accept(each.value.upper())]
            strategy = words[0] if words else text.fail("INCREMENTAL, ALL or REFRESH")
        dry_run = text.accept("DRY")
        if dry_run:
            text.expect("RUN")
            text.end_of_statement()
        text.end_of_statement(*([] if strategy else ["WHERE", "STRATEGY"]), "DRY RUN")
        return cls(table, strategy or Strategy.INCREMENTAL, dry_run, where)

    @property
    def changes_something(self) -> bool:
        return not self.dry_run

    def run(self, open: Open) -> Result:
        with open(self.table) as table:
            build = table.build(
                strategy=self.strategy, partitions=self._partitions(table), dry_run=self.dry_run
            )
        for warning in () if build.estimate is None else build.estimate.warnings:
            log.warning("%s", warning)
        return entries_result(build)

    def _partitions(self, table: IndexedTable) -> tuple[str, ...] | None:
        if self.where is None:
            return None
        try:
            return table.partitions(self.where)
        except (PredicateInvalid, PredicateUnsupported, ColumnNotFound) as error:
            # The predicate keeps the lines and columns of the statement.
            message = error.message.replace("of the predicate", "of the statement")
            raise error.reworded(message) from error


@dataclass(frozen=True, slots=True)
class ShowIndexing(TableStatement):
    """``SHOW INDEXING [FROM|IN] [TABLE] t [BUILD 'id']``

    The status of the table's indexes; with BUILD, the status or outcome of that build.
    """

    first_words = ("SHOW", "INDEXING")
    result = INDEXING
    changes_something = False

    table: TableReference
    build: str | None = None

    @classmethod
    def parsed(cls, text: Parser) -> "ShowIndexing":
        of = text.accept("FROM") or text.accept("IN")
        table = text.table() if of else text.table("FROM", "IN")
        build = text.build_id() if text.accept("BUILD") else None
        text.end_of_statement("" if build else "BUILD")
        return cls(table, build)

    def result_columns(self, open: Open) -> str:
        return INDEXING if self.build is None else BUILD

    def run(self, open: Open) -> Result:
        with open(self.table) as table:
            if self.build is None:
                return _indexing_result(table.status())
            for record in table.builds():
                if record.id == self.build:
                    return _build_result(record)
        raise BuildNotFound(f"{self.table} has no build {self.build}.")


@dataclass(frozen=True, slots=True)
class CancelIndexing(TableStatement):
    """``CANCEL INDEXING [TABLE] t``: requests that the table's running build stop."""

    first_words = ("CANCEL", "INDEXING")
    result = CANCELLED

    table: TableReference

    @classmethod
    def parsed(cls, text: Parser) -> "CancelIndexing":
        table = text.table()
        text.end_of_statement()
        return cls(table)

    def run(self, open: Open) -> Result:
        with open(self.table) as table:
            build_id = table.cancel()
        return Result(CANCELLED, [{"build_id": build_id, "requested": build_id is not None}])


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


def _indexing_result(status: TableStatus) -> Result:
    """`INDEXING`"""
    builds = [_build_row(record) for record in status.builds]
    rows = [
        {
            **each.to_dict(),
            "index_name": each.definition.name,
            "builds": builds,
            "lag_seconds": float(each.lag_seconds),
            "outliving_entries": status.outliving.entries,
            "outliving_bytes": status.outliving.bytes,
        }
        for each in status
    ]
    return Result(INDEXING, rows)


def _build_result(record: BuildRecord) -> Result:
    """`BUILD`"""
    entries = [
        {**each, "base_file": each.get("path"), "row_count": each.get("rows")}
        for each in record.outcomes
    ]
    return Result(BUILD, [{**_build_row(record), "entries": entries}])


def _build_row(record: BuildRecord) -> dict[str, Any]:
    """A build, with the columns of `BUILD` and of the builds of `INDEXING`, and others."""
    fields = record.to_dict()
    progress = fields["progress"] or {}
    return {
        **fields,
        **{name: progress.get(name) for name in _OF_PROGRESS},
        "build_id": record.id,
        "started": _moment(fields["started"]),
        "finished": _moment(fields["finished"]),
        "row_count": progress.get("rows"),
        "failures": [{**each, "base_file": each["path"]} for each in fields["failures"]],
    }


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
