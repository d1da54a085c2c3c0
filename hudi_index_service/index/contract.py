"""The contract that every index type fulfils: Lucene, B+ tree, and plug-ins such as HBase.

An index type builds one index per base file over several columns. It answers *leaves* of a
predicate in negation normal form with the row ids for which the leaf is TRUE. A leaf is `Compare`,
`In`, `IsNull`, `Like`, `RLike`, `Match`, `ArrayContains`, or `Not` directly above one of these. The
caller combines leaves and re-checks supersets. An index type may also answer several conjuncts with
one look-up: an `And` of conjuncts on one column, such as both ends of a range, or a `Conjunction`
of conjuncts on any columns.

An index is a set of files. The service packs them into one, publishes it with a manifest, copies it
to where it is read, and removes it. A type may `store` most of an index elsewhere, for example in a
database. Its files then lead the reader to the rest, which `IndexType.destroy` removes.

`IndexType` and `IndexReader` are base classes. A type implements their abstract methods; every
other method has a default that is right for a type without that ability.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexDefinitionInvalid
from hudi_index_service.index.routed import Routed
from hudi_index_service.index.stored_column import ColumnSpec as ColumnSpec
from hudi_index_service.index.stored_column import ColumnStatistics as ColumnStatistics
from hudi_index_service.index.stored_column import StoredColumn as StoredColumn
from hudi_index_service.index.type_costs import TypeCosts as TypeCosts
from hudi_index_service.predicate.expression import (
    AnalyzedText,
    In,
    Match,
    Predicate,
    Together,
)

CONTRACT_VERSION = 2
"""Version of this contract. It grows when index types made for the previous version stop working;
new methods with a default do not change it."""

Positions: TypeAlias = npt.NDArray[np.int32]
"""Positions of entries among those that are asked together."""

Truths: TypeAlias = npt.NDArray[np.bool_]


class Conjunction(Together):
    """Conjuncts on several columns, all to be looked up. A type answers them together if that takes
    no longer than the cheapest conjunct followed by a check of each of its rows."""

    __slots__ = ()


class Answer(Enum):
    """How well an index answers a leaf."""

    EXACT = "exact"  #: exactly the rows where the leaf is TRUE
    SUPERSET = "superset"  #: all of those rows, perhaps more; the residual decides
    NONE = "none"  #: no answer; every row stays a candidate


@dataclass(frozen=True, slots=True)
class FileRange:
    """A range of bytes in a local file."""

    path: Path
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """A finished index on the local disk or in memory: its files by name, per-column statistics,
    and what wrote it (`IndexType.codecs`)."""

    files: Mapping[str, Path | FileRange | bytes]
    rows: int
    statistics: Mapping[str, ColumnStatistics]
    versions: Mapping[str, str] = field(default_factory=dict)
    codec: str | None = None


@dataclass(frozen=True, slots=True)
class SmallerOptions:
    """Options of a column with which its index is smaller.

    Attributes:
        options: All of the column's options.
        loses: The conditions that the index then no longer answers, in words.
    """

    options: Mapping[str, str]
    loses: str


class IndexBuilder(Protocol):
    """Builds an index from the rows of one base file, added in row order."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the next rows. The batch holds the columns of the specs, in the same order."""

    def finish(self) -> BuiltIndex:
        """Completes the index; nothing can be added afterwards."""

    def abort(self) -> None:
        """Gives up and releases files and memory. Safe to call at any time, even after finish."""


class MissingBlocks(Protocol):
    """The source of the blocks that a packed data file lacks. Safe to use from several threads.

    Attributes:
        number: A number unique within this process.
    """

    number: int

    def fetch(self, block: int) -> None:
        """Ensures that the local file holds the whole block.

        Raises:
            EntryInvalid, PermissionDenied, StorageFailed: the block cannot be fetched.
        """


@dataclass(frozen=True, slots=True)
class PackedIndex:
    """An entry's packed data file on the local disk.

    Attributes:
        path: The local file.
        members: Name → (offset, length) of each file packed in it.
        length: Length of the whole file in bytes: the size of the index.
        block_size: Bytes per checksummed block.
        block_crc32: CRC-32 of each block, in order; the last block may be shorter.
        rows: The number of rows of the base file that the index covers.
        blocks: Fetches missing blocks: those whose checksum differs. None if no block is missing,
            as for every index type without `fetches_blocks`.
    """

    path: Path
    members: Mapping[str, tuple[int, int]]
    length: int
    block_size: int
    block_crc32: Sequence[int]
    rows: int
    blocks: MissingBlocks | None = None


class RankedRows(Protocol):
    """Some rows of a full-text search that can be scored."""

    def statistics(self) -> np.ndarray:
        """The integers on which scores are based. Those of several `RankedRows` of one search are
        added up to get those of all their rows."""

    def best(self, k: int, statistics: np.ndarray, among: BitMap | None) -> list[tuple[int, float]]:
        """The `k` rows (fewer if fewer match) with the highest scores under the given statistics,
        highest first, each with its score. Only rows in `among`, if given."""


class RankedTexts(Protocol):
    """Collects the texts of rows that no entry holds, in row order, to score them."""

    def add(self, texts: pa.Array) -> None:
        """Adds the texts of the next rows."""

    def ranked(self) -> RankedRows:
        """All added rows, ready to be scored; nothing can be added afterwards."""


TextRanker: TypeAlias = Callable[[Match], AbstractContextManager[RankedTexts]]
"""Scores rows that no entry holds, as an entry would: returns an empty collection for their texts,
whose results are valid only within the block."""


class IndexReader(ABC):
    """An open index of one base file. Safe to use from several threads."""

    @abstractmethod
    def row_ids(self, leaf: Predicate) -> BitMap:
        """The row ids for a leaf, or conjuncts, for which `IndexType.answer` is not NONE.

        Raises:
            EntryInvalid: index bytes are damaged.
        """

    @abstractmethod
    def estimate(self, leaf: Predicate) -> int:
        """An estimate of the rows that `row_ids` finds, capped at the number of rows; cheaper than
        `row_ids` itself."""

    def steps(self, leaf: Predicate) -> int:
        """An estimate of the steps that `row_ids` takes: one for a row, which is handed over, and
        several for a value whose rows are to be found."""
        return self.estimate(leaf)

    @abstractmethod
    def close(self) -> None:
        """Releases files and memory."""

    def candidates(self, leaf: Predicate, most: int | None) -> BitMap | None:
        """The row ids or a superset of them, whichever is cheaper, for a caller that checks every
        row. None if that takes more than `most` steps.

        Raises:
            EntryInvalid: index bytes are damaged.
        """
        if most is not None and self.steps(leaf) > most:
            return None
        return self.row_ids(leaf)

    def narrowed(self, leaf: Predicate, rows: BitMap) -> tuple[BitMap, Answer]:
        """Those of a few given rows for which a leaf may be TRUE, found by examining each row, and
        how good that answer is. NONE and the unchanged rows if rows cannot be examined singly.

        Raises:
            EntryInvalid: index bytes are damaged.
        """
        return rows, Answer.NONE

    def row_bounds(self, leaf: Predicate) -> tuple[int, int] | None:
        """Lower and upper bounds of the number of rows for which a leaf, or conjuncts, accepted by
        `row_ids` is TRUE. Computed without reading rows. None if they are not known.

        Raises:
            EntryInvalid: index bytes are damaged.
        """
        return None

    def value_counts(self, column: str, among: BitMap | None, most: int) -> dict[str, int] | None:
        """The number of rows per non-NULL value of a text column, counting only rows in `among` if
        given. None if there are more than `most` values, the index does not hold them whole, or
        counting is not cheap.

        Raises:
            EntryInvalid: index bytes are damaged.
        """
        return None

    def ranked(self, match: Match) -> RankedRows | None:
        """The matching rows, ready to be scored; None if the index cannot score them."""
        return None


class ManyReaders(ABC):
    """Open entries of one index type, whose columns have equal layouts. Made by
    `IndexType.together`. Safe to use from several threads.

    A *leaf* here is one for which `IndexType.answer` is not NONE, or an `And` of leaves on one
    column.
    """

    @abstractmethod
    def few_rows(
        self, leaf: Predicate, among: Positions, most: int
    ) -> Sequence[BitMap | None] | None:
        """The rows of `IndexReader.row_ids` in each of some entries; None for entries with more
        than `most`, or that cannot be asked in this way. None for all if the leaf has to be looked
        up one by one.

        Raises:
            EntryInvalid, NativeModuleMissing: no entry can be asked in this way.
        """

    @abstractmethod
    def without_rows(self, leaf: Predicate, among: Positions) -> Truths | None:
        """For each of some entries, whether `IndexReader.row_ids` certainly finds no row. None if
        the leaf has to be looked up one by one.

        Raises:
            EntryInvalid, NativeModuleMissing: no entry can be asked in this way.
        """

    def rows_of_values(
        self, leaf: In, among: Positions, values: Routed, most: int
    ) -> Sequence[BitMap | None] | None:
        """The rows of `few_rows` in some entries, of each for other values of a list: the positions
        in `leaf.values` of those that its base file may hold. Raises what `few_rows` raises."""
        return None

    def narrowed(
        self, leaf: Predicate, among: Positions, rows: Sequence[BitMap]
    ) -> Sequence[BitMap | None] | None:
        """Those of a few given rows of each of some entries for which a leaf is TRUE, found by
        examining each row; see `IndexReader.narrowed`. None for entries that cannot be asked in
        this way, and for all if the answers would not be exact. Raises what `few_rows` raises."""
        return None

    def counts(self, leaf: Predicate, among: Positions) -> npt.NDArray[np.int64] | None:
        """For a leaf that some entries answer exactly, the number of rows in each; -1 where many
        rows would have to be visited. None if they are counted one by one. Raises as
        `few_rows`."""
        return None


class IndexType(ABC):
    """A kind of index. Implementations are stateless, are constructed without arguments, and are
    found by entry point (`hudi_index_service.index.factory`).

    Attributes:
        oldest: The oldest version of the type's own layout that readers accept; entries of older
            ones are built anew.
        codecs: The names that a library gives to its own formats, of those that readers accept;
            None for entries that name none. Entries of others are built anew.
        fetches_blocks: Whether the reader reads every block of a packed file with `read_member`, or
            fetches missing blocks itself (`PackedIndex.blocks`). Other readers get whole files.
        runs_jvm: Whether the type builds in a JVM inside the worker process, which needs memory for
            the JVM's heap (``lucene.heap_mb``).
        costs: What reading it takes; None for about as much as Lucene.
    """

    oldest: int = 1
    codecs: Sequence[str | None] = (None,)
    fetches_blocks: bool = False
    runs_jvm: bool = False
    costs: TypeCosts | None = None

    @property
    @abstractmethod
    def contract(self) -> int:
        """The `CONTRACT_VERSION` that the type was made for; a class attribute will do."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that users write after USING; also the folder below ``.hoodie/.index/``."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Version of the index type's own layout; readers refuse newer ones."""

    @abstractmethod
    def fields(self, column: str, type: pa.DataType, options: Mapping[str, str]) -> tuple[str, ...]:
        """The fields to index for a column under the given options.

        Raises:
            ColumnNotIndexable: the index type cannot hold the column's type.
            IndexDefinitionInvalid: an option is unknown or has a wrong value.
        """

    def key_field(self, column: str, type: pa.DataType, key: Sequence[str]) -> str:
        """The field to index for a column of a composite key, the same for all of its columns.

        Args:
            key: The names of the key's columns, in order.

        Raises:
            ColumnNotIndexable: the column cannot be part of a key.
            IndexDefinitionInvalid: the index type has no composite keys, or not of so many columns.
        """
        raise IndexDefinitionInvalid(
            f"Column {column}: index type {self.name} has no composite keys.",
            remedy="Leave the option key out, or use the index type btree.",
        )

    @abstractmethod
    def builder(
        self,
        columns: Sequence[ColumnSpec],
        folder: Path,
        *,
        memory_mb: int,
        part: int = 0,
        threads: int = 1,
    ) -> IndexBuilder:
        """A builder that works in the empty local folder `folder` within about `memory_mb` MiB.

        A base file may be built in parts of consecutive rows, each by its own builder in any
        process; `part` counts them from 0. Each finished part is packed and passed to `combine`.
        The builder may use up to `threads` threads; the number does not affect what the index
        answers.
        """

    def memory_builder(
        self, columns: Sequence[ColumnSpec], *, memory_mb: int, threads: int = 1
    ) -> IndexBuilder | None:
        """A builder for a small base file, whose index stays in memory; None if the type has
        none."""
        return None

    @abstractmethod
    def combine(self, parts: Sequence[PackedIndex], folder: Path) -> Mapping[str, Path | FileRange]:
        """One index over the rows of all parts, in order, without indexing anything again.

        Returns the index's files by name: files of the parts as ranges of their packed files, new
        files as paths in the local folder `folder`, which is empty at first.

        Raises:
            EntryInvalid: index bytes of a part are damaged.
        """

    @abstractmethod
    def answer(self, leaf: Predicate, columns: Sequence[StoredColumn]) -> Answer:
        """How well an index with these columns answers, in one look-up, a leaf or an `And` of
        leaves on one column with one value per row. The answer depends only on the layout of the
        columns (`StoredColumn.layout`) and reads no index bytes."""

    def keys(self, columns: Sequence[StoredColumn]) -> Sequence[tuple[str, ...]]:
        """The composite keys of an index with these columns: the names of the columns of each, in
        order. Conjuncts on the first columns of a key may be answered by one look-up, as a
        `Conjunction`."""
        return ()

    def holds_values(self, column: ColumnSpec) -> bool:
        """Whether an index with the column's fields is asked for single values of it. Else the
        values are not routed (`index/segments`)."""
        return True

    def smaller_options(self, column: ColumnSpec) -> SmallerOptions | None:
        """The options with which an index of the column takes less space, usually; None if there
        are none."""
        return None

    def together(self, readers: Sequence[IndexReader]) -> ManyReaders | None:
        """Many open entries, asked by one call each time. None if a call takes as long as asking
        them one by one, as for most types.

        Args:
            readers: At least one; the layouts of their columns are equal. They stay open as long as
                the result is used.
        """
        return None

    @abstractmethod
    def verify(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> list[str]:
        """The defects inside a packed index whose checksums are correct: one sentence each, without
        values of the table; empty if there are none.

        Raises:
            NativeModuleMissing: a runtime dependency of the index type is not installed.
        """

    @abstractmethod
    def open(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> IndexReader:
        """Opens a packed index.

        Raises:
            EntryInvalid: the index is damaged, or written by a newer version of the index type.
            NativeModuleMissing: a runtime dependency of the index type is not installed.
        """

    def analyzed_text(self, column: ColumnSpec) -> AnalyzedText | None:
        """How the column's texts are split into words for full-text search; None if the column is
        not analyzed."""
        return None

    def text_ranker(self, column: ColumnSpec) -> TextRanker | None:
        """The scorer of full-text searches in the column; None if its index lacks the data for
        scores."""
        return None

    def check_runtime(self) -> None:  # noqa: B027 - most types need only Python packages
        """Checks that this process has the index type's runtime dependencies. Called before a
        build, and before an index is fetched to be opened; repeated calls are cheap.

        Raises:
            NativeModuleMissing: one is not installed or unusable; the message gives the reason.
        """

    def start_runtime(self) -> None:  # noqa: B027 - most types have nothing to start
        """Starts, in a thread of its own, what opening an index needs and takes long. Returns at
        once; repeated calls are cheap. A failure is raised when an index is opened."""

    def ready_runtime(self) -> None:  # noqa: B027 - see `start_runtime`
        """Starts the same, loads the code that reads an index, and waits for both.

        Raises:
            NativeModuleMissing: see `check_runtime`.
        """

    # The methods below are for types that keep data outside files.

    def configured(self, settings: Settings) -> "IndexType":
        """The same type with these settings, such as its server's address; itself if it has no
        settings."""
        return self

    def store(
        self, files: Mapping[str, Path | FileRange | bytes], table: str, path: str
    ) -> Mapping[str, Path | FileRange | bytes]:
        """Stores a finished index outside the entry's files. Storing it twice has the same effect
        as storing it once. A type that overrides this overrides `stored` and `destroy` too.

        Args:
            files: The index's files by name.
            table: The table's base path, a URI.
            path: The path of the new entry's data file, relative to the table. It identifies the
                stored data: no other entry or generation has the same path.

        Returns:
            The files to pack instead, which lead a reader to the stored data; the same files if
            nothing is stored.
        """
        return files

    def stored(self, table: str) -> Mapping[str, float]:
        """Data file path → when its data was stored elsewhere for a table, seconds since 1970."""
        return {}

    def destroy(self, table: str, paths: Sequence[str]) -> None:  # noqa: B027 - nothing is stored
        """Removes the data stored for these data files, if there is any."""
