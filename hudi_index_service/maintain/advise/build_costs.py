"""Estimates the cost of building an index, for advice."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_index_service.build.estimate import due_with, estimate
from hudi_index_service.build.executor import Executor
from hudi_index_service.build.record import BuildRecord
from hudi_index_service.build.sample import Sample
from hudi_index_service.columns import column_type, root_column
from hudi_index_service.hudi.files.parquet_file import Footers
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.requirements import Requirement


@dataclass(frozen=True, slots=True)
class BuildCost:
    """The estimated cost of a build.

    Attributes:
        files, read_bytes: Number of base files, and the bytes of the indexed columns in them.
        seconds, index_bytes: Time and size for the columns of all indexes, since an entry contains
            them all; None if neither a build nor a sample tells them.
        exact: Whether there were builds of exactly these columns; otherwise a sample was built.
    """

    files: int
    read_bytes: int
    seconds: float | None
    index_bytes: int | None
    exact: bool


@dataclass(frozen=True, slots=True)
class BuildCosts:
    """Estimates build costs from build records, or from a sample of the base files.

    Attributes:
        requirements: What the live definitions require.
        records: The table's builds, newest first.
        executor: What would run the build.
    """

    base_files: Sequence[BaseFile]
    schema: pa.Schema
    footers: Footers
    requirements: Sequence[Requirement]
    records: Sequence[BuildRecord]
    sample: Sample
    executor: Executor

    def of(self, using: str, columns: Sequence[str]) -> BuildCost:
        """The cost of building an entry for each base file, with these columns and all that the
        definitions require."""
        specs = [self._spec(using, name) for name in columns]
        due = due_with(self.base_files, self.requirements, using, specs)
        read = {root_column(spec.name) for entry in due[:1] for spec in entry.columns}
        total = estimate(
            due,
            self.records,
            parallelism=self.executor.parallelism,
            cores=self.executor.cores,
            sample=self.sample,
        )
        return BuildCost(
            len(due),
            round(self.footers.bytes(read)),
            total.seconds,
            total.index_bytes,
            exact=bool(total.builds),
        )

    def _spec(self, using: str, name: str) -> ColumnSpec:
        type = column_type(self.schema, name)
        assert type is not None, "advice is about columns of the table"
        return ColumnSpec(name, type, index_type(using).fields(name, type, {}))
