"""A segment: the statistics of the columns of many base files, and runs of their values.

It states facts of base files, each named by path and length. Base files never change, so a segment
stays true whatever becomes of entries: leaving out a base file by it is never wrong. A segment may
be missing, and may lack base files; these are planned as if there were no segments.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from hudi_index_service.arrow import integers_array, texts_array, truths_array
from hudi_index_service.index.metadata.documents import Document
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.index.metadata.requirements import indexed
from hudi_index_service.index.metadata.segments.bounds import column_bounds, count_distinct
from hudi_index_service.index.metadata.segments.run import Pairs, RunLayout, joined
from hudi_index_service.index.packed_file import DataFile

SEGMENT_SUFFIX = ".segment"

ColumnKey: TypeAlias = tuple[str, str]
"""The name of a column and of its type, as manifests have them."""

FILE_FIELDS = {
    "path": pa.string(),
    "length": pa.int64(),
    "rows": pa.int64(),
    "generation": pa.int64(),  # of the entry; NULL in older segments
}

COLUMN_FIELDS = {
    "null_count": pa.int64(),  # NULL where the entry lacks the column
    "minimum": pa.string(),
    "maximum": pa.string(),
    "routed": pa.bool_(),  # whether the run has all of the file's values
}

MOST_PAIRS = 2**25
"""Pairs of a column that are merged: 400 MB for a moment."""

_FEWEST_FILES = 16
"""Runs of fewer files are always kept."""

_COMMON_SHARE = 0.25
"""A column has no run if a value is in more than this share of the files on average."""

_LEAST_DEPTH = 2.0
"""Nor has a column of which at most this many ranges overlap on average: statistics suffice."""


class SegmentColumn(BaseModel):
    """A column of a segment.

    Attributes:
        run: How the run of its values is packed; None without one.
        unrouted: Whether it has no run because a run would exclude few files.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    type_name: str = Field(alias="type")
    run: RunLayout | None = None
    unrouted: bool = False

    @property
    def key(self) -> ColumnKey:
        """The names of the column and its type."""
        return self.name, self.type_name


class Segment(Document):
    """The document at the end of a segment's file; see docs/format.md.

    Attributes:
        files: The number of base files.
        replaces: The names of the segments that it was merged from.
        data: The bytes before the document.
    """

    kind: ClassVar[str] = "segment"

    index_type: str
    files: Annotated[int, Field(ge=0)]
    columns: tuple[SegmentColumn, ...]
    replaces: tuple[str, ...] = ()
    data: DataFile


@dataclass(frozen=True, slots=True)
class Facts:
    """What a segment states, unpacked.

    Attributes:
        files: A row for each base file: `FILE_FIELDS`.
        columns: For each column, a row for each base file: `COLUMN_FIELDS`.
        pairs: The runs of columns that have one. Those of a segment's file are unpacked anew each
            time, so that only those in use take memory.
        unrouted: The columns that have no run because it would exclude few files.
    """

    files: pa.Table
    columns: Mapping[ColumnKey, pa.Table]
    pairs: Mapping[ColumnKey, Pairs]
    unrouted: frozenset[ColumnKey] = frozenset()

    @property
    def count(self) -> int:
        """The number of base files."""
        return int(self.files.num_rows)

    def kept(self, keeps: Callable[[str], bool], columns: Collection[ColumnKey]) -> "Facts":
        """Without some base files and columns.

        Args:
            keeps: Whether the facts of the base file at a path are kept.
            columns: The columns that are kept.
        """
        mask = np.array([keeps(path) for path in self.files["path"].to_pylist()], dtype=bool)
        names = [key for key in self.columns if key in columns]
        if mask.all() and len(names) == len(self.columns):
            return self
        numbers = np.where(mask, np.cumsum(mask) - 1, -1)
        some = truths_array(mask)
        return Facts(
            self.files.filter(some),
            {key: self.columns[key].filter(some) for key in names},
            {key: self.pairs[key].renumbered(numbers) for key in names if key in self.pairs},
            self.unrouted.intersection(names),
        )


def facts_of(manifest: Manifest, pairs: Mapping[str, Pairs]) -> Facts:
    """The facts of one base file.

    Args:
        pairs: Column name → the keys of all its values, of columns for which they are known.
    """
    base_file = manifest.base_file
    routed = {
        (column.name, column.type_name): pairs[column.name]
        for column in manifest.columns
        # Truncated values may be texts that are not UTF-8, which Spark sees otherwise.
        if column.name in pairs and not column.truncated
    }
    files = [
        texts_array([base_file.path], pa.string()),
        integers_array([base_file.length], pa.int64()),
        integers_array([base_file.rows], pa.int64()),
        integers_array([manifest.generation], pa.int64()),
    ]
    columns = indexed(manifest.columns)
    keys = [(column.name, column.type_name) for column in columns]
    fields = [
        integers_array([column.null_count for column in columns], pa.int64()),
        texts_array([column.minimum for column in columns], pa.string()),
        texts_array([column.maximum for column in columns], pa.string()),
        truths_array(np.array([key in routed for key in keys], dtype=bool)),
    ]
    # A table of all columns, a row each, is made sooner than one for each.
    rows = pa.Table.from_arrays(fields, schema=pa.schema(COLUMN_FIELDS))
    return Facts(
        pa.Table.from_arrays(files, schema=pa.schema(FILE_FIELDS)),
        {key: rows.slice(number, 1) for number, key in enumerate(keys)},
        routed,
    )


def merged(parts: Sequence[Facts]) -> Facts:
    """The facts of several segments, none of them full, each base file once."""
    generations = newest_generations(part.files for part in parts)
    kept = _chosen_paths(parts)
    parts = [
        part.kept(paths.__contains__, part.columns.keys())
        for part, paths in zip(parts, kept, strict=True)
    ]
    keys = sorted({key for part in parts for key in part.columns})
    files = pa.concat_tables([part.files for part in parts]).combine_chunks()
    newest = integers_array([*map(generations.get, files["path"].to_pylist())], pa.int64())
    files = files.set_column(files.schema.get_field_index("generation"), "generation", newest)
    columns = {key: _merged_column(parts, key) for key in keys}
    return Facts(
        files,
        {key: rows for key, (rows, _, _) in columns.items()},
        {key: run for key, (_, run, _) in columns.items() if run is not None},
        frozenset(key for key, (_, _, given_up) in columns.items() if given_up),
    )


def _merged_column(parts: Sequence[Facts], key: ColumnKey) -> tuple[pa.Table, Pairs | None, bool]:
    """The column's rows, its run if it has one, and whether a run would exclude few files."""
    rows = pa.concat_tables([_column(part, key) for part in parts]).combine_chunks()
    starts = accumulate((part.count for part in parts), initial=0)
    runs = [
        part.pairs[key].renumbered(np.arange(part.count) + start)
        for part, start in zip(parts, starts, strict=False)
        if key in part.pairs
    ]
    run = joined(runs) if runs else None
    given_up = sum(part.count for part in parts if key in part.unrouted)
    if 2 * given_up >= len(rows) or (run is not None and not _is_selective(run, rows, key)):
        return _unrouted(rows), None, True
    return rows, run, False


def newest_generations(tables: Iterable[pa.Table]) -> dict[str, int]:
    """The highest generation of each base file's entry, as far as it is stated.

    Args:
        tables: Rows of `FILE_FIELDS`.
    """
    newest: dict[str, int] = {}
    for table in tables:
        paths, generations = table["path"].to_pylist(), table["generation"].to_pylist()
        for path, generation in zip(paths, generations, strict=True):
            if generation is not None and generation > newest.get(path, 0):
                newest[path] = generation
    return newest


def _column(part: Facts, key: ColumnKey) -> pa.Table:
    """The column's rows in a part. Without a run, the part routes none of its files."""
    if key not in part.columns:
        return _absent(part.count)
    return part.columns[key] if key in part.pairs else _unrouted(part.columns[key])


def _chosen_paths(parts: Sequence[Facts]) -> list[frozenset[str]]:
    """For each part, the paths of which its facts are taken: those of the part with most columns
    and runs."""
    chosen: dict[str, tuple[int, int]] = {}
    for number, part in enumerate(parts):
        worth = len(part.columns) + len(part.pairs)
        for path in part.files["path"].to_pylist():
            if path not in chosen or chosen[path][0] < worth:
                chosen[path] = worth, number
    return [
        frozenset(path for path, (_, part) in chosen.items() if part == number)
        for number in range(len(parts))
    ]


def _absent(count: int) -> pa.Table:
    """The rows of a column that entries lack."""
    return pa.table(
        {name: pa.nulls(count, kind) for name, kind in COLUMN_FIELDS.items()},
        schema=pa.schema(COLUMN_FIELDS),
    )


def _unrouted(column: pa.Table) -> pa.Table:
    position = column.schema.get_field_index("routed")
    none = truths_array(np.zeros(column.num_rows, dtype=bool))
    return column.set_column(position, "routed", none)


def _is_selective(run: Pairs, column: pa.Table, key: ColumnKey) -> bool:
    """Whether a run excludes enough files to be worth its bytes."""
    files = int(pc.sum(column["routed"]).as_py() or 0)
    if files < _FEWEST_FILES or not len(run.keys):
        return True
    if len(run.keys) > _COMMON_SHARE * files * count_distinct(run.keys):
        return False
    return _depth(column, key) > _LEAST_DEPTH


def _depth(column: pa.Table, key: ColumnKey) -> float:
    """How many files' ranges of values hold the least value of one of them, on average."""
    bounds = column_bounds(column["minimum"], column["maximum"], key[1])
    least, greatest = ((), ()) if bounds is None else bounds.known()
    if not len(least):
        return float(column.num_rows)
    begun = np.arange(1, len(least) + 1)
    return float(np.mean(begun - np.searchsorted(greatest, least, "left")))
