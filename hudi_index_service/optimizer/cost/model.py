"""What reading a file slice costs through its index and by a scan, before anything is opened."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import pyarrow as pa

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import Constants, load_constants
from hudi_index_service.optimizer.cost.index_types import TypeCosts, costs_of
from hudi_index_service.optimizer.cost.pages import PAGE_ROWS, pages_holding
from hudi_index_service.optimizer.expected import Expected, RowEstimate
from hudi_index_service.optimizer.plan import QueryPlan, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry

MIB = 2**20

# Of a remote index: up to so many bytes are fetched whole, by one request. Of a larger one opening
# takes 0.7 MB by four requests in a row of time, a look-up a request and 0.26 MB (docs/design.md).
_WHOLE_INDEX = 8 * MIB
_OPENING = (4, 0.7 * MIB)
_LOOKUP = (1, 0.26 * MIB)

_SCAN_REQUESTS = 4  # in a row, to open a remote file: see `access.PRUNING_BYTES`
_AT_ONCE = 10  # requests for pages

_OF_ONE_QUERY = 0.1
"""What of opening an index counts for one query in decisions: it stays open, or in the cache, for
those that follow, which would never have it if none was the first."""

_ASKING_IS_DEAR = 0.2  # of a scan's time

_WIDTHS = {"bool": 0.2, "string": 12.0, "large_string": 12.0, "binary": 12.0}
_WIDE = 16.0  # of nested types


@dataclass(frozen=True, slots=True)
class CostModel:
    """Costs of one query on slices of one table. Make it by `of`.

    Attributes:
        columns: How many are read.
        leaves: Of the predicate.
        share: Of a base file's bytes that the columns read take.
        remote: Whether the base files are in a remote store.
        opened: Data files of entries that are open.
        scan_fraction: See `ReadSettings`: pages of fewer bytes are read by themselves in any case.
        of_type: The costs of an index type, by its name.
    """

    constants: Constants
    columns: int
    leaves: int
    share: float
    remote: bool
    opened: frozenset[str]
    scan_fraction: float
    of_type: Callable[[str], TypeCosts]

    @classmethod
    def of(cls, plan: QueryPlan, settings: Settings) -> "CostModel":
        """The model of a plan's query."""
        needed, around = plan.needed, plan.surroundings
        columns = len(plan.snapshot.schema if needed is None else needed)
        share = around.share
        if share is None:
            share = share_by_types(needed, plan.snapshot.schema)
        leaves = 1 if plan.predicate is None else sum(1 for _ in plan.predicate.leaves())
        constants = load_constants(settings)
        return cls(
            constants,
            columns,
            leaves,
            share,
            around.remote,
            around.opened,
            settings.read.scan_fraction,
            cache(partial(costs_of, known=constants)),
        )

    def expected(
        self, plan: SlicePlan, rows: RowEstimate, pages_known: float | None = None
    ) -> Expected:
        """What reading a slice that has, or had, entries costs if so many rows match.

        Args:
            pages_known: How many pages hold them, where that is known better than by their number.
        """
        known = self.constants
        entries = plan.entries or plan.unused
        total = plan.total
        base_file = plan.file_slice.base_file
        size = 0 if base_file is None else base_file.size
        scanned = size * self.share
        every = max(1.0, total / PAGE_ROWS)
        held = pages_holding(rows.expected, every)
        if pages_known is not None:
            held = min(pages_known / max(1, self.columns), every)
        pages, picked = held * self.columns, scanned * held / every
        by_scan = known.scanning_ms(scanned / MIB, total * self.columns)
        by_pages = 0.0
        if rows.expected > 0:
            by_pages = known.picking_ms(pages, picked / MIB, rows.expected * self.columns)
        if self.remote:
            by_pages += self._fetched(1 + pages / _AT_ONCE if pages else 0, picked)
            by_scan += self._fetched(_SCAN_REQUESTS, scanned)
        opening, index_bytes = self._opening(entries)
        by_index = opening + self.leaves * self.of_type(entries[0].index_type.name).lookup_ms
        picking = by_pages + rows.expected * known.step_ms
        if picking <= by_scan:
            by_index += picking
        else:  # some look-ups tell, and the file is scanned
            by_index += known.few_steps(total) * known.step_ms + by_scan
        return Expected(rows, pages, picked, index_bytes, by_index, round(scanned), by_scan)

    def is_worth_asking(self, plan: SlicePlan, expected: Expected) -> bool:
        """Whether the index is asked: it is unless a scan is clearly cheaper. At run time pages and
        file are weighed again with the row ids known, and to ask costs little; so estimates count
        only where asking itself costs much, and bounds that hold otherwise."""
        if expected.index_ms <= expected.scan_ms or expected.bytes <= (
            self.scan_fraction * expected.scan_bytes
        ):
            return True
        opening = (1 - _OF_ONE_QUERY) * self._opening(plan.entries or plan.unused)[0]
        rows = expected.rows
        if rows.least > 0:
            certain = self.expected(plan, RowEstimate(rows.least, rows.least, rows.least))
            if certain.index_ms - opening > certain.scan_ms:
                return False
        by_index = expected.index_ms - opening
        if by_index <= expected.scan_ms:
            return True
        asking = by_index - expected.scan_ms
        return asking <= _ASKING_IS_DEAR * expected.scan_ms

    def asking_ms(self, serving: ServingEntry) -> float:
        """What it takes to get a first answer of an entry."""
        lookup = self.of_type(serving.index_type.name).lookup_ms
        return self._opening((serving,))[0] + lookup

    def _opening(self, entries: tuple[ServingEntry, ...]) -> tuple[float, int]:
        """The milliseconds until a look-up may begin, and the bytes that have to be fetched."""
        serving = entries[0]
        if serving.entry.data_path in self.opened:
            return 0.0, 0
        open_ms = self.of_type(serving.index_type.name).open_ms
        return opening_cost(
            serving, open_ms, self.constants, remote=self.remote, leaves=self.leaves
        )

    def _fetched(self, requests: float, size: float) -> float:
        return fetching_ms(self.constants, requests, size)


def opening_cost(
    serving: ServingEntry, open_ms: float, known: Constants, *, remote: bool, leaves: int = 1
) -> tuple[float, int]:
    """The milliseconds until an entry that is not open can be asked for so many leaves, and the
    bytes that have to be fetched.

    Args:
        open_ms: What opening takes whose bytes are on the local disk (see `costs_of`).
    """
    if not remote:
        return open_ms, 0
    length = serving.entry.manifest.data.length
    if length <= _WHOLE_INDEX:
        requests, size = 1.0, float(length)
    else:
        requests = _OPENING[0] + leaves * _LOOKUP[0]
        size = _OPENING[1] + leaves * _LOOKUP[1]
    return open_ms + fetching_ms(known, requests, size), round(size)


def fetching_ms(known: Constants, requests: float, size: float) -> float:
    """What a remote store takes to send so many bytes, by requests in a row."""
    return requests * known.request_ms + size / MIB * known.remote_mib_ms


def share_by_types(needed: pa.Schema | None, schema: pa.Schema) -> float:
    """The share of a file's bytes that some columns take, by guesses of what values of their types
    take; used until a footer has been seen."""
    every = sum(map(_width, schema.types))
    if needed is None or not every:
        return 1.0
    return min(1.0, sum(map(_width, needed.types)) / every)


def _width(kind: pa.DataType) -> float:
    known = _WIDTHS.get(str(kind))
    if known is not None:
        return known
    try:
        bits: int = kind.bit_width
    except ValueError:
        return _WIDE
    return bits / 8
