"""A look-up in a tree."""

from dataclasses import dataclass

from hudi_index_service.index.btree.intervals import Intervals
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
