"""The entry point class of the B+ tree index type."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from hudi_index_service.index.btree.fields import composite_field, composites, required_fields
from hudi_index_service.index.btree.lookup import known_lookup
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
    StoredColumn,
)
from hudi_index_service.predicate.expression import Predicate


class BTreeIndexType(IndexType):
    """See `hudi_index_service.index.contract.IndexType`."""

    name = "btree"
    contract = CONTRACT_VERSION
    version = 2
    oldest = 2
    fetches_blocks = True

    def fields(self, column: str, type: pa.DataType, options: Mapping[str, str]) -> tuple[str, ...]:
        """See `required_fields`."""
        return required_fields(column, type, options, kind=self.name)

    def key_field(self, column: str, type: pa.DataType, key: Sequence[str]) -> str:
        """See `composite_field`."""
        return composite_field(column, type, key, kind=self.name)

    def keys(self, columns: Sequence[StoredColumn]) -> tuple[tuple[str, ...], ...]:
        """The composite keys that the columns' fields name."""
        return tuple(composites(columns).values())

    def builder(
        self,
        columns: Sequence[ColumnSpec],
        folder: Path,
        *,
        memory_mb: int,
        part: int = 0,
        threads: int = 1,
    ) -> IndexBuilder:
        """A builder that writes to `folder`; the rows of every part begin at 0."""
        from hudi_index_service.index.btree.builder import BTreeBuilder

        return BTreeBuilder(columns, folder, memory_mb=memory_mb, threads=threads)

    def combine(self, parts: Sequence[PackedIndex], folder: Path) -> Mapping[str, Path | FileRange]:
        """One index, merged from those of the parts."""
        from hudi_index_service.index.btree.merge import combine

        return combine(parts, folder)

    def answer(self, leaf: Predicate, columns: Sequence[StoredColumn]) -> Answer:
        """Depends only on the columns' types and numbers of truncated values."""
        lookup = known_lookup(leaf, {column.name: column for column in columns})
        return Answer.NONE if lookup is None else lookup.answer

    def verify(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> list[str]:
        """Checks each leaf's checksum, order and counts, and compares them with the manifest."""
        from hudi_index_service.index.btree.check import check_index

        return check_index(index, columns)

    def together(self, readers: Sequence[IndexReader]) -> ManyReaders | None:
        """Asks them for single keys; see `hudi_index_service.index.btree.reader`."""
        from hudi_index_service.index.btree.reader import BTreeReaders

        return BTreeReaders(readers)

    def open(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> IndexReader:
        """Opens the packed tree; leaves are checked as they are read."""
        from hudi_index_service.index.btree.reader import BTreeReader

        return BTreeReader(index, columns)
