"""Parts of a base file's index on their way from the tasks that made them to the one that joins
them.

A part is staged in its entry's folder: its packed files, and then a document that describes them,
under names that nobody else can have chosen. The task that finds all parts of its build there joins
them; two that end at the same moment may both do so, and one of them publishes. Nothing of it is
visible to readers, and the cleaner takes what dead builds leave.
"""

import base64
import logging
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from hudi_index_service.build.extremes import Extremes
from hudi_index_service.build.parts import Part
from hudi_index_service.documents import Document
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import (
    BuiltIndex,
    ColumnSpec,
    ColumnStatistics,
    FileRange,
    PackedIndex,
)
from hudi_index_service.index.manifest import DataFile, ManifestColumn
from hudi_index_service.index.packed_file import checksums
from hudi_index_service.storage import Storage

log = logging.getLogger(__name__)

_SUFFIX = ".part.json"


class StagedPart(Document):
    """What a task says of the part that it has made.

    Attributes:
        name: Of the packed file, in the same folder.
        columns: What is indexed; without least and greatest values.
        bounds: Base64 of an Arrow stream: for each column its least and its greatest value, which
            as text would lose their order.
        unknown: Columns that have neither.
    """

    kind: ClassVar[str] = "part"

    number: int
    of: int
    base_file: str
    length: int
    rows: int
    data: DataFile
    columns: tuple[ManifestColumn, ...]
    bounds: str
    unknown: tuple[str, ...]
    versions: dict[str, str]

    def specs(self) -> tuple[ColumnSpec, ...]:
        """The columns as they were asked for."""
        return tuple(ColumnSpec(c.name, c.arrow_type(), c.fields) for c in self.columns)


class Staging:
    """The parts that one build stages for one entry.

    Args:
        folder: The entry's folder.
        build_id: Of the build.
    """

    def __init__(self, storage: Storage, folder: str, build_id: str) -> None:
        self._storage = storage
        self._folder = folder
        self._prefix = f"data-{build_id}-part-"

    def data_name(self, part: Part) -> str:
        """A name for a part's packed file that nobody else will choose."""
        return f"{self._prefix}{part.number:04d}-of-{part.of:04d}-{uuid.uuid4().hex[:12]}.pack"

    def add(self, packed: Path, described: StagedPart) -> None:
        """Stages a part: it is there once its description is."""
        name = described.data.name
        self._storage.upload(f"{self._folder}/{name}", packed)
        self._storage.create(f"{self._folder}/{name}{_SUFFIX}", described.to_json())

    def has_begun(self) -> bool:
        """Whether a part, or a file of one, has been staged."""
        return bool(self._files())

    def complete(self, like: StagedPart) -> list[StagedPart] | None:
        """All parts in order, if each has been staged: with the same columns, of the same base
        file, in as many parts."""
        found: dict[int, StagedPart] = {}
        for path in self._files():
            if path.endswith(_SUFFIX):
                part = self._described(path)
                if part is not None and _are_of_one_index(part, like):
                    found.setdefault(part.number, part)
        if len(found) < like.of:
            return None
        return [found[number] for number in range(like.of)]

    def _described(self, path: str) -> StagedPart | None:
        """What a description says; None if it is damaged or gone: then the part is not there."""
        try:
            return StagedPart.from_json(self._storage.read(path), source=path)
        except (EntryInvalid, FileNotFoundError) as error:
            log.warning("A staged part is passed over: %s", error)
            return None

    def fetch(self, part: StagedPart, folder: Path) -> PackedIndex:
        """A part's packed file on the local disk: in `folder`, unless it is there already.

        Raises:
            FileNotFoundError: it is gone.
            EntryInvalid: it is damaged.
        """
        source = f"{self._folder}/{part.data.name}"
        if self._storage.is_local:
            path = self._storage.local_path(source)
        else:
            path = folder / part.data.name
            self._storage.download(source, path)
        if checksums(path)[1] != part.data.sha256:
            raise EntryInvalid(f"{source} is damaged.")
        return PackedIndex(
            path=path,
            members={m.name: (m.offset, m.length) for m in part.data.members},
            length=part.data.length,
            block_size=part.data.block_size,
            block_crc32=part.data.crc32s(),
            rows=part.rows,
        )

    def discard(self) -> None:
        """Removes what this build has staged, descriptions first."""
        self._storage.delete(sorted(self._files(), key=lambda path: not path.endswith(_SUFFIX)))

    def _files(self) -> list[str]:
        files = self._storage.files_in(self._folder)
        names = ((file.path, file.path.rsplit("/", 1)[1]) for file in files)
        return [path for path, name in names if name.startswith(self._prefix)]


def _are_of_one_index(part: StagedPart, other: StagedPart) -> bool:
    return (part.of, part.base_file, part.length, part.specs()) == (
        other.of,
        other.base_file,
        other.length,
        other.specs(),
    )


def bounds_of(extremes: Mapping[str, Extremes], columns: Sequence[ColumnSpec]) -> str:
    """The stored form of the columns' least and greatest values."""
    schema = pa.schema([(spec.name, spec.type) for spec in columns])
    arrays = [_two_values(extremes[spec.name], spec.type) for spec in columns]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return base64.b64encode(sink.getvalue()).decode()


def _two_values(extremes: Extremes, type: pa.DataType) -> pa.Array:
    ends = (pa.nulls(1, type) if end is None else pa.repeat(end, 1) for end in extremes.bounds)
    return pa.concat_arrays(list(ends))


def joined_extremes(parts: Sequence[StagedPart]) -> dict[str, Extremes]:
    """The columns' least and greatest values over all parts."""
    joined = {column.name: Extremes() for column in parts[0].columns}
    for part in parts:
        with pa.ipc.open_stream(base64.b64decode(part.bounds)) as stream:
            table = stream.read_all()
        for name, values in zip(table.column_names, table.columns, strict=True):
            joined[name].merge(values.combine_chunks(), unknown=name in part.unknown)
    return joined


def joined_index(parts: Sequence[StagedPart], files: Mapping[str, Path | FileRange]) -> BuiltIndex:
    """The index that the parts are together, of the files that joining them gave."""
    rows = sum(part.rows for part in parts)
    return BuiltIndex(
        files=files,
        rows=rows,
        statistics={
            spec.name: _joined_statistics([part.columns[at] for part in parts], spec, rows)
            for at, spec in enumerate(parts[0].specs())
        },
        versions=parts[0].versions,
    )


def _joined_statistics(
    columns: Sequence[ManifestColumn], spec: ColumnSpec, rows: int
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
