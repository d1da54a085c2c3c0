"""Descriptions of searches in an index, independent of Lucene."""

from dataclasses import dataclass

from hudi_index_service.predicate.expression import LikePart, MatchMode


@dataclass(frozen=True, slots=True)
class Terms:
    """Documents with any of these terms; no documents if there are no terms."""

    field: str
    terms: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """Documents with a term that starts with these bytes."""

    field: str
    prefix: bytes


@dataclass(frozen=True, slots=True)
class TermRange:
    """Documents with a term between two byte strings, each included or not; None for no bound."""

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


Search = Terms | Prefix | TermRange | Pattern | Points | PointRange | Words | OpenPhrase | AllOf
