"""Estimates the cost of reading a file slice through its index and by a scan, before opening it."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, partial

import pyarrow as pa

from hudi_index_service.config import Settings
from hudi_index_service.index.contract import IndexType, TypeCosts
from hudi_index_service.optimizer.cost.constants import (
    INDEX_LOOKUP,
    INDEX_OPENING,
    MIB,
    PAGES_PER_REQUEST,
    SCAN_REQUESTS,
    WHOLE_INDEX_BYTES,
    Constants,
    load_constants,
)
from hudi_index_service.optimizer.cost.index_types import costs_of
from hudi_index_service.optimizer.cost.pages import PAGE_ROWS, pages_holding
from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.optimizer.plan import QueryPlan, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry

_WIDTHS = {"bool": 0.2, "string": 12.0, "large_string": 12.0, "binary": 12.0}
_WIDE = 16.0  # of nested types


@dataclass(frozen=True, slots=True)
class CostModel:
    """Costs of one query on slices of one table. Make it by `of`.

    Attributes:
        columns: The number of columns read.
        leaves: The number of leaves of the predicate.
        share: The share of a base file's bytes that the columns read take.
        remote: Whether the base files are in a remote store.
        opened: Data files of entries that are open.
        scan_fraction: See `ReadSettings`; below this share of the bytes, single pages are read.
        of_type: The costs of an index type.
    """

    constants: Constants
    columns: int
    leaves: int
    share: float
    remote: bool
    opened: AbstractSet[str]
    scan_fraction: float
    of_type: Callable[[IndexType], TypeCosts]

    @classmethod
    def of(cls, plan: QueryPlan, settings: Settings) -> "CostModel":
        """The model of a plan's query."""
        needed, schema, share = plan.needed, plan.snapshot.schema, plan.share
        constants = load_constants(settings)
        return cls(
            constants,
            len(schema if needed is None else needed),
            1 if plan.predicate is None else sum(1 for _ in plan.predicate.leaves()),
            share_by_types(needed, schema) if share is None else share,
            plan.remote,
            plan.opened,
            settings.read.scan_fraction,
            cache(partial(costs_of, known=constants)),
        )

    def expected(self, plan: SlicePlan, rows: RowEstimate) -> Expected:
        """The cost of reading a slice with entries, or rejected entries, if these rows match."""
        constants = self.constants
        entries = plan.known_entries
        total = entries[0].rows
        scan_bytes = plan.file_slice.base_file.size * self.share
        all_pages = max(1.0, total / PAGE_ROWS)
        held_pages = pages_holding(rows.expected, all_pages)
        pages, page_bytes = held_pages * self.columns, scan_bytes * held_pages / all_pages
        by_scan = constants.scanning_ms(scan_bytes / MIB, total * self.columns)
        by_pages = 0.0
        if rows.expected > 0:
            by_pages = constants.picking_ms(pages, page_bytes / MIB, rows.expected * self.columns)
        if self.remote:
            requests = 1 + pages / PAGES_PER_REQUEST if pages else 0
            by_pages += fetching_ms(constants, requests, page_bytes)
            by_scan += fetching_ms(constants, SCAN_REQUESTS, scan_bytes)
        opening, index_bytes = self._opening(entries)
        by_index = opening + self.leaves * self.of_type(entries[0].index_type).lookup_ms
        # Once the rows are known, the file is scanned if that is cheaper.
        by_index += rows.expected * constants.step_ms + min(by_pages, by_scan)
        return Expected(rows, pages, page_bytes, index_bytes, by_index, round(scan_bytes), by_scan)

    def looking_up_ms(self, plan: SlicePlan, rows: float) -> float:
        """Milliseconds of looking up this many rows of a slice."""
        entries = plan.known_entries
        lookups = self.leaves * self.of_type(entries[0].index_type).lookup_ms
        return self.opening_ms(entries) + lookups + rows * self.constants.step_ms

    def first_result_ms(self, serving: ServingEntry) -> float:
        """Milliseconds until the first result of an entry."""
        lookup = self.of_type(serving.index_type).lookup_ms
        return self.opening_ms((serving,)) + lookup

    def opening_ms(self, entries: tuple[ServingEntry, ...]) -> float:
        """Milliseconds until a look-up in the first of these entries can begin."""
        return self._opening(entries)[0]

    def _opening(self, entries: tuple[ServingEntry, ...]) -> tuple[float, int]:
        """The milliseconds until a look-up can begin, and the bytes to be fetched."""
        serving = entries[0]
        if serving.entry.data_path in self.opened:
            return 0.0, 0
        open_ms = self.of_type(serving.index_type).open_ms
        return opening_cost(
            serving, open_ms, self.constants, remote=self.remote, leaves=self.leaves
        )


def opening_cost(
    serving: ServingEntry, open_ms: float, constants: Constants, *, remote: bool, leaves: int = 1
) -> tuple[float, int]:
    """The milliseconds until a closed entry can answer this many leaves, and the bytes to be
    fetched.

    Args:
        open_ms: The cost of opening it from the local disk (see `costs_of`).
    """
    if not remote:
        return open_ms, 0
    length = serving.entry.manifest.data.length
    if length <= WHOLE_INDEX_BYTES:
        requests, size = 1.0, float(length)
    else:
        requests = INDEX_OPENING[0] + leaves * INDEX_LOOKUP[0]
        size = INDEX_OPENING[1] + leaves * INDEX_LOOKUP[1]
    return open_ms + fetching_ms(constants, requests, size), round(size)


def fetching_ms(constants: Constants, requests: float, size: float) -> float:
    """Milliseconds that a remote store takes to send this many bytes in sequential requests."""
    return requests * constants.request_ms + size / MIB * constants.remote_mib_ms


def share_by_types(needed: pa.Schema | None, schema: pa.Schema) -> float:
    """The share of a file's bytes that some columns take, guessed from the typical width of their
    types; used until a footer has been read."""
    total_width = sum(map(_width, schema.types))
    if needed is None or not total_width:
        return 1.0
    return min(1.0, sum(map(_width, needed.types)) / total_width)


def _width(kind: pa.DataType) -> float:
    width = _WIDTHS.get(str(kind))
    if width is not None:
        return width
    try:
        bits: int = kind.bit_width
    except ValueError:
        return _WIDE
    return bits / 8
