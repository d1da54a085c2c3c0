"""Detects slices that hudi-rs (0.5) merges differently from Spark, and leaves them to Spark.

- A base file that holds a record key twice, as after a bulk insert without combining, below a log
  block with its records' positions in that file (Hudi 1.x writes them by default, but not with the
  bucket index). Spark merges such a block by position, with every row that an update matched.
  hudi-rs merges by key, with the key's first row, as both do without positions.
- A damaged log file. Both skip a block within which the file ends. Other damage hudi-rs reads
  differently, or it ends the process (a corrupt length makes it allocate more memory than exists).
- Blocks on which Hudi's reader for Spark fails, but hudi-rs does not.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.columns import column_field, common_times, in_millis
from hudi_index_service.errors import NeedsSpark
from hudi_index_service.hudi.avro_schema import arrow_schema
from hudi_index_service.hudi.files.base_file import present_columns
from hudi_index_service.hudi.files.log_file import (
    RECORD_KEY,
    BlockType,
    HeaderKey,
    LogFile,
    read_log_file,
)
from hudi_index_service.hudi.files.parquet_file import damage_named
from hudi_index_service.hudi.properties import is_true, split_columns
from hudi_index_service.hudi.snapshot import FileSlice
from hudi_index_service.storage.store import Storage

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_MERGED = (BlockType.COMMAND, BlockType.DELETE, BlockType.AVRO_DATA, BlockType.PARQUET_DATA)
_ROLLBACK = b"0"  # the only command there is

_MOST_REMEMBERED = 10_000


class MergeChecks:
    """Checks of a table's slices before they are merged. A file that has passed is not read again.

    Args:
        storage: The files below the table's base path.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        # Of log files, by path and size: whether they hold record positions, and their schemas.
        self._log_files: dict[tuple[str, int], tuple[bool, frozenset[bytes]]] = {}
        self._has_unique_keys: set[tuple[str, int]] = set()  # base files

    def check(
        self,
        file_slice: FileSlice,
        base_file: "pq.ParquetFile",
        columns: pa.Schema,
        properties: Mapping[str, str],
    ) -> None:
        """Reads the block headers of the slice's log files, and the record keys of its base file if
        they matter.

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
            refuse_unknown_blocks(log_file)
            has_positions = any(
                HeaderKey.RECORD_POSITIONS in block.header for block in log_file.blocks
            )
            known = has_positions, block_schemas(log_file)
            _make_room(self._log_files)
            self._log_files[key] = known
        refuse_other_units(path, known[1], columns)
        return known[0]

    def _check_keys(
        self, file_slice: FileSlice, file: "pq.ParquetFile", keys: Sequence[str]
    ) -> None:
        assert file_slice.base_file is not None, "a slice without one is not merged here"
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


def _make_room(cache: "dict[Any, Any] | set[Any]") -> None:
    if len(cache) >= _MOST_REMEMBERED:
        cache.clear()


def refuse_unknown_blocks(log_file: LogFile) -> None:
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


def refuse_other_units(path: str, schemas: Iterable[bytes], columns: pa.Schema) -> None:
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


def block_schemas(log_file: LogFile) -> frozenset[bytes]:
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
