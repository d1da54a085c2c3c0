"""Finds the row groups that a scan can skip, by the statistics in the base file's footer."""

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hudi_index_service.columns import column_path
from hudi_index_service.hudi.files.parquet_file import row_group_rows
from hudi_index_service.predicate.bounds import UNKNOWN, ValueBounds, may_match
from hudi_index_service.predicate.expression import BoundColumn, Predicate
from hudi_index_service.read.base_file.value_bounds import is_comparable, stored_type, value_bounds

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_WRITER = re.compile(r"parquet-(?P<name>mr|cpp-arrow|rs) version (?P<major>\d+)\.(?P<minor>\d+)")
_ORDERED_SINCE = (1, 10)  # parquet-mr: earlier releases compare text as signed bytes
_BOUNDED = frozenset({"BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE"})


def row_groups_to_read(
    file: "pq.ParquetFile", predicate: Predicate | None, within: range | None = None
) -> list[int]:
    """The row groups that may hold a row for which the predicate is TRUE.

    Args:
        predicate: In negation normal form; None for every row.
        within: The rows of the row groups to choose among; None for all.
    """
    numbers = list(range(file.metadata.num_row_groups))
    if within is not None:
        of_groups = enumerate(row_group_rows(file))
        numbers = [number for number, rows in of_groups if rows.start in within]
    if predicate is None or not _is_known_writer(file.metadata.created_by):
        return numbers

    def bounds(number: int, column: BoundColumn) -> ValueBounds:
        path = column_path(column.name)
        stored = stored_type(file.schema_arrow, path)
        leaves = [leaf for leaf, name in enumerate(names) if name == ".".join(path)]
        if len(leaves) != 1 or stored is None or not is_comparable(stored, column.type):
            return UNKNOWN
        return _chunk_bounds(file, number, leaves[0], stored, nested=len(path) > 1)

    names = [file.metadata.schema.column(leaf).path for leaf in range(file.metadata.num_columns)]
    return [number for number in numbers if may_match(predicate, partial(bounds, number))]


def row_groups_holding(file: "pq.ParquetFile", rows: np.ndarray[Any, Any]) -> list[int]:
    """The row groups that hold some of these rows, given by ascending positions."""
    ends = [each.stop for each in row_group_rows(file)]
    return [int(each) for each in np.unique(np.searchsorted(ends, rows, "right"))]


def _is_known_writer(created_by: str | None) -> bool:
    writer = _WRITER.match(created_by or "")
    if writer is None:
        return False
    version = (int(writer["major"]), int(writer["minor"]))
    return writer["name"] != "mr" or version >= _ORDERED_SINCE


def _chunk_bounds(
    file: "pq.ParquetFile", number: int, leaf: int, stored: pa.DataType, *, nested: bool
) -> ValueBounds:
    chunk = file.metadata.row_group(number).column(leaf)
    statistics = chunk.statistics
    repeated = file.metadata.schema.column(leaf).max_repetition_level > 0
    if repeated or statistics is None or not _is_bounded(chunk.physical_type, stored):
        return UNKNOWN
    return value_bounds(
        statistics.null_count if statistics.has_null_count else None,
        chunk.num_values,
        statistics.min_raw if statistics.has_min_max else None,
        statistics.max_raw if statistics.has_min_max else None,
        nested=nested,
    )


def _is_bounded(physical: str, stored: pa.DataType) -> bool:
    """Whether bounds are sound: not for INT96, whose order is undefined, nor for decimals in byte
    arrays."""
    if physical == "BYTE_ARRAY":
        return bool(pa.types.is_string(stored) or pa.types.is_binary(stored))
    return physical in _BOUNDED
