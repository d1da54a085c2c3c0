"""A look-up in a tree."""

from dataclasses import dataclass
from functools import cached_property

from hudi_index_service.index.btree.intervals import Intervals, Points
from hudi_index_service.index.contract import Answer


@dataclass(frozen=True)
class TreeLookup:
    """A look-up that answers a leaf, or conjuncts: finding rows, optionally followed by taking the
    complement.

    Attributes:
        tree: The column, or the field of a composite key, whose tree is searched.
        keys: The keys whose rows to find; None to find the rows where the column is NULL.
        complement: Whether the answer is all rows except those found; never of a composite key.
        without_null: Whether the complement also excludes rows where the column, or an element of
            it, is NULL.
    """

    tree: str
    keys: Intervals | None
    answer: Answer = Answer.EXACT
    complement: bool = False
    without_null: bool = False

    @cached_property
    def points(self) -> Points | None:
        """The keys, if they are single ones; else None."""
        keys = self.keys or ()
        if isinstance(keys, Points):
            return keys
        if keys and all(each.is_point for each in keys):
            return Points([each.low for each in keys])
        return None
