"""The rows of a base file that make a predicate TRUE, between two bounds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyroaring import BitMap

from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.fold import Condition, fold


@dataclass(frozen=True, slots=True)
class Bounds:
    """Two sets of rows: whatever is unknown, `certain` ⊆ rows that match ⊆ `possible`.

    Attributes:
        certain: Rows that match. Counting them needs no residual.
        possible: The candidates: no other row matches. None for every row.
    """

    certain: BitMap
    possible: BitMap | None

    @classmethod
    def unanswered(cls) -> "Bounds":
        """Nothing is known: no row is certain, and every row is possible."""
        return cls(BitMap(), None)

    @classmethod
    def exactly(cls, rows: BitMap) -> "Bounds":
        """These rows match, and no others."""
        return cls(rows, rows)

    @classmethod
    def among(cls, rows: BitMap) -> "Bounds":
        """Only some of these rows match."""
        return cls(BitMap(), rows)

    @classmethod
    def of(cls, rows: BitMap, *, exact: bool) -> "Bounds":
        """Only these rows match: all of them if that is exact, else some."""
        return cls.exactly(rows) if exact else cls.among(rows)

    @property
    def exact_rows(self) -> BitMap | None:
        """The matching rows, if known without reading any row; else None."""
        known = self.possible is not None and len(self.certain) == len(self.possible)
        return self.possible if known else None

    def __and__(self, other: "Bounds") -> "Bounds":
        return Bounds(self.certain & other.certain, _common(self.possible, other.possible))

    def __or__(self, other: "Bounds") -> "Bounds":
        certain = self.certain | other.certain
        if self.possible is None or other.possible is None:
            return Bounds(certain, None)
        return Bounds(certain, self.possible | other.possible)

    def within(self, rows: BitMap) -> "Bounds":
        """The same if no other rows than these match."""
        return Bounds(self.certain & rows, _common(self.possible, rows))


def _common(some: BitMap | None, others: BitMap | None) -> BitMap | None:
    if some is None or others is None:
        return some if others is None else others
    return some & others


def _any_of(parts: Iterable[Bounds]) -> Bounds:
    """The rows of an OR. Parts after one that narrows nothing are not computed."""
    bounds = Bounds.exactly(BitMap())
    for each in parts:
        bounds |= each
        if bounds.possible is None:
            break
    return bounds


def _all_of(parts: Iterable[Bounds]) -> Bounds:
    """The rows of an AND. Parts after no row is left are not computed."""
    bounds = Bounds.unanswered()
    for number, each in enumerate(parts):
        bounds = bounds & each if number else each
        if bounds.possible is not None and not bounds.possible:
            break
    return bounds


def matching_rows(predicate: Predicate, of_leaf: Callable[[Condition], Bounds]) -> Bounds:
    """The rows of a predicate in negation normal form, each leaf looked up on its own, in written
    order."""
    return fold(predicate, of_leaf, _all_of, _any_of)
