"""Look-ups in the entries of a slice, as set algebra asks for them."""

from dataclasses import dataclass, field

from pyroaring import BitMap

from hudi_index_service.optimizer.cost.constants import DEFAULTS
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate
from hudi_index_service.read.row_ids import RowSet, candidate_rows
from hudi_index_service.read.slice_entries import INDEX_FAILURES, SliceEntries


@dataclass(slots=True)
class EntryLookups:
    """See `hudi_index_service.read.sampled_rows.Samples`: of entries, and of the base file's column
    index for leaves that no entry answers.

    Attributes:
        limit: Steps of a look-up as long as no row is known; None for any number.
        put_off: Whether a look-up was not made for that limit.
        row_steps: See `hudi_index_service.read.row_ids.Lookups`.
    """

    entries: SliceEntries
    thrifty: bool
    limit: int | None = None
    put_off: bool = False
    row_steps: int = DEFAULTS.row_steps
    # By the id of a leaf, or those of conjuncts that are asked at once: the predicate's own leaves,
    # which live longer than this.
    _found: dict[tuple[int, ...], RowSet] = field(default_factory=dict)

    def without_limit(self) -> "EntryLookups":
        """The same, for whom no look-up is put off; what was found counts there, too."""
        known, steps = self._found, self.row_steps
        return EntryLookups(self.entries, self.thrifty, row_steps=steps, _found=known)

    @property
    def total(self) -> int:
        """Rows of the base file."""
        return self.entries.total

    def answers(self, conjuncts: And) -> bool:
        """Whether one entry answers them all at once."""
        return self.entries.answers(conjuncts)

    def estimate(self, asked: Predicate) -> int:
        """See `SliceEntries.estimate`."""
        return self.entries.estimate(asked)

    def answered(self, leaf: Predicate) -> bool:
        """See `SliceEntries.answered`."""
        return self.entries.answered(leaf)

    def narrowed(self, asked: Predicate, rows: BitMap) -> RowSet:
        """See `SliceEntries.narrowed`; everything where that fails: `rows` tells of it then."""
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
        """See `SliceEntries.rows` and `pages`; raises what these do."""
        ids = self._ids(asked)
        known = self._found.get(ids) if ids else None
        if known is not None:
            return known
        try:
            limit = self.limit if most is None else most
            found = self.entries.rows(asked, limit, thrifty=self.thrifty)
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
            return found  # nothing is known yet: of an OR, no other arm has to be looked up
        return found if isinstance(asked, And) else self.entries.pages(asked)

    def _ids(self, asked: Predicate) -> tuple[int, ...]:
        """Those by which what is found is known; none where nobody will ask again."""
        if self.limit is None and not self._found:
            return ()
        return tuple(map(id, asked.operands)) if isinstance(asked, And) else (id(asked),)
