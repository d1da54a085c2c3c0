"""Estimates the cost of building an index from the table's past builds."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_index_service.build.estimate import estimate
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.build.record import BuildRecord
from hudi_index_service.columns import column_type, root_column
from hudi_index_service.hudi.protocol import BaseFile
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.maintain.advise.footers import Footers


@dataclass(frozen=True, slots=True)
class BuildCost:
    """The estimated cost of a build.

    Attributes:
        files, read_bytes: Number of base files, and the bytes of the indexed columns in them.
        seconds, index_bytes: Time and size for the columns of all indexes, since an entry contains
            them all; None if the table has no build to estimate from.
        exact: Whether there were builds of exactly these columns; otherwise the estimate is scaled
            by the bytes of the columns that were built.
    """

    files: int
    read_bytes: int
    seconds: float | None
    index_bytes: int | None
    exact: bool


@dataclass(frozen=True, slots=True)
class BuildCosts:
    """Estimates build costs from build records.

    Attributes:
        records: The table's builds, newest first.
        parallelism: Number of concurrent tasks.
    """

    base_files: Sequence[BaseFile]
    schema: pa.Schema
    footers: Footers
    records: Sequence[BuildRecord]
    parallelism: int

    def of(self, index_type: str, columns: Sequence[str]) -> BuildCost:
        """The cost of building an entry with these columns for each base file."""
        specs = tuple(
            ColumnSpec(name, column_type(self.schema, name) or pa.null(), ())
            for name in sorted(columns)
        )
        due = [DueEntry(each, index_type, specs, {}) for each in self.base_files]
        read_bytes = self.footers.bytes({root_column(name) for name in columns})
        total = estimate(due, self.records, parallelism=self.parallelism)
        if total.seconds is not None:
            return BuildCost(
                len(due), round(read_bytes), total.seconds, total.index_bytes, exact=True
            )
        return BuildCost(
            len(due), round(read_bytes), *self._by_bytes(index_type, read_bytes), exact=False
        )

    def _by_bytes(self, index_type: str, read_bytes: float) -> tuple[float | None, int | None]:
        built_bytes = seconds = index_bytes = 0.0
        total_bytes = sum(each.size for each in self.base_files)
        for record in self.records:
            for outcome in record.outcomes:
                if outcome.get("status") != "built" or outcome.get("index_type") != index_type:
                    continue
                roots = {root_column(name) for name in outcome.get("columns") or ()}
                size = float(outcome.get("bytes") or 0)
                built_bytes += (
                    size * self.footers.bytes(roots) / total_bytes if total_bytes else 0.0
                )
                seconds += float(outcome.get("seconds") or 0)
                index_bytes += float(outcome.get("index_bytes") or 0)
        if not built_bytes:
            return None, None
        return (
            round(seconds / built_bytes * read_bytes / self.parallelism, 1),
            round(index_bytes / built_bytes * read_bytes),
        )
