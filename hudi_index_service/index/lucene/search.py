"""What is searched for in an index, described without Lucene."""

from dataclasses import dataclass

from hudi_index_service.predicate.expression import LikePart, MatchMode


@dataclass(frozen=True, slots=True)
class Terms:
    """Documents with any of these terms; none when empty."""

    field: str
    terms: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """Documents with a term that starts with these bytes."""

    field: str
    prefix: bytes


@dataclass(frozen=True, slots=True)
class TermRange:
    """Documents with a term between two byte strings, which are included or not; None is no
    bound."""

    field: str
    low: bytes | None
    high: bytes | None
    low_included: bool
    high_included: bool

    def holds(self, term: bytes) -> bool:
        """Whether a term lies in the range."""
        above = self.low is None or term > self.low or (self.low_included and term == self.low)
        below = self.high is None or term < self.high or (self.high_included and term == self.high)
        return above and below


@dataclass(frozen=True, slots=True)
class Pattern:
    """Documents with a term that fits a LIKE pattern, or has at least `long_bytes`, if given."""

    field: str
    parts: tuple[LikePart, ...]
    long_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Points:
    """Documents with any of these numbers, which have 128 bits if `wide`; none when empty."""

    field: str
    points: tuple[int, ...]
    wide: bool = False


@dataclass(frozen=True, slots=True)
class PointRange:
    """Documents with a number from low to high, both included."""

    field: str
    low: int
    high: int
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """Documents whose analysed text fits a full-text search (see `Match`)."""

    field: str
    analyzer: str
    mode: MatchMode
    text: str
    edits: int


@dataclass(frozen=True, slots=True)
class OpenPhrase:
    """Documents whose text has these words one after the other, and then one that begins so, if a
    beginning is given; some others, where very many words begin so."""

    field: str
    words: tuple[str, ...]
    beginning: str | None


@dataclass(frozen=True, slots=True)
class AllOf:
    """Documents that each of the searches finds."""

    searches: tuple["Search", ...]


Search = Terms | Prefix | TermRange | Pattern | Points | PointRange | Words | OpenPhrase | AllOf
