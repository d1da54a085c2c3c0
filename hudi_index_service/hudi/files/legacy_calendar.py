"""Detects base files with dates of the hybrid Julian calendar, as Spark before 3.0 wrote them.

Later versions still write them under ``spark.sql.parquet.datetimeRebaseModeInWrite=LEGACY``. The
footer marks such a file, and Spark converts its old dates to today's calendar on reading (Spark's
`DataSourceUtils.datetimeRebaseSpec`). The service does not, so it leaves those columns to Spark.
"""

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_VERSION = b"org.apache.spark.version"
_LEGACY_DATE_TIME = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"

# From here on both calendars agree; for timestamps, also on the time zones' offsets.
_FIRST_DAY = date(1582, 10, 15)
_FIRST_MOMENT = datetime(1900, 1, 1, tzinfo=UTC)


def legacy_calendar_columns(metadata: "pq.FileMetaData") -> set[str]:
    """The top-level columns that may hold dates before 1582-10-15 or timestamps before 1900 in the
    legacy calendar, because their statistics do not rule it out."""
    pairs = metadata.metadata or {}
    version = _version(pairs)
    date_time = _LEGACY_DATE_TIME in pairs or (version is not None and version < (3, 0))
    int96 = _LEGACY_INT96 in pairs or (version is not None and version < (3, 1))
    if not (date_time or int96):
        return set()
    columns: set[str] = set()
    for row_group in range(metadata.num_row_groups):
        for leaf in range(metadata.num_columns):
            chunk = metadata.row_group(row_group).column(leaf)
            is_int96 = chunk.physical_type == "INT96"
            legacy = int96 if is_int96 else date_time and _has_old_days(metadata, chunk)
            if legacy:
                columns.add(chunk.path_in_schema.split(".", 1)[0])
    return columns


def _version(pairs: dict[bytes, bytes]) -> tuple[int, ...] | None:
    numbers = pairs.get(_VERSION, b"").decode(errors="replace").split(".")[:2]
    if len(numbers) < 2 or not all(number.isdigit() for number in numbers):
        return None
    return tuple(int(number) for number in numbers)


def _has_old_days(metadata: "pq.FileMetaData", chunk: "pq.ColumnChunkMetaData") -> bool:
    leaf = next(
        column
        for column in (metadata.schema.column(i) for i in range(metadata.num_columns))
        if column.path == chunk.path_in_schema
    )
    kind = leaf.logical_type.type
    if kind not in ("DATE", "TIMESTAMP"):
        return False
    statistics = chunk.statistics
    if statistics is None:
        return True
    if not statistics.has_min_max:
        return not (statistics.has_null_count and statistics.null_count == chunk.num_values)
    first = _FIRST_DAY if kind == "DATE" else _FIRST_MOMENT
    try:
        least = statistics.min
    except (OverflowError, ValueError):
        return True  # beyond the range of Python's dates
    if isinstance(least, datetime) and least.tzinfo is None:
        least = least.replace(tzinfo=UTC)
    return bool(least < first)
