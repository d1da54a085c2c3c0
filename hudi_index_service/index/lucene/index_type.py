"""The entry point class of the Lucene index type."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import pyarrow as pa

from hudi_index_service.index.contract import (
    CONTRACT_VERSION,
    Answer,
    ColumnSpec,
    FileRange,
    IndexBuilder,
    IndexReader,
    IndexType,
    ManyReaders,
    PackedIndex,
    SmallerOptions,
    StoredColumn,
    TextRanker,
)
from hudi_index_service.index.lucene.fields import (
    KEYWORD,
    NUMBER,
    RANKED_PREFIX,
    WIDE_NUMBER,
    required_fields,
    text_analyzer,
)
from hudi_index_service.index.lucene.lookup import known_lookup
from hudi_index_service.predicate.comparison import is_string
from hudi_index_service.predicate.expression import AnalyzedText, Predicate


class LuceneIndexType(IndexType):
    """See `hudi_index_service.index.contract.IndexType`."""

    name = "lucene"
    contract = CONTRACT_VERSION
    version = 1
    codecs = ("Lucene912", None)  # before entries named it, Lucene 9.12 wrote all
    fetches_blocks = True
    runs_jvm = True

    def fields(self, column: str, type: pa.DataType, options: Mapping[str, str]) -> tuple[str, ...]:
        """See `required_fields`."""
        return required_fields(column, type, options)

    def builder(
        self,
        columns: Sequence[ColumnSpec],
        folder: Path,
        *,
        memory_mb: int,
        part: int = 0,
        threads: int = 1,
    ) -> IndexBuilder:
        """A builder that writes Lucene's files to `folder`."""
        # Imported here, since only building and opening need PyLucene and a JDK.
        from hudi_index_service.index.lucene.builder import LuceneBuilder

        return LuceneBuilder(columns, folder, memory_mb=memory_mb, part=part, threads=threads)

    def memory_builder(
        self, columns: Sequence[ColumnSpec], *, memory_mb: int, threads: int = 1
    ) -> IndexBuilder:
        """A builder that keeps Lucene's files on Java's heap."""
        from hudi_index_service.index.lucene.builder import LuceneBuilder

        return LuceneBuilder(columns, None, memory_mb=memory_mb, threads=threads)

    def combine(self, parts: Sequence[PackedIndex], folder: Path) -> Mapping[str, Path | FileRange]:
        """The unchanged segments of all parts, and a new list of segments."""
        from hudi_index_service.index.lucene.builder import combine

        return combine(parts, folder)

    def answer(self, leaf: Predicate, columns: Sequence[StoredColumn]) -> Answer:
        """Depends on the columns' layouts alone; needs no JVM."""
        lookup = known_lookup(leaf, {column.name: column for column in columns})
        return Answer.NONE if lookup is None else lookup.answer

    def analyzed_text(self, column: ColumnSpec) -> AnalyzedText | None:
        """The words that the analyzer of the column's text field returns."""
        from hudi_index_service.index.lucene.full_text import matches

        analyzer = text_analyzer(column.fields)
        return None if analyzer is None else AnalyzedText(analyzer, matches)

    def text_ranker(self, column: ColumnSpec) -> TextRanker | None:
        """A ranker, if the column has the option ``ranked``."""
        from hudi_index_service.index.lucene.full_text import ranked_texts

        ranked = any(field.startswith(RANKED_PREFIX) for field in column.fields)
        return ranked_texts if ranked else None

    def check_runtime(self) -> None:
        """Checks for PyLucene and the JDK, without starting a JVM."""
        from hudi_index_service.index.lucene import jvm

        jvm.require()

    def start_runtime(self) -> None:
        """Starts the JVM."""
        from hudi_index_service.index.lucene import jvm

        jvm.start()

    def ready_runtime(self) -> None:
        """Starts the JVM, and loads Lucene's classes for reading."""
        from hudi_index_service.index.lucene import jvm

        jvm.attach()
        import_module("hudi_index_service.index.lucene.reader")

    def verify(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> list[str]:
        """Runs Lucene's CheckIndex, and compares the counts of values and NULLs with the
        manifest."""
        from hudi_index_service.index.lucene.check import check_index

        return check_index(index, columns)

    def holds_values(self, column: ColumnSpec) -> bool:
        """Not if the column is only analyzed."""
        return any(field in (KEYWORD, NUMBER, WIDE_NUMBER) for field in column.fields)

    def smaller_options(self, column: ColumnSpec) -> SmallerOptions | None:
        """For a text: its words instead of its whole values."""
        if KEYWORD not in column.fields or not is_string(column.type):
            return None
        analyzer = text_analyzer(column.fields) or "standard"
        return SmallerOptions({"analyzer": analyzer, "keyword": "false"}, "=, IN and ranges")

    def together(self, readers: Sequence[IndexReader]) -> ManyReaders:
        """Asks them for few terms or points; see `hudi_index_service.index.lucene.reader`."""
        from hudi_index_service.index.lucene.reader import LuceneReaders

        return LuceneReaders(readers)

    def open(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> IndexReader:
        """Opens the packed Lucene index; blocks are verified as they are first read."""
        from hudi_index_service.index.lucene.reader import LuceneReader

        return LuceneReader(index, columns)
