"""Builds a Lucene index from Arrow record batches, through the Java helper `ArrowIndexer`; joins
the indexes of a base file's parts into one that consists of all their segments."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_numbers, as_truths, integer_scalar, numbers_array
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import (
    BuiltIndex,
    ColumnSpec,
    ColumnStatistics,
    FileRange,
    PackedIndex,
)
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.directory import packed_directory
from hudi_index_service.index.lucene.fields import (
    ANALYZERS,
    KEYWORD,
    NULL_ELEMENTS,
    NULLS,
    NUMBER,
    RANKED_PREFIX,
    TEXT_PREFIX,
    WIDE_NUMBER,
    lucene_field,
)
from hudi_index_service.index.number_encoding import encode_array, encode_wide
from hudi_index_service.index.stored_column import element_type, is_array
from hudi_index_service.predicate.comparison import is_string
from hudi_index_service.predicate.evaluate import element_rows

_SEGMENTS_OF_A_PART = 2**16  # numbers reserved for each part of a base file; far more than needed
_LIST_OF_SEGMENTS = "segments_"
_KINDS = {
    KEYWORD: "KEYWORD",
    NUMBER: "LONG",
    WIDE_NUMBER: "BYTES16",
    NULLS: "NULLS",
    NULL_ELEMENTS: "NULLS",
}


@dataclass(frozen=True, slots=True)
class IndexField:
    """A Lucene field of a column.

    Attributes:
        field: One of the column's fields, `NULLS` or `NULL_ELEMENTS`.
        kind: The kind of content in the Java helper (see ArrowIndexer).
    """

    column: str
    field: str
    kind: str


def fields_of(spec: ColumnSpec) -> Iterator[IndexField]:
    """The Lucene fields of a column."""
    for field in (*spec.fields, NULLS, *([NULL_ELEMENTS] if is_array(spec.type) else [])):
        if field.startswith(TEXT_PREFIX):
            is_ranked = RANKED_PREFIX + field.removeprefix(TEXT_PREFIX) in spec.fields
            yield IndexField(spec.name, field, "RANKED_TEXT" if is_ranked else "TEXT")
        elif field in _KINDS:
            yield IndexField(spec.name, field, _KINDS[field])


def field_values(field: IndexField, column: pa.Array) -> tuple[pa.Array, np.ndarray | None]:
    """The values of a field for a batch's column: one per row; or for an array column, the elements
    of all rows in sequence, and as 64-bit integers the start of each row's elements, followed by
    the number of all elements."""
    if field.field == NULL_ELEMENTS:
        return _null_where_an_element_is(column), None
    if field.field == NULLS or not is_array(column.type):
        return _encode(field, column), None
    lengths = pc.list_value_length(column)
    lengths = pc.fill_null(lengths, integer_scalar(0, lengths.type))
    offsets = np.zeros(len(column) + 1, dtype=np.int64)
    np.cumsum(as_numbers(lengths), out=offsets[1:])
    return _encode(field, pc.list_flatten(column)), offsets


def _encode(field: IndexField, values: pa.Array) -> pa.Array:
    if field.field == NUMBER:
        return encode_array(values)
    return encode_wide(values) if field.field == WIDE_NUMBER else values


def _null_where_an_element_is(column: pa.Array) -> pa.Array:
    """An array that is NULL in exactly the rows whose array has a NULL element."""
    null = np.zeros(len(column), dtype=bool)
    rows = element_rows(column)
    null[rows[as_truths(pc.list_flatten(column).is_null())]] = True
    return numbers_array(np.zeros(len(column), dtype=np.int8), null)


def count_broken_text(column: pa.Array) -> int:
    """The number of strings (or elements) that are not UTF-8; Spark can write them."""
    if not is_string(element_type(column.type)):
        return 0
    values = pc.list_flatten(column) if is_array(column.type) else column
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return sum(_is_broken(value) for value in values.cast(pa.large_binary()))
    return 0


def _is_broken(value: pa.Scalar) -> bool:
    try:
        (value.as_py() or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


class LuceneBuilder:
    """See `hudi_index_service.index.contract.IndexBuilder`. Without a folder, the index's files
    stay in memory.

    Segments are written in row order and never merged, so that a row id is the segment's base plus
    the document's id; a merge would cost as much as the indexing itself. Each part of a base file
    has its own range of segment numbers, so that joining parts renames nothing.
    """

    def __init__(
        self,
        columns: Sequence[ColumnSpec],
        folder: Path | None,
        *,
        memory_mb: int,
        part: int = 0,
        threads: int = 1,
    ) -> None:
        lucene = jvm.attach()
        from hudiindex import Analyzers, ArrowIndexer, MemoryFiles
        from java.nio.file import Paths
        from org.apache.lucene.store import FSDirectory

        self._columns = tuple(columns)
        self._folder = folder
        self._fields = [field for spec in columns for field in fields_of(spec)]
        self._null_counts = dict.fromkeys((spec.name for spec in columns), 0)
        self._broken_texts = dict.fromkeys((spec.name for spec in columns), 0)
        self._rows = 0
        self._finished = False
        self._directory = (
            MemoryFiles.directory() if folder is None else FSDirectory.open(Paths.get(str(folder)))
        )
        self._indexer: Any = ArrowIndexer(
            self._directory,
            lucene.JArray("string")([lucene_field(f.field, f.column) for f in self._fields]),
            lucene.JArray("int")([getattr(ArrowIndexer, f.kind) for f in self._fields]),
            float(memory_mb),
            part * _SEGMENTS_OF_A_PART,
            threads,
        )
        for number, field in enumerate(self._fields):
            if field.field.startswith(TEXT_PREFIX):
                analyzer = Analyzers.named(ANALYZERS[field.field.removeprefix(TEXT_PREFIX)])
                self._indexer.setAnalyzer(number, analyzer)

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the next rows; the batch's buffers are read by address and not kept."""
        jvm.attach()
        arrays = {name: batch.column(name) for name in self._null_counts}
        # Referenced until the batch is indexed.
        values = [field_values(field, arrays[field.column]) for field in self._fields]
        for number, (array, offsets) in enumerate(values):
            self._set_column(number, array, offsets)
        document_count = self._indexer.index(batch.num_rows)
        for name, array in arrays.items():
            self._null_counts[name] += array.null_count
            self._broken_texts[name] += count_broken_text(array)
        self._rows += batch.num_rows
        if document_count != self._rows:
            raise RuntimeError("Lucene's number of documents differs from the number of rows.")

    def _set_column(self, number: int, array: pa.Array, elements: np.ndarray | None) -> None:
        buffers = array.buffers()
        validity = buffers[0].address if buffers[0] is not None and array.null_count else 0
        data = buffers[-1].address if buffers[-1] is not None else 0
        offsets = buffers[1].address if len(buffers) == 3 and buffers[1] is not None else 0
        large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
        self._indexer.setColumn(number, validity, offsets, data, large, array.offset)
        if elements is not None:
            self._indexer.setElements(number, elements.ctypes.data)

    def finish(self) -> BuiltIndex:
        """Commits the index, and returns its files and the columns' statistics."""
        jvm.attach()
        from org.apache.lucene.util import Version

        truncated = {
            field.column: self._indexer.truncated(number)
            for number, field in enumerate(self._fields)
            if field.field == KEYWORD
        }
        codec = str(self._indexer.codec())
        self._indexer.finish()
        distinct = self._distinct_keywords()
        files = self._files()
        self._close()
        return BuiltIndex(
            files=files,
            rows=self._rows,
            statistics={
                spec.name: ColumnStatistics(
                    null_count=self._null_counts[spec.name],
                    distinct=distinct.get(spec.name),
                    truncated=int(truncated.get(spec.name, 0)) + self._broken_texts[spec.name],
                )
                for spec in self._columns
            },
            versions={"lucene": str(Version.LATEST)},
            codec=codec,
        )

    def _files(self) -> dict[str, Path | FileRange | bytes]:
        if self._folder is not None:
            return {path.name: path for path in self._folder.iterdir()}
        from hudiindex import MemoryFiles

        files: dict[str, Path | FileRange | bytes] = {}
        for name in self._directory.listAll():
            content = np.empty(self._directory.fileLength(name), dtype=np.uint8)
            MemoryFiles.copy(self._directory, name, content.ctypes.data)
            files[str(name)] = content.tobytes()
        return files

    def _distinct_keywords(self) -> dict[str, int]:
        """The number of terms per keyword column, summed over segments: an upper bound."""
        counts: dict[str, int] = {}
        arrays = {spec.name for spec in self._columns if is_array(spec.type)}
        for number, field in enumerate(self._fields):
            if field.field == KEYWORD:
                total = int(self._indexer.terms(number))
                counts[field.column] = total if field.column in arrays else min(total, self._rows)
        return counts

    def abort(self) -> None:
        """Releases memory; the caller removes the folder."""
        if not self._finished:
            jvm.attach()
            self._close()

    def _close(self) -> None:
        self._finished = True
        self._indexer.close()
        self._directory.close()
        self._indexer = None  # also releases the unfinished segment


def combine(parts: Sequence[PackedIndex], folder: Path) -> Mapping[str, Path | FileRange]:
    """See `hudi_index_service.index.contract.IndexType.combine`. Reads only the parts' lists of
    segments; the segments' own files stay in place."""
    lucene = jvm.attach()
    from hudiindex import SegmentList
    from java.nio.file import Paths
    from org.apache.lucene.store import Directory, FSDirectory

    rows = sum(part.rows for part in parts)
    with ExitStack() as stack:
        target = FSDirectory.open(Paths.get(str(folder)))
        stack.callback(target.close)
        try:
            directories = []
            for part in parts:
                directories.append(packed_directory(part))
                stack.callback(directories[-1].close)
            row_count = SegmentList.join(lucene.JArray("object")(directories, Directory), target)
        except lucene.JavaError as error:
            raise EntryInvalid(f"Parts of an index cannot be joined: {error}.") from error
    if row_count != rows:
        raise EntryInvalid(f"Parts of an index have {row_count} rows together, not {rows}.")
    files: dict[str, Path | FileRange] = {path.name: path for path in folder.iterdir()}
    for part in parts:
        for name, (offset, length) in part.members.items():
            if not name.startswith(_LIST_OF_SEGMENTS):
                files[name] = FileRange(part.path, offset, length)
    return files
