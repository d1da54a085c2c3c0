"""Builds a Lucene index from Arrow record batches, through the Java helper `ArrowIndexer`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_index_service.index.column_kinds import is_array
from hudi_index_service.index.contract import BuiltIndex, ColumnSpec, ColumnStatistics, FileRange
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.arrow_fields import (
    FieldValues,
    count_broken_text,
    field_values,
    fields_of,
)
from hudi_index_service.index.lucene.text.analyzers import ANALYZERS

_SEGMENTS_OF_A_PART = 2**16  # numbers reserved for each part of a base file; far more than needed


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
            lucene.JArray("string")([field.name for field in self._fields]),
            lucene.JArray("int")([getattr(ArrowIndexer, f.kind) for f in self._fields]),
            float(memory_mb),
            part * _SEGMENTS_OF_A_PART,
            threads,
        )
        for number, field in enumerate(self._fields):
            if field.analyzer:
                self._indexer.setAnalyzer(number, Analyzers.named(ANALYZERS[field.analyzer]))

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the next rows; the batch's buffers are read by address and not kept."""
        jvm.attach()
        arrays = {name: batch.column(name) for name in self._null_counts}
        # Referenced until the batch is indexed.
        values = [field_values(field, arrays[field.column]) for field in self._fields]
        for number, each in enumerate(values):
            self._set_column(number, each)
        document_count = self._indexer.index(batch.num_rows)
        for name, array in arrays.items():
            self._null_counts[name] += array.null_count
            self._broken_texts[name] += count_broken_text(array)
        self._rows += batch.num_rows
        if document_count != self._rows:
            raise RuntimeError("Lucene's number of documents differs from the number of rows.")

    def _set_column(self, number: int, values: FieldValues) -> None:
        array = values.values
        buffers = array.buffers()
        validity = buffers[0].address if buffers[0] is not None and array.null_count else 0
        data = buffers[-1].address if buffers[-1] is not None else 0
        offsets = buffers[1].address if len(buffers) == 3 and buffers[1] is not None else 0
        large = values.has_large_offsets
        self._indexer.setColumn(number, validity, offsets, data, large, array.offset)
        if values.offsets is not None:
            self._indexer.setElements(number, values.offsets.ctypes.data)

    def finish(self) -> BuiltIndex:
        """Commits the index, and returns its files and the columns' statistics."""
        jvm.attach()
        from org.apache.lucene.util import Version

        truncated = {
            field.column: self._indexer.truncated(number)
            for number, field in enumerate(self._fields)
            if field.kind == "KEYWORD"
        }
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
            if field.kind == "KEYWORD":
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
