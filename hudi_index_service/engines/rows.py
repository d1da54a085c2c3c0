"""The rows of a table, for engines: columns, conditions and limits in, Arrow batches out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hudi_index_service.columns import column_type
from hudi_index_service.errors import SnapshotChanged
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.text.operands import Texts
from hudi_index_service.read.explanation import Explanation
from hudi_index_service.read.planner import QueryType, ScanOptions, UseIndex
from hudi_index_service.read.scan import Scan
from hudi_index_service.table import IndexedTable, open_table

_MOST_ROWS = 2**17
"""Of small batches that are handed over at once."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table, with the columns that it had when an engine was given it.

    Attributes:
        schema: Those columns; each scan is of the latest snapshot, unless `options` pin one.
    """

    table: IndexedTable
    schema: pa.Schema
    options: ScanOptions

    @classmethod
    def of(
        cls,
        table: IndexedTable | str | Path,
        as_of: str | None,
        query_type: QueryType,
        use_index: UseIndex,
    ) -> "Rows":
        """The rows of a table, open or by its location. Raises what `IndexedTable.scan` raises,
        and for a location what `open_table` raises."""
        opened = table if isinstance(table, IndexedTable) else open_table(table)
        options = ScanOptions.of(as_of, query_type, use_index)
        return cls(opened, opened.hudi_table.schema(options.as_of), options)

    @property
    def are_pinned(self) -> bool:
        """Whether each scan gives the same rows."""
        return self.options.as_of is not None

    def scan(
        self, columns: Sequence[str], predicate: Predicate | None, limit: int | None = None
    ) -> Scan:
        """The rows for which a predicate on these columns is TRUE.

        Args:
            columns: Names of top-level columns, in order.
            limit: The most rows.
        """

        def where(schema: pa.Schema, texts: Texts) -> Predicate:
            assert predicate is not None
            for name in sorted(predicate.columns()):
                if column_type(schema, name) != column_type(self.schema, name):
                    raise _changed(name)
            return predicate

        return self.table.scan(
            None if predicate is None else where,
            columns=columns,
            as_of=self.options.as_of,
            limit=limit,
            query_type=self.options.query_type,
            use_index=self.options.use_index,
        )

    def batches(self, scan: Scan) -> Iterator[pa.RecordBatch]:
        """The batches of one of these scans.

        Raises:
            SnapshotChanged: a column no longer has the type that the engine knows; or see
                `Scan.to_batches`.
        """
        for batch in scan.to_batches():
            for field in batch.schema:
                if field.type != self.schema.field(field.name).type:
                    raise _changed(field.name)
            yield batch

    def tables(self, scan: Scan) -> Iterator[pa.Table]:
        """The batches of one of these scans, more and more of them at once: an engine's own work on
        a small one takes longer than its rows. Raises what `batches` raises."""
        most, taken, rows = 1, list[pa.RecordBatch](), 0
        for batch in self.batches(scan):
            taken.append(batch)
            rows += batch.num_rows
            if rows >= most:
                yield pa.Table.from_batches(taken)
                most, taken, rows = min(2 * rows, _MOST_ROWS), [], 0
        if taken:
            yield pa.Table.from_batches(taken)

    def explain(self, columns: Sequence[str], predicate: Predicate | None) -> Explanation:
        """How such a scan is read, and why."""
        explanation = self.scan(columns, predicate).explain()
        return explanation.model_copy(update={"where": predicate and str(predicate)})


def _changed(name: str) -> SnapshotChanged:
    return SnapshotChanged(
        f"The type of column {name} has changed since the engine was given the table.",
        remedy="Give the engine the table anew.",
    )
