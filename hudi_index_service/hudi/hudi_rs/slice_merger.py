"""Merges log files with their base file, or with some of its rows, by hudi-rs.

hudi-rs reads a base file whole, whatever columns are wanted, and sorts its rows by key. The rows
that log files touch can be merged alone: rows of no key in them come out as they went in.

Slices that hudi-rs (0.5) merges differently from Spark are detected, and left to Spark:

- A base file that holds a record key twice, as after a bulk insert without combining, below a log
  block with its records' positions in that file (Hudi 1.x writes them by default, but not with the
  bucket index). Spark merges such a block by position, with every row that an update matched.
  hudi-rs merges by key, with the key's first row, as both do without positions.
- A damaged log file. Both skip a block within which the file ends. Other damage hudi-rs reads
  differently, or it ends the process (a corrupt length makes it allocate more memory than exists).
- Blocks on which Hudi's reader for Spark fails, but hudi-rs does not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.columns import column_field, common_times, in_millis
from hudi_index_service.errors import ColumnNotFound, NeedsSpark, StorageFailed
from hudi_index_service.hudi import gate
from hudi_index_service.hudi.avro_schema import arrow_schema
from hudi_index_service.hudi.files.base_file import (
    align,
    present_columns,
    refuse_inexact,
    refuse_unlike_spark,
)
from hudi_index_service.hudi.files.log_file import (
    RECORD_KEY,
    BlockKeys,
    BlockType,
    HeaderKey,
    LogFile,
    parse_log_file,
    read_log_file,
    record_keys,
)
from hudi_index_service.hudi.files.parquet_file import damage_named, open_parquet
from hudi_index_service.hudi.hudi_rs import hudi_rs_errors_named
from hudi_index_service.hudi.hudi_rs.timeline_copy import TableOnTimeline, TimelineCopy
from hudi_index_service.hudi.properties import is_true, split_columns
from hudi_index_service.hudi.snapshot import FileSlice, TouchedKeys
from hudi_index_service.storage.store import Storage

if TYPE_CHECKING:
    import hudi
    import pyarrow.parquet as pq

_BATCH_ROWS = 16_384
_SEQUENCE_NUMBER = "_hoodie_commit_seqno"
"""Orders rows of equal ordering values by their commits. It begins with the commit's time, which
takes its place where it is not wanted: rows of a base file precede those of its log files."""
_NEEDED = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name")
_DELETED = "_hoodie_is_deleted"
_small_numbers = count(1)
"""They begin the small base files' names. Under the base file's own name, hudi-rs would take the
positions in log blocks for positions in the small one."""

_MERGED = (BlockType.COMMAND, BlockType.DELETE, BlockType.AVRO_DATA, BlockType.PARQUET_DATA)
_ROLLBACK = b"0"  # the only command there is

_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """What a merge depends on besides the slice.

    Attributes:
        columns: The columns to return, in the table's types.
        ordering: The columns that decide between versions of a row, likewise.
        instant: The last instant whose log blocks are merged.
        properties: The table's properties.
    """

    columns: pa.Schema
    instant: str
    properties: Mapping[str, str]
    ordering: pa.Schema

    @classmethod
    def of(
        cls, properties: Mapping[str, str], schema: pa.Schema, columns: Sequence[str], instant: str
    ) -> Self:
        """The options for some columns of a schema. Raises ColumnNotFound."""
        missing = next((name for name in columns if name not in schema.names), None)
        if missing is not None:
            raise ColumnNotFound(f"Column {missing} is not in the table's schema.")
        ordering = (column_field(schema, name) for name in gate.ordering_columns(properties))
        return cls(
            pa.schema([schema.field(name) for name in columns]),
            instant,
            properties,
            pa.schema([field for field in ordering if field is not None]),
        )

    @property
    def relevant(self) -> pa.Schema:
        """All columns on whose values the returned ones depend."""
        others = [each for each in self.ordering if each.name not in self.columns.names]
        return pa.schema([*self.columns, *others])

    def of_hudi_rs(self) -> "hudi.HudiReadOptions":
        """The same for hudi-rs."""
        import hudi

        options = hudi.HudiReadOptions(projection=self.columns.names).with_batch_size(_BATCH_ROWS)
        return options.with_as_of_timestamp(self.instant)


class SliceMerger:
    """Merges slices of one table.

    Args:
        storage: The files below the table's base path.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        # Of log files, by path and size: whether they hold record positions, and their schemas.
        self._log_files: dict[tuple[str, int], tuple[bool, frozenset[bytes]]] = {}
        self._has_unique_keys: set[tuple[str, int]] = set()  # base files

    def rows(
        self, opened: TableOnTimeline, file_slice: FileSlice, options: MergeOptions
    ) -> Iterator[pa.RecordBatch]:
        """The merged rows of a slice.

        Args:
            opened: By its timeline hudi-rs recognizes, on version 6, the log blocks of delta
                commits that never completed.

        Raises:
            FileNotFoundError: a file of the slice is gone.
            NeedsSpark: the slice cannot be merged here.
        """
        base_file = file_slice.base_file
        with open_parquet(self._storage, base_file.path, base_file.size) as file:
            refuse_unlike_spark(file, options.relevant, source=base_file.path)
            self.check(file_slice, file, options.relevant, options.properties)
        paths = [base_file.path, *file_slice.log_files]
        with nullcontext() if opened.copy is None else opened.copy.holding(paths):
            with self._reading(file_slice):
                reader = opened.table.create_file_group_reader_with_options(options.of_hudi_rs())
            yield from self._batches(reader, base_file.path, file_slice, options)

    def check(
        self,
        file_slice: FileSlice,
        base_file: "pq.ParquetFile",
        columns: pa.Schema,
        properties: Mapping[str, str],
    ) -> None:
        """Reads the block headers of the slice's log files, and the record keys of its base file if
        they matter. A file that has passed is not read again.

        Args:
            base_file: The slice's base file, open.
            columns: The columns that matter, with the table's types.
            properties: The table's properties.

        Raises:
            NeedsSpark: Spark may merge the slice differently, or cannot.
            FileNotFoundError: Hudi has cleaned a log file.
        """
        positions = [self._check_log_file(path, columns) for path in file_slice.log_files]
        if any(positions):
            self._check_keys(file_slice, base_file, _key_columns(properties))

    def _check_log_file(self, path: str, columns: pa.Schema) -> bool:
        """Whether a block of the log file holds record positions."""
        key = (path, self._storage.size(path))
        known = self._log_files.get(key)
        if known is None:
            log_file = read_log_file(self._storage, *key)
            _refuse_unknown_blocks(log_file)
            has_positions = any(
                HeaderKey.RECORD_POSITIONS in block.header for block in log_file.blocks
            )
            known = has_positions, _block_schemas(log_file)
            _make_room(self._log_files)
            self._log_files[key] = known
        _refuse_other_units(path, known[1], columns)
        return known[0]

    def _check_keys(
        self, file_slice: FileSlice, file: "pq.ParquetFile", keys: Sequence[str]
    ) -> None:
        path, size = file_slice.base_file.path, file_slice.base_file.size
        if (path, size) in self._has_unique_keys:
            return
        key_schema = pa.schema([(key, pa.null()) for key in keys])
        columns = present_columns(file.schema_arrow, key_schema, source=path)
        if len(columns) < len(keys):
            raise NeedsSpark(f"{path} has log files above it, but no column {', '.join(keys)}.")
        with damage_named(path):
            duplicates = file.metadata.num_rows - _distinct(file.read(columns))
        if duplicates:
            raise NeedsSpark(
                f"{path} holds {duplicates} rows whose record key repeats another row's, and Spark "
                "merges its log files by position."
            )
        _make_room(self._has_unique_keys)
        self._has_unique_keys.add((path, size))

    def touched_keys(self, file_slice: FileSlice) -> TouchedKeys:
        """Every record key in the slice's log files; see `HudiTable.touched_keys`."""
        log_files = {path: self._storage.read(path) for path in file_slice.log_files}
        blocks: list[BlockKeys] = []
        for path, data in log_files.items():
            log_file = parse_log_file(path, data)
            _refuse_unknown_blocks(log_file)
            blocks += record_keys(log_file, data)
        keys = [key for each in blocks for key in each.keys]
        rows: list[int] = []
        for each in blocks:
            if each.rows is None or each.instant != file_slice.base_file.instant:
                return TouchedKeys(keys, None, log_files)
            rows += each.rows
        return TouchedKeys(keys, rows, log_files)

    def touched_rows(
        self,
        copy: TimelineCopy,
        file_slice: FileSlice,
        log_files: Mapping[str, bytes],
        keys: pa.StringArray,
        rows: pa.Table,
        options: MergeOptions,
    ) -> Iterator[pa.RecordBatch]:
        """The merged rows of all record keys in a slice's log files; see `HudiTable.read_touched`.
        Raises what `rows` raises, unless the base file as a whole is the reason.

        Args:
            copy: Of the table's timeline.
        """
        import pyarrow.parquet as pq

        rows = rows.append_column(RECORD_KEY, keys)
        if _SEQUENCE_NUMBER not in rows.schema.names:
            rows = rows.append_column(_SEQUENCE_NUMBER, rows.column(_NEEDED[0]))
        refuse_inexact(rows.schema, options.relevant, source=file_slice.name)
        for log_path, data in log_files.items():
            _refuse_other_units(
                log_path, _block_schemas(parse_log_file(log_path, data)), options.relevant
            )

        path = PurePosixPath(file_slice.base_file.path)
        small = path.with_name(f"touched{next(_small_numbers)}-{path.name}")
        written = copy.folder / small
        with copy.holding(file_slice.log_files, log_files):
            try:
                # Nested fields are named as in the base file, since those in log files are.
                pq.write_table(rows, written, compression="none", use_compliant_nested_type=False)
                with self._reading(file_slice):
                    key = (options.instant, tuple(options.columns.names))
                    reader = copy.reader(key, options.of_hudi_rs())
                yield from self._batches(reader, str(small), file_slice, options)
            finally:
                written.unlink(missing_ok=True)

    def _batches(
        self, reader: Any, base_file: str, file_slice: FileSlice, options: MergeOptions
    ) -> Iterator[pa.RecordBatch]:
        with self._reading(file_slice):
            batches = reader.read_file_slice_from_paths_stream(
                base_file, list(file_slice.log_files), options.of_hudi_rs()
            )
        while True:
            with self._reading(file_slice):
                batch = next(batches, None)
            if batch is None:
                return
            batch = _narrowed(pa.record_batch(batch), options.columns)
            yield align(batch, options.columns, source=file_slice.name)

    @contextmanager
    def _reading(self, file_slice: FileSlice) -> Iterator[None]:
        try:
            with hudi_rs_errors_named(f"{file_slice.name} cannot be read"):
                yield
        except StorageFailed:
            for path in (*file_slice.log_files, file_slice.name):
                self._storage.size(path)  # raises FileNotFoundError if that was the cause
            raise


def merged_columns(
    stored: pa.Schema, columns: Sequence[str], properties: Mapping[str, str]
) -> list[str]:
    """The columns of a base file that hudi-rs needs to merge rows; see `HudiTable.merged_columns`.

    Args:
        properties: The table's properties.
    """
    roots = {each.split(".", 1)[0] for each in gate.ordering_columns(properties)}
    needed = {*_NEEDED, _DELETED, *roots, *columns}
    return [
        each.name
        for each in stored
        if each.name != RECORD_KEY
        and (each.name in needed or not each.nullable)  # hudi-rs wants these of log files, too
    ]


def _narrowed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with integers in their former types. hudi-rs merges in the latest schema, in which
    a column may have been widened since the instant of the time travel. `align` refuses values that
    do not fit."""
    for at, field in enumerate(batch.schema):
        target = schema.field(field.name).type if field.name in schema.names else field.type
        integers = pa.types.is_signed_integer(field.type) and pa.types.is_signed_integer(target)
        if integers and target.bit_width < field.type.bit_width:
            with suppress(pa.ArrowInvalid):
                batch = batch.set_column(at, field.name, batch.column(at).cast(target))
    return batch


def _make_room(cache: "dict[Any, Any] | set[Any]") -> None:
    if len(cache) >= _MOST_REMEMBERED:
        cache.clear()


def _refuse_unknown_blocks(log_file: LogFile) -> None:
    """Raises NeedsSpark if a log file has blocks that are not merged here."""
    for block in log_file.blocks:
        command = block.header.get(HeaderKey.COMMAND_BLOCK_TYPE)
        partial = block.header.get(HeaderKey.IS_PARTIAL, b"").lower() == b"true"
        if (
            block.type not in _MERGED
            or (block.type is BlockType.COMMAND and command != _ROLLBACK)
            or partial
        ):
            kind = "of partial updates" if partial else block.type.name
            raise NeedsSpark(
                f"Log file {log_file.path} has a block at byte {block.start} that is not merged "
                f"here ({kind})."
            )


def _refuse_other_units(path: str, schemas: Iterable[bytes], columns: pa.Schema) -> None:
    """Refuses a log file if a column's times are counted in another unit there than by the table's
    schema: Hudi, from release 1.1 on, takes microseconds for milliseconds then.

    Args:
        path: The log file, for the error message.
        schemas: Those of its blocks, in Avro's JSON.
        columns: The columns that matter, with the table's types.

    Raises:
        NeedsSpark: a block's schema has another unit, or is not known here.
    """
    times = [each for each in columns if next(common_times(each, each), None)]
    for avro in schemas if times else ():
        try:
            written = arrow_schema(avro.decode())
        except (ValueError, KeyError, TypeError) as error:
            raise NeedsSpark(f"A block of log file {path} has an unknown schema.") from error
        for field in times:
            own = column_field(written, field.name)
            pairs = () if own is None else common_times(own, field)
            if any(in_millis(stored) != in_millis(target) for stored, target in pairs):
                raise NeedsSpark(
                    f"Log file {path} counts the times of column {field.name} in another unit than "
                    "the table's schema."
                )


def _block_schemas(log_file: LogFile) -> frozenset[bytes]:
    """The schemas of a log file's data blocks, in Avro's JSON."""
    headers = (block.header.get(HeaderKey.SCHEMA) for block in log_file.blocks)
    return frozenset(each for each in headers if each)


def _key_columns(properties: Mapping[str, str]) -> Sequence[str]:
    if is_true(properties, "hoodie.populate.meta.fields", default=True):
        return (RECORD_KEY,)
    return split_columns(properties.get("hoodie.table.recordkey.fields", ""))


def _distinct(rows: pa.Table) -> int:
    """The number of distinct rows."""
    while any(pa.types.is_struct(field.type) for field in rows.schema):
        rows = rows.flatten()
    if rows.num_columns == 1:
        return int(pc.count_distinct(rows.column(0), mode="all").as_py())
    numbered = rows.rename_columns([str(number) for number in range(rows.num_columns)])
    return int(numbered.group_by(numbered.column_names).aggregate([]).num_rows)
