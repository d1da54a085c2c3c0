"""Large base files are built in parts by several tasks, so that no core is left waiting.

Each part is a run of consecutive rows. The number of parts depends on the sizes of all base files
and the number of concurrent tasks, so that one large and twenty small base files keep every core
busy.

A task stages its part in the entry's folder under unique names: first its packed files, then a
document that describes them. The task that finds all parts of its build joins them; if two tasks
end at the same moment, both may join, and one of them publishes. Readers see no staged part, and
the cleaner removes those of dead builds."""

import base64
import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from hudi_index_service.build.entry.column_facts import Extremes
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import (
    BuiltIndex,
    ColumnSpec,
    ColumnStatistics,
    FileRange,
    PackedIndex,
    StoredColumn,
)
from hudi_index_service.index.metadata.documents import Document
from hudi_index_service.index.packed_file import DataFile, checksums
from hudi_index_service.storage.store import Storage

LEAST_BYTES = 192 * 2**20
"""The default minimum size of a part in bytes."""

_SUFFIX = ".part.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    """One of `of` parts of a base file; `number` counts from 0."""

    number: int = 0
    of: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether the part is the whole file."""
        return self.of == 1

    def rows(self, total: int) -> range:
        """The rows of this part, of a base file with `total` rows."""
        return range(total * self.number // self.of, total * (self.number + 1) // self.of)


WHOLE = Part()


def part_counts(sizes: Sequence[int], *, slots: int, least: int) -> list[int]:
    """The number of parts per base file so that `slots` concurrent tasks end at about one time.

    A file larger than one slot's share of the work is split into parts no larger than that share.
    Each part has a cost (its own segments, and joining them), so none is smaller than `least`.

    Args:
        sizes: The sizes of the base files in bytes.
        slots: The number of concurrent tasks.
        least: The minimum size of a part in bytes.
    """
    share = max(sum(sizes) / max(slots, 1), 1)
    return [max(1, min(-(-size // int(share) or 1), size // least, slots)) for size in sizes]


class StagedPart(Document):
    """The description of a staged part.

    Attributes:
        name: The name of the packed file, in the same folder.
        columns: The indexed columns, without least and greatest values.
        bounds: Base64 of an Arrow stream with each column's least and greatest value, which would
            lose their order as text.
        unknown: The columns that have neither.
    """

    kind: ClassVar[str] = "part"

    number: int
    of: int
    base_file: str
    length: int
    rows: int
    data: DataFile
    columns: tuple[StoredColumn, ...]
    bounds: str
    unknown: tuple[str, ...]
    versions: dict[str, str]
    codec: str | None = None

    def specs(self) -> tuple[ColumnSpec, ...]:
        """The column specs that the part was built with."""
        return tuple(column.spec for column in self.columns)

    def whole(self) -> tuple[object, ...]:
        """What it is a part of: parts that have this in common can be joined."""
        return self.of, self.base_file, self.length, self.specs(), self.codec


class Staging:
    """The parts that one build stages for one entry.

    Args:
        folder: The entry's folder.
        build_id: The build's id.
    """

    def __init__(self, storage: Storage, folder: str, build_id: str) -> None:
        self._storage = storage
        self._folder = folder
        self._prefix = f"data-{build_id}-part-"

    def data_name(self, part: Part) -> str:
        """A unique name for a part's packed file."""
        return f"{self._prefix}{part.number:04d}-of-{part.of:04d}-{uuid.uuid4().hex[:12]}.pack"

    def add(self, packed: Path, part: StagedPart) -> None:
        """Stages a part; it exists once its description does."""
        name = part.data.name
        self._storage.upload(f"{self._folder}/{name}", packed)
        self._storage.create(f"{self._folder}/{name}{_SUFFIX}", part.to_json())

    def has_begun(self) -> bool:
        """Whether a part, or a file of one, has been staged."""
        return bool(self._files())

    def complete(self, like: StagedPart) -> list[StagedPart] | None:
        """All parts in order, if each has been staged with the same columns, base file and number
        of parts; else None."""
        parts: dict[int, StagedPart] = {}
        for path in self._files():
            if path.endswith(_SUFFIX):
                part = self._read_description(path)
                if part is not None and part.whole() == like.whole():
                    parts.setdefault(part.number, part)
        if len(parts) < like.of:
            return None
        return [parts[number] for number in range(like.of)]

    def _read_description(self, path: str) -> StagedPart | None:
        """Reads a description; None if it is damaged or deleted: then the part does not exist."""
        try:
            return StagedPart.from_json(self._storage.read(path), source=path)
        except (EntryInvalid, FileNotFoundError) as error:
            log.warning("A staged part is ignored: %s", error)
            return None

    def fetch(self, part: StagedPart, folder: Path) -> PackedIndex:
        """A part's packed file on the local disk; downloaded to `folder` if the store is remote.

        Raises:
            FileNotFoundError: the file was deleted.
            EntryInvalid: the file is damaged.
        """
        source = f"{self._folder}/{part.data.name}"
        if self._storage.is_local:
            path = self._storage.local_path(source)
        else:
            path = folder / part.data.name
            self._storage.download(source, path)
        if checksums(path)[1] != part.data.sha256:
            raise EntryInvalid(f"{source} is damaged.")
        return part.data.at(path, rows=part.rows)

    def discard(self) -> None:
        """Removes this build's staged files, descriptions first."""
        self._storage.delete(sorted(self._files(), key=lambda path: not path.endswith(_SUFFIX)))

    def _files(self) -> list[str]:
        paths = (file.path for file in self._storage.files_in(self._folder))
        return [path for path in paths if path.startswith(f"{self._folder}/{self._prefix}")]


def bounds_of(extremes: Mapping[str, Extremes], columns: Sequence[ColumnSpec]) -> str:
    """The stored form of the columns' least and greatest values."""
    schema = pa.schema([(spec.name, spec.type) for spec in columns])
    arrays = [_two_values(extremes[spec.name], spec.type) for spec in columns]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return base64.b64encode(sink.getvalue()).decode()


def _two_values(extremes: Extremes, type: pa.DataType) -> pa.Array:
    ends = [extremes.low, extremes.high]
    return pa.concat_arrays(
        [pa.nulls(1, type) if end is None else pa.repeat(end, 1) for end in ends]
    )


def joined_extremes(parts: Sequence[StagedPart]) -> dict[str, Extremes]:
    """The columns' least and greatest values over all parts."""
    joined = {column.name: Extremes() for column in parts[0].columns}
    for part in parts:
        with pa.ipc.open_stream(base64.b64decode(part.bounds)) as stream:
            table = stream.read_all()
        for name, values in zip(table.column_names, table.columns, strict=True):
            joined[name].add(values.combine_chunks())
            joined[name].unknown |= name in part.unknown
    return joined


def joined_index(parts: Sequence[StagedPart], files: Mapping[str, Path | FileRange]) -> BuiltIndex:
    """The description of the joined index, with the files that joining the parts produced."""
    rows = sum(part.rows for part in parts)
    return BuiltIndex(
        files=files,
        rows=rows,
        statistics={
            spec.name: _joined_statistics([part.columns[at] for part in parts], spec, rows)
            for at, spec in enumerate(parts[0].specs())
        },
        versions=parts[0].versions,
        codec=parts[0].codec,
    )


def _joined_statistics(
    columns: Sequence[StoredColumn], spec: ColumnSpec, rows: int
) -> ColumnStatistics:
    counts = [column.distinct for column in columns if column.distinct is not None]
    distinct = sum(counts) if len(counts) == len(columns) else None
    if distinct is not None and not pa.types.is_nested(spec.type):
        distinct = min(distinct, rows)
    return ColumnStatistics(
        null_count=sum(column.null_count for column in columns),
        distinct=distinct,
        truncated=sum(column.truncated for column in columns),
    )
