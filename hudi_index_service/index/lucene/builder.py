"""Builds a Lucene index from Arrow record batches, through the Java helper `ArrowIndexer`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hudi_index_service.index.contract import BuiltIndex, ColumnSpec, ColumnStatistics
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.encoding import encode_array
from hudi_index_service.index.lucene.fields import (
    KEYWORD,
    NUMBER,
    TEXT_PREFIX,
    keyword_field,
    null_field,
    number_field,
    text_field,
)


@dataclass(frozen=True, slots=True)
class _Field:
    """A Lucene field, the column it comes from, and its kind in the Java helper's words."""

    name: str
    column: str
    kind: str  # "KEYWORD" | "TEXT" | "LONG" | "NULLS"


def _fields_of(spec: ColumnSpec) -> Iterator[_Field]:
    for field in spec.fields:
        if field == KEYWORD:
            yield _Field(keyword_field(spec.name), spec.name, "KEYWORD")
        elif field == NUMBER:
            yield _Field(number_field(spec.name), spec.name, "LONG")
        else:
            analyzer = field.removeprefix(TEXT_PREFIX)
            yield _Field(text_field(spec.name, analyzer), spec.name, "TEXT")
    yield _Field(null_field(spec.name), spec.name, "NULLS")


class LuceneBuilder:
    """See `hudi_index_service.index.contract.IndexBuilder`.

    Segments are written in row order and never merged, so that a row id is the segment's base plus
    the document's id; a merge would cost as much as the indexing itself.
    """

    def __init__(self, columns: Sequence[ColumnSpec], folder: Path, *, memory_mb: int) -> None:
        self._lucene = jvm.attach()
        from hudiindex import ArrowIndexer
        from java.nio.file import Paths
        from org.apache.lucene.index import IndexWriter, IndexWriterConfig, NoMergePolicy
        from org.apache.lucene.store import FSDirectory

        self._columns = tuple(columns)
        self._folder = folder
        self._fields = [field for spec in columns for field in _fields_of(spec)]
        self._null_counts = dict.fromkeys((spec.name for spec in columns), 0)
        self._rows = 0
        self._finished = False
        config = IndexWriterConfig(self._analyzer())
        config.setRAMBufferSizeMB(float(memory_mb))
        config.setMergePolicy(NoMergePolicy.INSTANCE)
        config.setUseCompoundFile(False)
        self._directory = FSDirectory.open(Paths.get(str(folder)))
        self._writer = IndexWriter(self._directory, config)
        self._indexer = ArrowIndexer(
            self._writer,
            self._lucene.JArray("string")([field.name for field in self._fields]),
            self._lucene.JArray("int")([getattr(ArrowIndexer, f.kind) for f in self._fields]),
        )

    def _analyzer(self) -> object:
        """An analyzer per text field; every other field is not analysed."""
        from java.util import HashMap
        from org.apache.lucene.analysis.core import (
            KeywordAnalyzer,
            SimpleAnalyzer,
            WhitespaceAnalyzer,
        )
        from org.apache.lucene.analysis.miscellaneous import PerFieldAnalyzerWrapper
        from org.apache.lucene.analysis.standard import StandardAnalyzer

        kinds = {
            "standard": StandardAnalyzer,
            "whitespace": WhitespaceAnalyzer,
            "simple": SimpleAnalyzer,
        }
        by_field = HashMap()
        for field in self._fields:
            if field.kind == "TEXT":
                by_field.put(field.name, kinds[field.name.split(".", 2)[1]]())
        return PerFieldAnalyzerWrapper(KeywordAnalyzer(), by_field)

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the next rows; the batch's buffers are read by address and not kept."""
        jvm.attach()
        alive: list[pa.Array] = []  # encoded arrays, referenced until the batch is indexed
        arrays = {name: batch.column(name) for name in self._null_counts}
        for number, field in enumerate(self._fields):
            array = arrays[field.column]
            if field.kind == "LONG":
                array = encode_array(array)
                alive.append(array)
            self._set_column(number, array)
        self._indexer.index(batch.num_rows)
        for name, array in arrays.items():
            self._null_counts[name] += array.null_count
        self._rows += batch.num_rows

    def _set_column(self, number: int, array: pa.Array) -> None:
        buffers = array.buffers()
        validity = buffers[0].address if buffers[0] is not None and array.null_count else 0
        data = buffers[-1].address if buffers[-1] is not None else 0
        offsets = buffers[1].address if len(buffers) == 3 and buffers[1] is not None else 0
        large = pa.types.is_large_string(array.type)
        self._indexer.setColumn(number, validity, offsets, data, large, array.offset)

    def finish(self) -> BuiltIndex:
        """Commits, and reports the files and what was learnt of the columns."""
        jvm.attach()
        from org.apache.lucene.util import Version

        if self._writer.getDocStats().maxDoc != self._rows:
            raise RuntimeError("Lucene holds another number of documents than rows were added.")
        truncated = {
            field.column: self._indexer.truncated(number)
            for number, field in enumerate(self._fields)
            if field.kind == "KEYWORD"
        }
        self._writer.commit()
        self._writer.close()
        distinct = self._distinct_keywords()
        self._directory.close()
        self._finished = True
        files = {p.name: p for p in self._folder.iterdir() if p.name != "write.lock"}
        return BuiltIndex(
            files=files,
            rows=self._rows,
            statistics={
                spec.name: ColumnStatistics(
                    null_count=self._null_counts[spec.name],
                    distinct=distinct.get(spec.name),
                    truncated=int(truncated.get(spec.name, 0)),
                )
                for spec in self._columns
            },
            versions={"lucene": str(Version.LATEST)},
        )

    def _distinct_keywords(self) -> dict[str, int]:
        """Terms per keyword column, added up over the segments: an upper bound."""
        from org.apache.lucene.index import DirectoryReader

        counts: dict[str, int] = {}
        reader = DirectoryReader.open(self._directory)
        for field in self._fields:
            if field.kind == "KEYWORD":
                terms = (leaf.reader().terms(field.name) for leaf in reader.leaves())
                total = sum(int(each.size()) for each in terms if each is not None)
                counts[field.column] = min(total, self._rows)
        reader.close()
        return counts

    def abort(self) -> None:
        """Closes Lucene's writer and directory; the folder is the caller's to remove."""
        if self._finished:
            return
        jvm.attach()
        self._writer.rollback()
        self._directory.close()
        self._finished = True
