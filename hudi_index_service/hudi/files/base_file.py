"""Reads base files as Parquet, with columns in the table's types.

Older base files may lack a column (it is NULL there) or hold it in a narrower type. Only
conversions with exactly Spark's result are made; any other conversion is left to Spark.

So are dates of the hybrid Julian calendar, as Spark before 3.0 wrote them, and later versions under
``spark.sql.parquet.datetimeRebaseModeInWrite=LEGACY``. The footer marks such a file, and Spark
converts its old dates to today's calendar on reading (its `DataSourceUtils.datetimeRebaseSpec`).
"""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hudi_index_service.arrow import nullable, numbers_array, rows_without_columns
from hudi_index_service.columns import (
    column_path,
    column_values,
    common_times,
    has_millis,
    in_millis,
)
from hudi_index_service.errors import NeedsSpark
from hudi_index_service.hudi.files.parquet_file import damage_named, row_batches, row_group_rows

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY_DATE_TIME = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"
CALENDAR_KEYS = [each.decode() for each in (_SPARK_VERSION, _LEGACY_DATE_TIME, _LEGACY_INT96)]
"""What a file says of its calendars."""

# From here on both calendars agree; for timestamps, also on the time zones' offsets.
_FIRST_DAY = date(1582, 10, 15)
_FIRST_MOMENT = datetime(1900, 1, 1, tzinfo=UTC)


def read_columns(
    file: "pq.ParquetFile",
    columns: pa.Schema,
    *,
    batch_rows: int,
    source: str,
    rows: range | None = None,
    row_groups: Collection[int] | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """Rows of an open base file in row order, with the columns and types of `columns`.

    Args:
        columns: Columns or struct fields by name; only their own pages are read.
        batch_rows: Maximum rows of a batch; fewer if rows are large (`BATCH_BYTES`).
        source: The file's path, for error messages.
        rows: The consecutive positions of the rows; None for all.
        row_groups: Row groups to read; None for all.

    Raises:
        StorageFailed: the file's pages are damaged.
        NeedsSpark: a column is stored in a type that cannot be converted here, or
            with dates in the legacy calendar.
    """
    present = present_columns(file.schema_arrow, columns, source=source)
    refuse_legacy_calendar(file.metadata, present, source=source)
    positions = range(file.metadata.num_rows) if rows is None else rows
    batches: Iterator[pa.RecordBatch]
    if present:
        batches = row_batches(
            file, present, rows=positions, batch_rows=batch_rows, row_groups=row_groups
        )
    else:
        count = _count(file, positions, row_groups)
        starts = range(0, count, batch_rows)
        batches = (rows_without_columns(min(batch_rows, count - start)) for start in starts)
    while True:
        with damage_named(source):
            batch = next(batches, None)
        if batch is None:
            return
        yield align(batch, columns, source=source)


def refuse_legacy_calendar(
    metadata: "pq.FileMetaData", columns: Sequence[str] | None = None, *, source: str
) -> None:
    """Refuses a file with dates in the Julian calendar, which Spark converts on reading.

    Args:
        columns: The columns to check, by their paths in the file; None for all.
        source: The file's path, for the error message.

    Raises:
        NeedsSpark: a column may hold such dates or timestamps.
    """
    roots = None if columns is None else {column.split(".", 1)[0] for column in columns}
    for column in sorted(_legacy_calendar_columns(metadata)):
        if roots is None or column in roots:
            raise NeedsSpark(
                f"{source} holds column {column} in the legacy calendar, with dates before 1582 or "
                "timestamps before 1900."
            )


def _legacy_calendar_columns(metadata: "pq.FileMetaData") -> set[str]:
    """The top-level columns that may hold dates before 1582-10-15 or timestamps before 1900 in the
    legacy calendar, because their statistics do not rule it out."""
    pairs = metadata.metadata or {}
    date_time, int96 = _in_legacy_calendar(pairs)
    if not (date_time or int96):
        return set()
    columns: set[str] = set()
    for row_group in map(metadata.row_group, range(metadata.num_row_groups)):
        for leaf in range(metadata.num_columns):
            chunk = row_group.column(leaf)
            kind = metadata.schema.column(leaf).logical_type.type
            is_int96 = chunk.physical_type == "INT96"
            if int96 if is_int96 else date_time and _has_old_days(kind, chunk):
                columns.add(chunk.path_in_schema.split(".", 1)[0])
    return columns


def may_be_in_legacy_calendar(pairs: Mapping[str, str]) -> bool:
    """Whether a file may hold dates or timestamps in the legacy calendar, whatever its statistics.

    Args:
        pairs: Of its key-value metadata, those with `CALENDAR_KEYS`.
    """
    return any(_in_legacy_calendar({key.encode(): each.encode() for key, each in pairs.items()}))


def _in_legacy_calendar(pairs: Mapping[bytes, bytes]) -> tuple[bool, bool]:
    """Whether dates and timestamps, and whether timestamps of 96 bits, are in that calendar."""
    version = _spark_version(pairs)
    return (
        _LEGACY_DATE_TIME in pairs or (version is not None and version < (3, 0)),
        _LEGACY_INT96 in pairs or (version is not None and version < (3, 1)),
    )


def _spark_version(pairs: Mapping[bytes, bytes]) -> tuple[int, ...] | None:
    numbers = pairs.get(_SPARK_VERSION, b"").decode(errors="replace").split(".")[:2]
    if len(numbers) < 2 or not all(number.isdigit() for number in numbers):
        return None
    return tuple(int(number) for number in numbers)


def _has_old_days(kind: str, chunk: "pq.ColumnChunkMetaData") -> bool:
    """Whether a column chunk of a logical type may hold days on which the calendars disagree."""
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


def refuse_unlike_spark(file: "pq.ParquetFile", columns: pa.Schema, *, source: str) -> None:
    """Refuses an open base file if Spark's values in these columns' types would differ from plain
    conversions. Raises NeedsSpark."""
    file_schema = file.schema_arrow
    present = present_columns(file_schema, columns, source=source)
    refuse_legacy_calendar(file.metadata, present, source=source)
    refuse_inexact(file_schema, columns, source=source)


def refuse_inexact(
    stored: pa.Schema, columns: pa.Schema, *, source: str, prints: bool = False
) -> None:
    """Refuses a base file of that schema if a column is not converted exactly to the table's type.

    Args:
        prints: Whether integers become text. Not where hudi-rs converts them.

    Raises:
        NeedsSpark: a column is stored in another type, or under a name of another case.
    """
    for field in columns:
        stored_field = _stored_field(stored, field.name, source)
        if stored_field is not None:
            _refuse_other_unit(stored_field, field, source)
            if not (prints and _is_printed(stored_field.type, field.type, field.name)):
                _refuse_inexact(stored_field.type, field.type, field.name, source)


def unread_columns(stored: pa.Schema, columns: pa.Schema, *, source: str) -> dict[str, str]:
    """The columns that `read_columns` refuses in a base file of that schema, with the reason."""
    reasons = {}
    for field in columns:
        try:
            refuse_inexact(stored, pa.schema([field]), source=source, prints=True)
        except NeedsSpark as error:
            reasons[field.name] = error.message
    return reasons


def present_columns(stored: pa.Schema, columns: pa.Schema, *, source: str) -> list[str]:
    """The paths of those of the columns that a file has; `stored` is the file's schema.

    Raises:
        NeedsSpark: the file has a column that differs only in case, or one whose times Hudi reads
            in another unit than the file states.
    """
    paths: list[str] = []
    for field in columns:
        stored_field = _stored_field(stored, field.name, source)
        if stored_field is not None:
            _refuse_other_unit(stored_field, field, source)
            path = ".".join(column_path(field.name))
            paths += _paths(path, stored_field.type, field.type)
    return paths


def _paths(path: str, stored: pa.DataType, target: pa.DataType) -> Iterator[str]:
    """The paths to read for a column: of a struct with further fields, only those in `target`.

    Args:
        path: The column's path.
    """
    if not (pa.types.is_struct(stored) and pa.types.is_struct(target)):
        yield path
        return
    positions = [stored.get_field_index(field.name) for field in target]
    if stored == target or not positions or min(positions) < 0:
        yield path  # a missing field may exist in another case: `align` checks
        return
    for position, field in zip(positions, target, strict=True):
        yield from _paths(f"{path}.{field.name}", stored.field(position).type, field.type)


def _stored_field(stored: pa.Schema, name: str, source: str) -> pa.Field | None:
    """The field with that name in a file; None if the file is older than the column."""
    match: pa.Field | None = None
    parent: pa.Schema | pa.StructType | None = stored
    for part in column_path(name):
        exact = -1 if parent is None else parent.get_field_index(part)
        match = None if parent is None or exact < 0 else parent.field(exact)
        if match is None:
            for field in parent or ():
                if field.name.lower() == part.lower():
                    raise NeedsSpark(f"{source} holds column {name} under the name {field.name}.")
        parent = match.type if match is not None and pa.types.is_struct(match.type) else None
    return match


def column_bytes(
    file: "pq.ParquetFile", columns: Sequence[str], row_groups: Collection[int] | None = None
) -> int:
    """Compressed bytes of the column chunks of the given column paths, in these row groups; None
    for all row groups."""
    prefixes = tuple(f"{column}." for column in columns)
    total = 0
    for number in range(file.metadata.num_row_groups) if row_groups is None else row_groups:
        row_group = file.metadata.row_group(number)
        for leaf in range(row_group.num_columns):
            chunk = row_group.column(leaf)
            if f"{chunk.path_in_schema}.".startswith(prefixes):
                total += chunk.total_compressed_size
    return total


def _count(file: "pq.ParquetFile", rows: range, row_groups: Collection[int] | None) -> int:
    """How many of the rows are in the row groups."""
    return sum(
        len(range(max(rows.start, group.start), min(rows.stop, group.stop)))
        for number, group in enumerate(row_group_rows(file))
        if row_groups is None or number in row_groups
    )


def align(batch: pa.RecordBatch, columns: pa.Schema, *, source: str) -> pa.RecordBatch:
    """The batch with exactly the columns of `columns`, in order, cast to their types; missing
    columns are NULL."""
    if not columns.names:
        return batch.select([])
    stored, result = batch.schema, nullable(columns)
    if stored.equals(result) or stored.equals(columns):
        return batch
    arrays = []
    for number, field in enumerate(columns):
        if number < len(stored) and stored.field(number).equals(result.field(number)):
            arrays.append(batch.column(number))
            continue
        stored_field = _stored_field(stored, field.name, source)
        arrays.append(
            pa.nulls(batch.num_rows, field.type)
            if stored_field is None
            else _converted(column_values(batch, field.name), field.type, field.name, source)
        )
    return pa.RecordBatch.from_arrays(arrays, schema=result)


def _converted(array: pa.Array, target: pa.DataType, column: str, source: str) -> pa.Array:
    if array.type == target:
        return array
    if _is_printed(array.type, target, column):
        return array.cast(target)
    _refuse_inexact(array.type, target, column, source)
    if _is_vector(array.type, target):
        return _vectors(array, target)
    try:
        return array.cast(target, safe=not pa.types.is_floating(target))
    except pa.ArrowException as error:
        raise NeedsSpark(
            # Without Arrow's message, which may hold a value.
            f"{source}: column {column} cannot be read as {target}: it holds {array.type} values "
            "that do not fit."
        ) from error


def _refuse_inexact(stored: pa.DataType, target: pa.DataType, column: str, source: str) -> None:
    if stored != target and not (_is_vector(stored, target) or _is_exact(stored, target)):
        raise NeedsSpark(
            f"{source} holds column {column} as {stored}, but the table's type is {target}."
        )


def _refuse_other_unit(stored: pa.Field, target: pa.Field, source: str) -> None:
    """Refuses stored microseconds that Hudi, from release 1.1 on, takes for milliseconds, as
    writers before it labelled some (its `SchemaRepair`). It does so only for times in UTC."""
    if not has_millis(target):
        return
    for own, field in common_times(stored, target):
        is_utc = own.type.tz is not None and field.type.tz is not None
        if is_utc and own.type.unit == "us" and in_millis(field):
            raise NeedsSpark(
                f"{source} holds column {target.name} in microseconds, but by the table's schema "
                "it counts milliseconds: what its times are depends on the release of Hudi."
            )


def _is_printed(stored: pa.DataType, target: pa.DataType, column: str) -> bool:
    """Whether Spark reads a column as the text of its integers. Within structs, arrays and maps it
    reads no such column."""
    is_text = pa.types.is_signed_integer(stored) and pa.types.is_string(target)
    return bool(is_text and len(column_path(column)) == 1)


def _is_vector(stored: pa.DataType, target: pa.DataType) -> bool:
    """Whether a column holds Hudi's vectors: their elements one after the other, as bytes."""
    if not (pa.types.is_fixed_size_binary(stored) and pa.types.is_list(target)):
        return False
    element = target.value_type
    is_element = pa.types.is_floating(element) or pa.types.is_int8(element)
    return bool(is_element and stored.byte_width % (element.bit_width // 8) == 0)


def _vectors(array: pa.FixedSizeBinaryArray, target: pa.ListType) -> pa.ListArray:
    """Hudi's vectors as arrays."""
    element, width = target.value_type, array.type.byte_width
    dimension = width // (element.bit_width // 8)
    _, data = array.buffers()
    elements = pa.Array.from_buffers(
        element,
        len(array) * dimension,
        [None, data.slice(array.offset * width, len(array) * width)],
    )
    offsets = numbers_array(np.arange(len(array) + 1, dtype=np.int32) * np.int32(dimension))
    return pa.ListArray.from_arrays(offsets, elements, type=target, mask=array.is_null())


def _is_exact(stored: pa.DataType, target: pa.DataType) -> bool:
    """Whether Arrow's cast gives the same values as Spark's reader of the same file."""
    t = pa.types
    if t.is_signed_integer(stored):
        return bool(
            t.is_floating(target)
            or (t.is_signed_integer(target) and target.bit_width >= stored.bit_width)
        )
    if t.is_timestamp(stored) and t.is_timestamp(target):
        # A zone is only a label in Arrow: both are UTC microseconds, or both are local.
        return (stored.tz is None) == (target.tz is None) or stored.unit == target.unit == "us"
    if t.is_decimal(stored) and t.is_decimal(target):
        return bool(
            target.scale >= stored.scale
            and target.precision - target.scale >= stored.precision - stored.scale
        )
    # Not float to double or text: Spark converts through the number that Java prints, so that 0.1
    # becomes 0.1; which digits those are depends on Java's release.
    if t.is_binary(stored) and t.is_string(target):  # an enum of Avro
        return True
    families: Sequence[tuple[object, ...]] = (
        (t.is_string, t.is_large_string),
        (t.is_binary, t.is_large_binary, t.is_fixed_size_binary),
    )
    for family in families:
        if any(check(stored) for check in family) and any(check(target) for check in family):  # type: ignore[operator]
            return True
    if t.is_struct(stored) and t.is_struct(target):
        return _is_exact_struct(stored, target)
    if t.is_nested(stored) and t.is_nested(target):
        # Field names inside arrays and maps vary between writers; Arrow checks the rest.
        inner = [(stored.field(n).type, target.field(n).type) for n in range(target.num_fields)]
        return stored.num_fields == target.num_fields and all(
            a == b or _is_exact(a, b) for a, b in inner
        )
    return False


def _is_exact_struct(stored: pa.StructType, target: pa.StructType) -> bool:
    """Whether a struct's cast is exact. Arrow and Spark both match fields by name. But Spark
    ignores case, and returns NULL for a struct if the file has none of its fields."""
    by_name = {field.name: field.type for field in stored}
    other_case = {name.lower() for name in by_name.keys() - {field.name for field in target}}
    common = [field for field in target if field.name in by_name]
    return (
        bool(common)
        and not any(field.name.lower() in other_case for field in target)
        and all(
            by_name[field.name] == field.type or _is_exact(by_name[field.name], field.type)
            for field in common
        )
    )
