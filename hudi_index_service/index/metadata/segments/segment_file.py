"""A segment's file: packed members, then the document that describes them, then where that begins.

    <pairs> <directories> <statistics> <document: JSON> <its length: 8 bytes> HISEG001

One request to a remote store fetches the end of the file: all but the pairs, if the table is not
very large. Blocks of pairs are fetched when they are first needed. All bytes are checked before
their first use, and copied, so that a file that is cut short or changed is an error, not a crash.
"""

import io
import mmap
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_index_service.arrow import FALSE, as_numbers, as_truths, integer_scalar
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.metadata.entry import StatedGeneration
from hudi_index_service.index.metadata.segments.bounds import ColumnBounds, Mask, column_bounds
from hudi_index_service.index.metadata.segments.run import Pairs, Run, packed
from hudi_index_service.index.metadata.segments.segment import (
    COLUMN_FIELDS,
    FILE_FIELDS,
    SEGMENT_SUFFIX,
    ColumnKey,
    Facts,
    Segment,
    SegmentColumn,
    newest_generations,
)
from hudi_index_service.index.packed_file import DataFile, pack_into
from hudi_index_service.storage.store import Storage, StoredFile

_MAGIC = b"HISEG001"
_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)
_TAIL = 8 + len(_MAGIC)
FIRST_READ = 2**20
"""Bytes read from the end of a file at first; smaller files are read whole. So many cost a remote
store less than another request."""

_FACTS = "facts"
_PAIRS = "pairs-"
_DATA_NAME = f"data{SEGMENT_SUFFIX}"


def segment_bytes(index_type: str, facts: Facts, replaces: Iterable[str] = ()) -> bytes:
    """The file of a segment that states these facts."""
    members: dict[str, bytes] = {_FACTS: _table_bytes(facts)}
    columns = []
    for number, key in enumerate(facts.columns):
        run = packed(facts.pairs[key]) if key in facts.pairs else None
        if run is not None:
            members[_directory(number)], members[_pairs(number)] = run.directory, run.pairs
        name, type_name = key
        columns.append(
            SegmentColumn(
                name=name,
                type=type_name,
                run=None if run is None else run.layout,
                unrouted=key in facts.unrouted,
            )
        )
    content = io.BytesIO()
    data = pack_into(members, content, _DATA_NAME, first=_PAIRS)
    document = Segment(
        index_type=index_type,
        files=facts.count,
        columns=tuple(columns),
        replaces=tuple(sorted(replaces)),
        data=data,
    ).to_json()
    return content.getvalue() + document + len(document).to_bytes(8, "little") + _MAGIC


def _directory(number: int) -> str:
    return f"directory-{number:05d}"


def _pairs(number: int) -> str:
    return f"{_PAIRS}{number:05d}"


def _table_bytes(facts: Facts) -> bytes:
    table = facts.files
    for number, column in enumerate(facts.columns.values()):
        for name in column.schema.names:
            table = table.append_column(f"{number}.{name}", column[name])
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()


@dataclass(frozen=True, slots=True)
class Statistics:
    """A column's statistics in each base file of a segment.

    Attributes:
        is_known: Whether the file's entry holds the column.
        may_be_null: Whether a value may be NULL.
        may_be_value: Whether a value may be other than NULL.
        is_routed: Whether all the file's values are in the column's run.
        bounds: The bounds of the values; None if none are known.
    """

    is_known: Mask
    may_be_null: Mask
    may_be_value: Mask
    is_routed: Mask
    bounds: ColumnBounds | None

    @classmethod
    def of(cls, files: pa.Table, column: pa.Table, key: ColumnKey) -> "Statistics":
        """From the rows of a segment's tables."""
        null_count = column["null_count"].combine_chunks()
        is_known = as_truths(null_count.is_valid())
        nulls = as_numbers(null_count.fill_null(integer_scalar(0, null_count.type)))
        return cls(
            is_known,
            ~is_known | (nulls > 0),
            ~is_known | (nulls < as_numbers(files["rows"])),
            as_truths(column["routed"].fill_null(FALSE)),
            column_bounds(column["minimum"], column["maximum"], key[1]),
        )


class SegmentFile:
    """A segment in its file, opened. Safe to use from several threads.

    Attributes:
        name: The file's name.
        document: What it says of itself.
        files, columns: See `Facts`.
    """

    def __init__(self, storage: Storage, file: StoredFile) -> None:
        """Reads all but the runs.

        Raises:
            EntryInvalid: the file is damaged, or of a newer format.
            FileNotFoundError: it was deleted.
        """
        self.name = file.path.rsplit("/", 1)[1]
        if file.size <= _TAIL:
            raise EntryInvalid(f"{file.path} is not a segment.")
        start = max(0, file.size - FIRST_READ)
        tail = bytes(storage.read_ranges(file.path, [(start, file.size)])[0])
        if tail[-len(_MAGIC) :] != _MAGIC:
            raise EntryInvalid(f"{file.path} is not a segment.")
        length = int.from_bytes(tail[-_TAIL : -len(_MAGIC)], "little")
        content = file.size - length - _TAIL
        if content < 0:
            raise EntryInvalid(f"{file.path} is not a segment: it is too short.")
        if content < start:
            tail = bytes(storage.read_ranges(file.path, [(content, file.size)])[0])
            start = content
        document = tail[content - start : -_TAIL]
        self.document = Segment.from_json(document, source=file.path)
        if self.document.data.length != content:
            raise EntryInvalid(f"{file.path} has {content} bytes of data, not as it says.")
        self._blocks = _Blocks(storage, file.path, self.document.data)
        self._blocks.give(start, tail[: content - start])
        self._members = {each.name: each for each in self.document.data.members}
        self._runs: dict[ColumnKey, Run | None] = {}
        self._statistics: dict[ColumnKey, Statistics] = {}
        table = self._table()
        self.files = table.select(list(FILE_FIELDS))
        self.columns = {
            column.key: self._column(table, number)
            for number, column in enumerate(self.document.columns)
        }

    def run(self, key: ColumnKey) -> Run | None:
        """The run of a column; None without one.

        Raises:
            EntryInvalid, StorageFailed, FileNotFoundError: its directory cannot be read.
        """
        if key not in self._runs:
            self._runs[key] = self._opened_run(key)
        return self._runs[key]

    def statistics(self, key: ColumnKey) -> "Statistics":
        """The statistics of a column."""
        if key not in self._statistics:
            self._statistics[key] = Statistics.of(self.files, self.columns[key], key)
        return self._statistics[key]

    @cached_property
    def generations(self) -> Mapping[str, int]:
        """The generations that the segment states, by base file path. Kept, since every query asks
        for those of the few base files that it may read."""
        return newest_generations([self.files])

    def facts(self) -> Facts:
        """All that the segment states. Raises what `run` raises, and so does each access to pairs,
        which are not read before."""
        runs = {key: run for key in self.columns if (run := self.run(key)) is not None}
        return Facts(
            self.files,
            self.columns,
            _Unpacked(runs),
            frozenset(column.key for column in self.document.columns if column.unrouted),
        )

    def _opened_run(self, key: ColumnKey) -> Run | None:
        numbers = [n for n, column in enumerate(self.document.columns) if column.key == key]
        layout = self.document.columns[numbers[0]].run if numbers else None
        if layout is None:
            return None
        directory = self._bytes(_directory(numbers[0]))
        offset, length = self._place(_pairs(numbers[0]))
        if length != layout.packed_bytes:
            raise EntryInvalid(f"{self.name}: a routing run has {length} bytes, not as it says.")

        def packed(parts: Sequence[tuple[int, int]]) -> npt.NDArray[np.uint8]:
            self._blocks.ensure([(offset + first, offset + end) for first, end in parts])
            return self._blocks.memory[offset : offset + length]

        return Run.of(layout, directory, packed)

    def _table(self) -> pa.Table:
        self._read_directories()
        try:
            # A file object of Python would be read, and let go of, by a thread of Arrow's, which
            # may happen while the interpreter ends.
            with pa.ipc.open_file(pa.py_buffer(self._bytes(_FACTS)), options=_ONE_THREAD) as reader:
                table = reader.read_all()
                table.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise EntryInvalid(f"{self.name}: its statistics cannot be read.") from error
        if "generation" not in table.column_names:  # older segments
            unknown = pa.nulls(table.num_rows, FILE_FIELDS["generation"])
            table = table.add_column(list(FILE_FIELDS).index("generation"), "generation", unknown)
        expected = FILE_FIELDS | {
            f"{number}.{name}": type
            for number in range(len(self.document.columns))
            for name, type in COLUMN_FIELDS.items()
        }
        if table.num_rows != self.document.files or table.schema != pa.schema(expected):
            raise EntryInvalid(f"{self.name} has other statistics than it says.")
        return table

    def _read_directories(self) -> None:
        """Reads the statistics with the directories of all runs, if that is not much."""
        places = [self._place(name) for name in self._members if not name.startswith(_PAIRS)]
        first, end = min(offset for offset, _ in places), max(map(sum, places))
        if end - first <= FIRST_READ:
            self._blocks.ensure([(first, end)])

    def _column(self, table: pa.Table, number: int) -> pa.Table:
        column = table.select([f"{number}.{name}" for name in COLUMN_FIELDS])
        return column.rename_columns(list(COLUMN_FIELDS))

    def _bytes(self, member: str) -> bytes:
        offset, length = self._place(member)
        return self._blocks.read(offset, offset + length).tobytes()

    def _place(self, member: str) -> tuple[int, int]:
        if member not in self._members:
            raise EntryInvalid(f"{self.name} has no member {member}.")
        place = self._members[member]
        if place.offset + place.length > self.document.data.length:
            raise EntryInvalid(f"{self.name} names bytes beyond its end.")
        return place.offset, place.length


class _Unpacked(Mapping[ColumnKey, Pairs]):
    """The pairs of runs, unpacked anew each time."""

    def __init__(self, runs: Mapping[ColumnKey, Run]) -> None:
        self._runs = runs

    def __getitem__(self, key: ColumnKey) -> Pairs:
        return self._runs[key].pairs()

    def __contains__(self, key: object) -> bool:
        return key in self._runs

    def __iter__(self) -> Iterator[ColumnKey]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)


def stated_generations(
    segments: Iterable[SegmentFile], base_files: Sequence[BaseFile]
) -> dict[str, StatedGeneration]:
    """The highest generation of the entries of base files, by path, as far as segments state it."""
    stated: dict[str, StatedGeneration] = {}
    for each in segments:
        generations = each.generations
        for path in (base_file.path for base_file in base_files):
            number = generations.get(path)
            if number is not None and (path not in stated or number > stated[path].number):
                stated[path] = StatedGeneration(number, each.name)
    return stated


class _Blocks:
    """The checked blocks of a file. They are kept in memory that is taken as it is filled.

    Attributes:
        memory: Room for the whole file; see `ensure`. Not to be changed.
    """

    def __init__(self, storage: Storage, path: str, data: DataFile) -> None:
        self._storage = storage
        self._path = path
        self._size = data.block_size
        self._length = data.length
        self._crc32s = data.crc32s()
        if len(self._crc32s) != -(-data.length // data.block_size):
            raise EntryInvalid(f"{path} lacks checksums of some blocks.")
        self.memory = np.frombuffer(mmap.mmap(-1, max(1, data.length)), dtype=np.uint8)
        self._present = np.zeros(len(self._crc32s), dtype=bool)
        self._is_whole = False
        self._lock = Lock()

    def give(self, start: int, content: bytes) -> None:
        """Takes over bytes that were read otherwise, as far as they are whole blocks."""
        first = -(-start // self._size)
        for block in range(first, len(self._crc32s)):
            begin = block * self._size
            self._fill(block, content[begin - start : begin - start + self._size])
        self._is_whole = bool(self._present.all())

    def read(self, first: int, end: int) -> npt.NDArray[np.uint8]:
        """Bytes from a first to before an end one; not to be changed.

        Raises:
            EntryInvalid: a block is damaged.
            FileNotFoundError, PermissionDenied, StorageFailed: it cannot be read.
        """
        self.ensure([(first, end)])
        return self.memory[first:end]

    def ensure(self, parts: Sequence[tuple[int, int]]) -> None:
        """Makes parts of the memory hold the file's bytes; raises what `read` raises.

        Args:
            parts: The first byte and the end of each.
        """
        if self._is_whole or all(self._present[self._blocks_of(*each)].all() for each in parts):
            return
        with self._lock:
            wanted = np.zeros_like(self._present)
            for each in parts:
                wanted[self._blocks_of(*each)] = True
            missing = np.flatnonzero(wanted & ~self._present).tolist()
            ranges = [
                (block * self._size, min((block + 1) * self._size, self._length))
                for block in missing
            ]
            for block, content in zip(
                missing, self._storage.read_ranges(self._path, ranges), strict=True
            ):
                self._fill(block, bytes(content))
            self._is_whole = bool(self._present.all())

    def _blocks_of(self, first: int, end: int) -> slice:
        return slice(first // self._size, -(-end // self._size))

    def _fill(self, block: int, content: bytes) -> None:
        if zlib.crc32(content) != self._crc32s[block]:
            raise EntryInvalid(f"{self._path}: block {block} is damaged.")
        begin = block * self._size
        self.memory[begin : begin + len(content)] = np.frombuffer(content, dtype=np.uint8)
        self._present[block] = True
