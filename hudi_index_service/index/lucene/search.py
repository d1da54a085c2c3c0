"""Descriptions of searches in an index, independent of Lucene, and their intersections."""

from dataclasses import dataclass

from hudi_index_service.index.intervals import Interval
from hudi_index_service.predicate.expression import LikePart, MatchMode


@dataclass(frozen=True, slots=True)
class Terms:
    """Documents with any of these terms; no documents if there are no terms."""

    field: str
    terms: tuple[bytes, ...]

    def __hash__(self) -> int:  # there may be very many
        return hash((self.field, len(self.terms), self.terms[:1]))


@dataclass(frozen=True, slots=True)
class TermRange:
    """Documents with a term in an interval."""

    field: str
    interval: Interval


@dataclass(frozen=True, slots=True)
class Pattern:
    """Documents with a term that matches a LIKE pattern, or has at least `long_bytes`, if given."""

    field: str
    parts: tuple[LikePart, ...]
    long_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Points:
    """Documents with any of these numbers, which have 128 bits if `wide`; no documents if there
    are no numbers."""

    field: str
    points: tuple[int, ...]
    wide: bool = False

    def __hash__(self) -> int:  # see `Terms`
        return hash((self.field, len(self.points), self.points[:1], self.wide))


@dataclass(frozen=True, slots=True)
class PointRange:
    """Documents with a number from low to high, both included."""

    field: str
    low: int
    high: int
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """Documents whose analyzed text matches a full-text search (see `Match`)."""

    field: str
    analyzer: str
    mode: MatchMode
    text: str
    edits: int


@dataclass(frozen=True, slots=True)
class OpenPhrase:
    """Documents whose text has these words in sequence, followed by a word with the given
    beginning, if any. May find other documents too, if very many words have that beginning."""

    field: str
    words: tuple[str, ...]
    beginning: str | None


@dataclass(frozen=True, slots=True)
class AllOf:
    """Documents that all of the searches find."""

    searches: tuple["Search", ...]


Search = Terms | TermRange | Pattern | Points | PointRange | Words | OpenPhrase | AllOf


def intersection(one: Search, other: Search) -> Search | None:
    """The search for the rows that both searches in one field find, if no row has two values in it.
    None if one search cannot express it."""
    if isinstance(one, AllOf) or isinstance(other, AllOf) or one.field != other.field:
        return None
    match one, other:
        case (Points(), Points()):
            return Points(one.field, tuple(sorted({*one.points} & {*other.points})), one.wide)
        case (Points(), PointRange(low=low, high=high)):
            return Points(one.field, tuple(p for p in one.points if low <= p <= high), one.wide)
        case (PointRange(), PointRange()):
            low, high = max(one.low, other.low), min(one.high, other.high)
            if low > high:
                return Points(one.field, (), one.wide)
            return PointRange(one.field, low, high, one.wide)
        case (Terms(), Terms()):
            return Terms(one.field, tuple(sorted({*one.terms} & {*other.terms})))
        case (Terms(), TermRange()):
            return Terms(one.field, tuple(filter(other.interval.holds, one.terms)))
        case (TermRange(), TermRange()):
            both = one.interval & other.interval
            return Terms(one.field, ()) if both.is_empty else TermRange(one.field, both)
        case (PointRange(), Points()) | (TermRange(), Terms()):
            return intersection(other, one)
    return None
