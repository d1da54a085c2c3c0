"""Look-ups in the entries of a slice, as the set algebra of `read/row_ids.py` needs them."""

from dataclasses import dataclass, field

from pyroaring import BitMap

from hudi_index_service.optimizer.cost.constants import DEFAULTS
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate
from hudi_index_service.read.row_ids import RowSet, candidate_rows
from hudi_index_service.read.slices.slice_entries import INDEX_FAILURES, SliceEntries


@dataclass(slots=True)
class EntryLookups:
    """Implements `read.slices.sampled_rows.Samples` on entries, and on the base file's column index
    for leaves that no entry answers.

    Attributes:
        limit: The limit of steps per look-up while no row is known; None for no limit.
        put_off: Whether a look-up was put off because of the limit.
        row_steps: See `hudi_index_service.read.row_ids.Lookups`.
    """

    entries: SliceEntries
    superset_ok: bool
    limit: int | None = None
    put_off: bool = False
    row_steps: int = DEFAULTS.row_steps
    # Keyed by the id of a leaf, or the ids of conjuncts looked up together. These belong to the
    # predicate, which outlives this object.
    _found: dict[tuple[int, ...], RowSet] = field(default_factory=dict)

    def without_limit(self) -> "EntryLookups":
        """The same look-ups without a limit; results found so far are kept."""
        known, steps = self._found, self.row_steps
        return EntryLookups(self.entries, self.superset_ok, row_steps=steps, _found=known)

    @property
    def total(self) -> int:
        """Rows of the base file."""
        return self.entries.total

    def answers(self, conjuncts: And) -> bool:
        """Whether one entry answers all conjuncts in one look-up."""
        return self.entries.answers(conjuncts)

    def estimate(self, asked: Predicate) -> int:
        """See `SliceEntries.estimate`."""
        return self.entries.estimate(asked)

    def answered(self, leaf: Predicate) -> bool:
        """See `SliceEntries.answered`."""
        return self.entries.answered(leaf)

    def narrowed(self, asked: Predicate, rows: BitMap) -> RowSet:
        """See `SliceEntries.narrowed`; everything if that fails, which `rows` reports."""
        if isinstance(asked, And | Or | Constant):
            return RowSet.everything()
        try:
            return self.entries.narrowed(asked, rows)
        except INDEX_FAILURES:
            return RowSet.everything()

    def sample(self, asked: Predicate, most: int) -> BitMap:
        """See `SliceEntries.sample`."""
        return self.entries.sample(asked, most)

    def rows(self, asked: Predicate, most: int | None) -> RowSet:
        """See `SliceEntries.rows` and `pages`; raises what they raise."""
        ids = self._ids(asked)
        known = self._found.get(ids) if ids else None
        if known is not None:
            return known
        try:
            limit = self.limit if most is None else most
            found = self.entries.rows(asked, limit, superset_ok=self.superset_ok)
        except INDEX_FAILURES:
            if not isinstance(asked, And):
                raise
            # An entry of another index type may answer each of them.
            return candidate_rows(And(asked.operands), self, most)
        if found.rows is not None:
            if ids:
                self._found[ids] = found
            return found
        if most is None and self.limit is not None and self.entries.answered(asked):
            self.put_off = True
            return found  # nothing is known yet: the other arms of an OR need no look-up
        return found if isinstance(asked, And) else self.entries.pages(asked)

    def _ids(self, asked: Predicate) -> tuple[int, ...]:
        """The key of a result; empty if the look-up will not be repeated."""
        if self.limit is None and not self._found:
            return ()
        return tuple(map(id, asked.operands)) if isinstance(asked, And) else (id(asked),)
