"""Look-ups in the entries of a slice, as the set algebra of `read/row_ids.py` needs them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyroaring import BitMap

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.optimizer.cost.constants import DEFAULTS
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate
from hudi_index_service.read.row_ids import RowSet, candidate_rows
from hudi_index_service.read.slices.early_lookups import Found, LeafKey, leaf_key
from hudi_index_service.read.slices.slice_entries import SliceEntries


@dataclass(slots=True)
class EntryLookups:
    """Implements `read.slices.sampled_rows.Samples` on entries, and on the base file's column index
    for leaves that no entry answers.

    Attributes:
        limit: The limit of steps per look-up while no row is known; None for no limit.
        put_off: Whether a look-up was put off because of the limit.
        row_steps: See `hudi_index_service.read.row_ids.Lookups`.
        known: What `EarlyLookups` found.
    """

    entries: SliceEntries
    superset_ok: bool
    limit: int | None = None
    put_off: bool = False
    row_steps: int = DEFAULTS.row_steps
    known: Found = field(default_factory=dict)
    # The predicate outlives this object.
    _results: dict[LeafKey, RowSet] = field(default_factory=dict)

    def without_limit(self) -> "EntryLookups":
        """The same look-ups without a limit; results found so far are kept."""
        return replace(self, limit=None, put_off=False)

    @property
    def keys(self) -> Sequence[tuple[str, ...]]:
        """The composite keys of the entries."""
        return self.entries.keys

    @property
    def total(self) -> int:
        """Rows of the base file."""
        return self.entries.total

    def answers(self, conjuncts: And) -> bool:
        """Whether one entry answers all conjuncts in one look-up."""
        return self.entries.answers(conjuncts)

    def estimate(self, predicate: Predicate) -> int:
        """See `SliceEntries.estimate`."""
        known = self._known(predicate)
        if known is None or known.rows is None:
            return self.entries.estimate(predicate)
        return len(known.rows)

    def answered(self, leaf: Predicate) -> bool:
        """See `SliceEntries.answered`."""
        return self.entries.answered(leaf)

    def narrowed(self, predicate: Predicate, rows: BitMap) -> RowSet:
        """See `SliceEntries.narrowed`; everything if that fails, which `rows` reports."""
        known = self._known(predicate)
        if known is not None and known.rows is not None:
            return RowSet(rows & known.rows, known.exact)
        if isinstance(predicate, And | Or | Constant):
            return RowSet.everything()
        try:
            return self.entries.narrowed(predicate, rows)
        except EntryUnusable:
            return RowSet.everything()

    def sample(self, predicate: Predicate, most: int) -> BitMap:
        """See `SliceEntries.sample`."""
        return self.entries.sample(predicate, most)

    def rows(self, predicate: Predicate, most: int | None) -> RowSet:
        """See `SliceEntries.rows` and `pages`; raises what they raise."""
        known = self._known(predicate)
        if known is not None:
            return known
        try:
            limit = self.limit if most is None else most
            candidates = self.entries.rows(predicate, limit, superset_ok=self.superset_ok)
        except EntryUnusable:
            if not isinstance(predicate, And):
                raise
            # An entry of another index type may answer each of them.
            return candidate_rows(And(predicate.operands), self, most)
        if candidates.rows is not None:
            self._results[leaf_key(predicate)] = candidates
            return candidates
        if most is None and self.limit is not None and self.entries.answered(predicate):
            self.put_off = True
            return candidates  # no rows are known yet: the other arms of an OR need no look-up
        return candidates if isinstance(predicate, And) else self.entries.pages(predicate)

    def _known(self, predicate: Predicate) -> RowSet | None:
        """The rows of a leaf, if they have been looked up."""
        key = leaf_key(predicate)
        return self._results.get(key) or self.known.get(key)
