"""Finds columns worth indexing: those on which queries scanned and selected few rows."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_index_service.columns import column_type
from hudi_index_service.errors import ColumnNotIndexable, IndexDefinitionInvalid
from hudi_index_service.hudi.files.parquet_file import Footers
from hudi_index_service.index.column_kinds import refuse_special
from hudi_index_service.index.factory import index_type
from hudi_index_service.maintain.advise.build_costs import BuildCost, BuildCosts
from hudi_index_service.optimizer.cost.constants import Constants
from hudi_index_service.optimizer.cost.pages import PAGE_ROWS, pages_holding
from hudi_index_service.optimizer.decide import are_few
from hudi_index_service.optimizer.history.record import HistoryShape
from hudi_index_service.wording import counted

_LEAST_QUERIES = 2.5  # weighted by age
_TIMES_CHEAPER = 1.25
_LEAST_SAVED_MS = 1.0
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class IndexAdvice:
    """Columns worth indexing.

    Attributes:
        columns: Columns to index together, since the same queries filter by them.
        using: The index type.
        defined_by: Indexes already defined on all of them, which only have to be built.
        shapes: Shapes of the queries that scanned.
        queries: Number of queries that scanned, weighted by age.
        scan_ms, rows, scanned_rows: Means per query: milliseconds, matching rows, and rows
            evaluated against the predicate.
        index_ms: Estimated milliseconds per query with the index, by the optimizer's model.
        saves_ms: Estimated saving per query.
        build: Cost of the build, for all columns of the table's entries including these.
        pays_after: Number of queries after which the build has paid off; None if its time is
            unknown.
    """

    columns: tuple[str, ...]
    using: str
    defined_by: tuple[str, ...]
    shapes: tuple[str, ...]
    queries: float
    scan_ms: float
    rows: float
    scanned_rows: float
    index_ms: float
    saves_ms: float
    build: BuildCost
    pays_after: int | None

    def lines(self) -> list[str]:
        """The advice as text."""
        names = ", ".join(self.columns)
        action = (
            f"Build index {self.defined_by[0]}"
            if self.defined_by
            else f"Create an index on {names}"
        )
        seconds, size = self.build.seconds, self.build.index_bytes
        duration = "an unknown time" if seconds is None else f"about {seconds:,.1f} s"
        amount = "an unknown number of" if size is None else f"about {size:,}"
        payoff = (
            ""
            if self.pays_after is None
            else f"; it pays off after {counted(self.pays_after, 'query')}"
        )
        return [
            f"{action}: {self.queries:.0f} queries scanned by {names}, in {self.scan_ms:,.1f} ms "
            f"each, for {self.rows:,.1f} of {self.scanned_rows:,.0f} rows "
            f"({'; '.join(self.shapes)}).",
            f"  By index they take about {self.index_ms:,.1f} ms, and save {self.saves_ms:,.1f} "
            f"ms. Building it takes {duration} and {amount} bytes for "
            f"{counted(self.build.files, 'base file')}{payoff}.",
        ]


@dataclass(frozen=True, slots=True)
class DefinedColumns:
    """The defined indexes and their columns.

    Attributes:
        columns: Index name → its columns.
    """

    columns: dict[str, frozenset[str]]

    def on(self, columns: Collection[str]) -> tuple[str, ...]:
        """The indexes on all of these columns."""
        return tuple(name for name, each in self.columns.items() if each >= set(columns))


def columns_to_index(
    shapes: Iterable[HistoryShape],
    schema: pa.Schema,
    definitions: DefinedColumns,
    facts: Footers,
    costs: BuildCosts,
    constants: Constants,
    *,
    using: str = "lucene",
) -> tuple[IndexAdvice, ...]:
    """The advice, the largest total saving first."""
    shapes_by_columns: defaultdict[tuple[str, ...], list[HistoryShape]] = defaultdict(list)
    for shape in shapes:
        columns = tuple(sorted(shape.unindexed))
        if columns and shape.sums["scanned"] and _may_be_indexed(columns, schema, using):
            shapes_by_columns[columns].append(shape)
    candidates = (
        _advice(columns, group, definitions, facts, costs, constants, using)
        for columns, group in shapes_by_columns.items()
    )
    advice = [each for each in candidates if each is not None]
    return tuple(sorted(advice, key=lambda each: -each.saves_ms * each.queries))


def _may_be_indexed(columns: Sequence[str], schema: pa.Schema, using: str) -> bool:
    kind = index_type(using)
    for name in columns:
        type = column_type(schema, name)
        if type is None:
            return False
        try:
            refuse_special(name, schema)
            kind.fields(name, type, {})
        except (ColumnNotIndexable, IndexDefinitionInvalid):
            return False
    return True


def _advice(
    columns: tuple[str, ...],
    shapes: Sequence[HistoryShape],
    definitions: DefinedColumns,
    facts: Footers,
    costs: BuildCosts,
    constants: Constants,
    using: str,
) -> IndexAdvice | None:
    queries = sum(each.sums["scanned"] for each in shapes)

    def mean(name: str) -> float:
        return sum(each.sums[name] for each in shapes) / queries

    scan_ms, rows = mean("scan_ms"), mean("rows")
    fraction = _fraction_of_scan(rows, mean("scan_bytes"), len(columns), facts, costs, constants)
    index_ms = fraction * scan_ms
    if queries < _LEAST_QUERIES or scan_ms - index_ms < _LEAST_SAVED_MS:
        return None
    if index_ms * _TIMES_CHEAPER > scan_ms:
        return None
    build = costs.of(using, columns)
    saves = scan_ms - index_ms
    return IndexAdvice(
        columns,
        using,
        definitions.on(columns),
        tuple(sorted(each.shape for each in shapes)),
        round(queries, 2),
        round(scan_ms, 3),
        round(rows, 2),
        round(mean("scan_rows"), 1),
        round(index_ms, 3),
        round(saves, 3),
        build,
        None if build.seconds is None else max(1, round(build.seconds * 1000 / saves)),
    )


def _fraction_of_scan(
    rows: float,
    scanned_bytes: float,
    leaves: int,
    facts: Footers,
    costs: BuildCosts,
    constants: Constants,
) -> float:
    """The cost of a query by index, with all entries open, as a fraction of its cost by scan.

    Both follow `CostModel`, not measured times, since the machine may have been busy during the
    scans.
    """
    files = len(costs.base_files)
    if not are_few(round(rows), round(facts.all_rows)):
        return 1.0  # an index would not help: nearly all pages hold some of the rows
    all_pages = max(1.0, facts.all_rows / PAGE_ROWS)
    pages = pages_holding(rows, all_pages)
    total_bytes = sum(each.bytes for each in facts.columns.values()) / (facts.share or 1.0)
    read_columns = (
        max(1.0, len(facts.columns) * min(1.0, scanned_bytes / total_bytes)) if total_bytes else 1.0
    )
    by_index = (
        files * leaves * constants.lookup_ms
        + rows * constants.step_ms
        + constants.picking_ms(
            pages * read_columns,
            scanned_bytes * pages / all_pages / _MIB,
            rows * read_columns,
            min(files, rows),
        )
    )
    by_scan = constants.scanning_ms(scanned_bytes / _MIB, facts.all_rows * read_columns, files)
    return by_index / by_scan
