"""The values of columns that an entry stores beside its index: a Parquet file of all rows in the
base file's order, with small pages, so that single rows are read from it soon.

It is the first member of the packed file. So the positions in its footer, of which a stripped copy
is another member, are positions in the packed file.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from hudi_index_parquet import Footer, ParquetReadError, stripped_footer

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import PackedIndex
from hudi_index_service.index.packed_file import read_member

if TYPE_CHECKING:
    import pyarrow.parquet as pq  # only builds need it

VALUES = "parquet-values"
METADATA = "parquet-values-metadata"

_PAGE_ROWS = 1024
_GROUP_ROWS = 128 * 1024
_FOOTER_TAIL = 8  # four bytes of length, then the magic
_GROUP_BYTES = 16 * 2**20  # before compression; the writer holds them


class ValuesWriter:
    """Writes the values of some columns.

    Args:
        columns: The columns with their types.
        path: The file to write; None to keep it in memory.
    """

    def __init__(self, columns: pa.Schema, path: Path | None) -> None:
        import pyarrow.parquet as pq  # only builds need it

        self.null_counts = dict.fromkeys(columns.names, 0)
        self._columns = columns
        self._path = path
        self._sink = pa.BufferOutputStream() if path is None else pa.OSFile(str(path), "wb")
        self._writer = pq.ParquetWriter(
            self._sink,
            columns,
            compression="lz4",
            use_dictionary=False,
            write_statistics=False,
            write_page_index=True,
            write_page_checksum=True,
            max_rows_per_page=_PAGE_ROWS,
        )
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the next rows; columns besides the stored ones are ignored."""
        batch = batch.select(self._columns.names)
        for name, column in zip(self._columns.names, batch.columns, strict=True):
            self.null_counts[name] += column.null_count
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting_rows >= _GROUP_ROWS or self._waiting_bytes >= _GROUP_BYTES:
            self._write()

    def finish(self) -> dict[str, Path | bytes]:
        """Completes the file. Returns the members of the entry's packed file, by name."""
        self._write()
        self._writer.close()
        content = self._sink.getvalue() if self._path is None else None
        self._sink.close()
        if content is None:
            assert self._path is not None, "a file, if it is not in memory"
            return {VALUES: self._path, METADATA: stripped_footer(self._path)}

        def fetch(ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
            return [content[start:end] for start, end in ranges]

        return {VALUES: content.to_pybytes(), METADATA: stripped_footer(fetch, size=content.size)}

    def close(self) -> None:
        """Gives up; safe to call at any time."""
        self._waiting = []
        self._writer.close()
        self._sink.close()

    def _write(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting)
            self._writer.write_table(table, row_group_size=_GROUP_ROWS)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0


def joined_values(parts: Sequence[PackedIndex], path: Path) -> dict[str, Path | bytes]:
    """The values of consecutive parts of a base file as one file, at `path`; nothing if the parts
    have none.

    Raises:
        EntryInvalid: a part is damaged.
    """
    writer: ValuesWriter | None = None
    try:
        for part in parts:
            if VALUES not in part.members:
                continue
            with pa.OSFile(str(part.path)) as packed:
                file = _values_in(packed, part)
                writer = writer or ValuesWriter(file.schema_arrow, path)
                for batch in file.iter_batches():
                    writer.add(batch)
        return {} if writer is None else writer.finish()
    except (pa.ArrowException, OSError) as error:
        raise EntryInvalid(f"A part of {path.name} cannot be read: {error}.") from error
    finally:
        if writer is not None:
            writer.close()


def _values_in(packed: pa.NativeFile, part: PackedIndex) -> "pq.ParquetFile":
    """The values in a part's packed file. It is not mapped: if another process cuts a mapped file,
    reading it ends the process."""
    import pyarrow.parquet as pq

    start, length = part.members[VALUES]
    if start != 0:  # the positions in the footer are those in the packed file
        raise EntryInvalid(f"{part.path} does not begin with its values.")
    packed.seek(max(0, length - _FOOTER_TAIL))
    size = int.from_bytes(packed.read(4), "little") + _FOOTER_TAIL
    packed.seek(max(0, length - size))
    metadata = pq.read_metadata(pa.BufferReader(packed.read(size)))
    # Not all row groups at once.
    return pq.ParquetFile(
        packed, metadata=metadata, pre_buffer=False, page_checksum_verification=True
    )


def without_values(index: PackedIndex) -> PackedIndex:
    """The members that are the index type's."""
    members = {n: place for n, place in index.members.items() if n not in (VALUES, METADATA)}
    return replace(index, members=members)


def values_footer(index: PackedIndex) -> Footer | None:
    """The footer of an entry's values, whose positions are in the packed file; None if it has none.

    Raises:
        EntryInvalid: it is damaged.
    """
    if METADATA not in index.members or index.members.get(VALUES, (1, 0))[0] != 0:
        return None
    try:
        return Footer(read_member(index, METADATA))
    except ParquetReadError as error:
        raise EntryInvalid(f"{index.path} holds no footer of its values: {error}.") from error
