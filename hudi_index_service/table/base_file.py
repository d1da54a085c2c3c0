"""Base files read as Parquet: opening, the footer's digest, and columns in the table's types.

Older base files may lack a column (it is NULL there) or hold it in a narrower type. Only
conversions that give exactly Spark's values are made; for anything else the table is Spark's to
read.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import obstore
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_index_service.errors import StorageFailed, TableFeatureUnsupported
from hudi_index_service.storage import Storage

if TYPE_CHECKING:
    # A table opens without the native row reader.
    from hudi_index_parquet import Fetch

_FOOTER_TAIL = 8  # four bytes of length, then the magic


def open_parquet(storage: Storage, path: str) -> pq.ParquetFile:
    """Opens a base file for column reading. The caller closes it.

    INT96 timestamps come back in microseconds: nanoseconds overflow for dates that Spark writes.

    Raises:
        FileNotFoundError: Hudi has cleaned it.
        StorageFailed: it is no readable Parquet file.
    """
    if storage.is_local:
        source: pa.NativeFile = pa.OSFile(str(storage.local_path(path)))
    else:
        source = pa.PythonFile(obstore.open_reader(storage.store, path), mode="r")
    with _damage_named(path):
        return pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=True)


@contextmanager
def _damage_named(path: str) -> Iterator[None]:
    """Names the base file that Arrow cannot read; a missing file stays a missing file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise StorageFailed(
            f"{path} is no readable Parquet file: {str(error).rstrip('.')}.",
            remedy="The table itself is damaged; see what Spark says of this file.",
        ) from error


def row_source(storage: Storage, path: str) -> "str | Fetch":
    """The base file as the native row reader takes it: a local path, or a fetch function."""
    if storage.is_local:
        return str(storage.local_path(path))
    return partial(storage.read_ranges, path)


def footer_sha256(storage: Storage, path: str, size: int) -> str:
    """SHA-256 of the file's footer (metadata, length and magic), hexadecimal."""
    (tail,) = storage.read_ranges(path, [(size - _FOOTER_TAIL, size)])
    length = int.from_bytes(memoryview(tail)[:4], "little") + _FOOTER_TAIL
    (footer,) = storage.read_ranges(path, [(max(0, size - length), size)])
    return hashlib.sha256(memoryview(footer)).hexdigest()


def read_columns(
    file: pq.ParquetFile, columns: pa.Schema, *, batch_rows: int, source: str
) -> Iterator[pa.RecordBatch]:
    """All rows of an open base file in row order, with the columns and types of `columns`.

    Args:
        source: The file's path, for error messages.

    Raises:
        StorageFailed: the file's pages are damaged.
        TableFeatureUnsupported: a column is stored in a type that cannot be converted here.
    """
    present = present_columns(file, columns)
    stored = (
        file.iter_batches(batch_size=batch_rows, columns=present)
        if present
        else _rows_without_columns(file.metadata.num_rows, batch_rows)
    )
    while True:
        with _damage_named(source):
            batch = next(stored, None)
        if batch is None:
            return
        yield align(batch, columns, source=source)


def present_columns(file: pq.ParquetFile, columns: pa.Schema) -> list[str]:
    """Those of the columns that the file has."""
    stored = set(file.schema_arrow.names)
    return [name for name in columns.names if name in stored]


def column_bytes(file: pq.ParquetFile, columns: Sequence[str]) -> int:
    """Bytes (compressed) of the column chunks that hold the given top-level columns."""
    wanted = set(columns)
    total = 0
    for number in range(file.metadata.num_row_groups):
        row_group = file.metadata.row_group(number)
        for leaf in range(row_group.num_columns):
            chunk = row_group.column(leaf)
            if chunk.path_in_schema.split(".", 1)[0] in wanted:
                total += chunk.total_compressed_size
    return total


def _rows_without_columns(rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Batches that have a length and nothing else."""
    for start in range(0, rows, batch_rows):
        yield pa.record_batch([pa.nulls(min(batch_rows, rows - start))], names=["_"]).select([])


def align(batch: pa.RecordBatch, columns: pa.Schema, *, source: str) -> pa.RecordBatch:
    """The batch with exactly the columns of `columns`, in order, cast to their types; what the
    batch lacks is NULL."""
    if batch.schema.equals(columns) or not columns.names:
        return batch.select(columns.names)
    names = batch.schema.names
    arrays = [
        _converted(batch.column(names.index(field.name)), field.type, field.name, source)
        if field.name in names
        else pa.nulls(batch.num_rows, field.type)
        for field in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_nullable(columns))


def _nullable(columns: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in columns])


def _converted(array: pa.Array, target: pa.DataType, column: str, source: str) -> pa.Array:
    if array.type == target:
        return array
    if not _is_exact(array.type, target):
        raise TableFeatureUnsupported(
            f"{source} holds column {column} as {array.type}, the table has it as {target}."
        )
    try:
        return array.cast(target, safe=not pa.types.is_floating(target))
    except pa.ArrowException as error:
        raise TableFeatureUnsupported(
            f"{source}: column {column} cannot be read as {target}: {error}."
        ) from error


def _is_exact(stored: pa.DataType, target: pa.DataType) -> bool:
    """Whether Arrow's cast gives the values that Spark gives on reading the same file."""
    t = pa.types
    if t.is_signed_integer(stored):
        return bool(
            t.is_floating(target)
            or (t.is_signed_integer(target) and target.bit_width >= stored.bit_width)
        )
    if t.is_timestamp(stored) and t.is_timestamp(target):
        # A zone is but a label in Arrow: both are UTC microseconds, or both are local.
        return (stored.tz is None) == (target.tz is None) or stored.unit == target.unit == "us"
    if t.is_decimal(stored) and t.is_decimal(target):
        return bool(
            target.scale >= stored.scale
            and target.precision - target.scale >= stored.precision - stored.scale
        )
    families: Sequence[tuple[object, ...]] = (
        (t.is_float32, t.is_float64),
        (t.is_string, t.is_large_string),
        (t.is_binary, t.is_large_binary, t.is_fixed_size_binary),
    )
    for family in families:
        if any(check(stored) for check in family) and any(check(target) for check in family):  # type: ignore[operator]
            return not (t.is_float64(stored) and t.is_float32(target))
    # Field names inside nested types vary between writers; Arrow checks the rest.
    return bool(t.is_nested(stored) and t.is_nested(target))
