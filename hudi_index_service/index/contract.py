"""What an index type is: the one contract that Lucene, B+ tree, HBase and plug-ins fulfil.

An index type builds one index per base file over several columns, and answers *leaves* of a
predicate in negation normal form with the row ids for which the leaf is TRUE: `Compare`, `In`,
`IsNull`, `Like`, `RLike`, `Match`, `ArrayContains`, or `Not` directly above one of these. Combining
leaves, and re-checking what is only a superset, is not its business; but of several conjuncts on
one column, such as both ends of a range, it may say that one look-up answers their `And`, and of
conjuncts on any columns that one answers them `Together`.

An index is files, which the service packs into one, publishes with a manifest, copies to where it
is read, and removes. A type may `store` most of it elsewhere, in a database say: its files are then
what its reader finds the rest by, and it says how that is removed (`IndexType.destroy`).

The size of an index is that of its files (`PackedIndex.length`).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyroaring import BitMap

from hudi_index_service.config import Settings
from hudi_index_service.index.scores import RankedRows, TextRanker
from hudi_index_service.predicate.expression import AnalyzedText, And, Match, Predicate

CONTRACT_VERSION = 1
"""Version of what follows. It grows when an index type made for the one before would no longer do;
methods that a type may leave out do not change it."""


class Together(And):
    """Conjuncts on several columns, all of which are to be looked up: together where that takes no
    longer than the one that takes least, and then each row of it."""

    __slots__ = ()


class Answer(Enum):
    """How well an index answers a leaf."""

    EXACT = "exact"  #: exactly the rows where the leaf is TRUE
    SUPERSET = "superset"  #: all of those rows, perhaps more: the residual decides
    NONE = "none"  #: not at all: every row stays a candidate


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column to be indexed.

    Attributes:
        name: As the table's schema spells it.
        type: The Arrow type of the column in the table's schema.
        fields: What is physically indexed for it, in the index type's own words, such as
            ``("keyword", "text:standard")``. An entry serves a definition's column if it holds at
            least the fields that the definition asks for.
    """

    name: str
    type: pa.DataType
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What a builder learnt of one column.

    Attributes:
        null_count: Rows where the column is NULL.
        distinct: An estimate of the number of distinct values; None if not known.
        truncated: Values that the index does not hold as they are, because they are too long (then
            it has their first bytes) or no UTF-8: look-ups in the column are supersets.
    """

    null_count: int
    distinct: int | None = None
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes of a local file: where they begin, and how many there are."""

    path: Path
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """A finished index on the local disk: its files by name, and per-column statistics."""

    files: Mapping[str, Path | FileRange]
    rows: int
    statistics: Mapping[str, ColumnStatistics]
    versions: Mapping[str, str] = field(default_factory=dict)


class IndexBuilder(Protocol):
    """Takes the rows of one base file, in row order."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the next rows. The batch holds the columns of the specs, in their order."""

    def finish(self) -> BuiltIndex:
        """Completes the index; nothing can be added afterwards."""

    def abort(self) -> None:
        """Gives up: releases files and memory. Safe to call at any time, also after finish."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column as an entry's manifest describes it (see `ColumnSpec`, `ColumnStatistics`)."""

    name: str
    type: pa.DataType
    fields: tuple[str, ...]
    statistics: ColumnStatistics

    @property
    def layout(self) -> Hashable:
        """What the answers and look-ups of an index type hang on: name, type, fields, and whether
        values were cut. Of statistics nothing else: those differ from entry to entry."""
        return self.name, self.type, self.fields, bool(self.statistics.truncated)


class MissingBlocks(Protocol):
    """Where the blocks come from that a packed data file lacks. Safe to use from several threads.

    Attributes:
        number: Tells it from all others of this process.
    """

    number: int

    def fetch(self, block: int) -> None:
        """Sees to it that the block is in the local file, whole.

        Raises:
            EntryInvalid, PermissionDenied, StorageFailed: it cannot be had.
        """


@dataclass(frozen=True, slots=True)
class PackedIndex:
    """An entry's packed data file on the local disk.

    Attributes:
        path: The local file.
        members: name → (offset, length) of the files packed in it.
        length: Length of the whole file in bytes.
        block_size: Bytes per checksummed block.
        block_crc32: CRC-32 of each block, in order; the last block may be shorter.
        rows: Rows of the base file that the index covers.
        blocks: Fetches blocks that the file lacks: those whose checksum is another. None if it
            lacks none, as for every index type that does not say that it `fetches_blocks`.
    """

    path: Path
    members: Mapping[str, tuple[int, int]]
    length: int
    block_size: int
    block_crc32: Sequence[int]
    rows: int
    blocks: MissingBlocks | None = None


class IndexReader(Protocol):
    """An open index of one base file. Safe to use from several threads."""

    def row_ids(self, leaf: Predicate) -> BitMap:
        """The row ids for a leaf, or conjuncts, whose `IndexType.answer` is not NONE.

        Raises:
            EntryInvalid: index bytes are damaged.
        """

    def candidates(self, leaf: Predicate, most: int | None) -> BitMap | None:
        """The same or some more, whichever is had sooner, for somebody who checks every row; None
        if that takes more than `most` steps, a step being a row id or a value that is looked at.
        A reader without a cheaper way may leave this method out.

        Raises:
            EntryInvalid: index bytes are damaged.
        """

    def narrowed(self, leaf: Predicate, rows: BitMap) -> tuple[BitMap, Answer]:
        """Those of a few rows for which a leaf may be TRUE, as far as that is had by looking at
        each of them, and what that is worth: NONE, and the rows as they are, where it is not. A
        reader may leave this method out.

        Raises:
            EntryInvalid: index bytes are damaged.
        """

    def sample(self, leaf: Predicate, most: int) -> BitMap:
        """Some of the row ids, at most so many and from all over the file, for far less than
        `row_ids` takes; none where there is no such way. A reader may leave this method out.

        Raises:
            EntryInvalid: index bytes are damaged.
        """

    def estimate(self, leaf: Predicate) -> int:
        """About how many steps `row_ids` takes, at most as many as there are rows; cheaper than
        taking them."""

    def row_bounds(self, leaf: Predicate) -> tuple[int, int]:
        """How many rows make a leaf, or conjuncts, that `row_ids` takes TRUE: never fewer than the
        first number, never more than the second; had without going through rows. A reader may
        leave this method out.

        Raises:
            EntryInvalid: index bytes are damaged.
        """

    def value_counts(self, column: str, among: BitMap | None, most: int) -> dict[str, int] | None:
        """How many rows have each value of a text column that is not NULL, of `among` alone if
        given; None if there are more than `most` values, or the index does not hold them whole.
        A reader without a cheap way may leave this method out.

        Raises:
            EntryInvalid: index bytes are damaged.
        """

    def ranked(self, match: Match) -> RankedRows | None:
        """The rows, to be scored; None if the index cannot score them."""

    def close(self) -> None:
        """Releases files and memory."""


class IndexType(Protocol):
    """A kind of index. Implementations are stateless, made without arguments and found by entry
    point (`hudi_index_service.index.factory`).

    Besides what stands here, a type may say by attributes of its class

    - ``fetches_blocks = True``: its reader reads every block of a packed file by `read_member`, or
      fetches those that are missing itself (`PackedIndex.blocks`). Others get whole files;
    - ``runs_jvm = True``: it builds in a Java machine of the worker's process, whose heap
      (``lucene.heap_mb``) a worker has to have room for.
    """

    contract: int
    """The `CONTRACT_VERSION` that it was made for."""

    name: str
    """The name users write after USING; also the folder below ``.hoodie/.index/``."""

    version: int
    """Version of the index type's own layout; a reader refuses newer ones."""

    def fields(self, column: str, type: pa.DataType, options: Mapping[str, str]) -> tuple[str, ...]:
        """What has to be indexed for a column under the given options.

        Raises:
            ColumnNotIndexable: the type cannot be held.
            IndexDefinitionInvalid: an option is unknown or has a wrong value.
        """

    def builder(
        self,
        columns: Sequence[ColumnSpec],
        folder: Path,
        *,
        memory_mb: int,
        part: int = 0,
        threads: int = 1,
    ) -> IndexBuilder:
        """A builder that works in the empty local folder `folder` within about `memory_mb`.

        A base file may be built in parts of consecutive rows, each by a builder of its own in any
        process; `part` counts them from 0. What each finishes is packed and goes to `combine`.
        `threads` is how many threads it may use; what it builds serves alike.
        """

    def combine(self, parts: Sequence[PackedIndex], folder: Path) -> Mapping[str, Path | FileRange]:
        """One index over the rows of all parts, in their order, without indexing anything again.

        Returns the files of the index by name: as far as they are the parts' own, as ranges of
        their packed files; what is new lies in the empty local folder `folder`.

        Raises:
            EntryInvalid: index bytes of a part are damaged.
        """

    def answer(self, leaf: Predicate, columns: Sequence[StoredColumn]) -> Answer:
        """How well an index with these columns answers the leaf, or an `And` of leaves on one
        column that holds one value a row, at once. It hangs on the layout of the columns alone
        (`StoredColumn.layout`), and touches no index bytes."""

    def analyzed_text(self, column: ColumnSpec) -> AnalyzedText | None:
        """How the words of the column's texts are found, for full-text search; None if it is not
        analysed. An index type that analyses nothing may leave this method out.
        """

    def text_ranker(self, column: ColumnSpec) -> TextRanker | None:
        """Scores full-text searches in the column; None if its index does not hold what scores
        need. An index type that ranks nothing may leave this method out, and its readers `ranked`.
        """

    def verify(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> list[str]:
        """What is wrong inside a packed index whose bytes are those that were written: a sentence
        each, without values of the table; empty if nothing is.

        Raises:
            NativeModuleMissing: what the index type runs on is not installed.
        """

    def open(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> IndexReader:
        """Opens a packed index.

        Raises:
            EntryInvalid: damaged, or written by a newer version of the index type.
            NativeModuleMissing: what the index type runs on is not installed.
        """

    def check_runtime(self) -> None:
        """Looks whether what the index type runs on is there, in this process: asked before
        anything is built, and before an index is fetched to be opened; cheap when asked again. A
        type that runs on nothing but Python packages of its own may leave this method out.

        Raises:
            NativeModuleMissing: it is not installed, or cannot be used; the message says why.
        """

    # What follows is for types that keep data elsewhere than in files. All others leave it out.

    def configured(self, settings: Settings) -> "IndexType":
        """The same type with these settings, such as where its server is."""

    def store(
        self, files: Mapping[str, Path | FileRange], table: str, path: str
    ) -> Mapping[str, Path | FileRange | bytes]:
        """Puts elsewhere what is to lie there of a whole index that was built. Storing the same
        twice comes to the same.

        Args:
            files: Of the index, by name.
            table: The table's base path, a URI.
            path: The data file of the entry in the making, relative to it. No other entry, nor
                another generation of this one, has the same: it is the identity of what is stored.

        Returns:
            The files that are packed instead, by which a reader finds the rest.
        """

    def stored(self, table: str) -> Mapping[str, float]:
        """What it keeps elsewhere for a table: the data files' paths, with the moment of storing
        in seconds since 1970."""

    def destroy(self, table: str, paths: Sequence[str]) -> None:
        """Removes what was stored for these data files; nothing if there is nothing."""
