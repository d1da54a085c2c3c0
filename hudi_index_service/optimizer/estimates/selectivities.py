"""Default selectivities without statistics: those of PostgreSQL (its `selfuncs.h` and
`like_support.c`) where it has one."""

from hudi_index_service.predicate.expression import LikePart, MatchMode

RANGE = 1 / 3
"""For a range open at one end, if the bounds are not known."""

CLOSED_RANGE = 0.005
"""For a range with two ends, if the bounds are not known."""

NULL = 0.005
"""For NULL in a column that no entry holds."""

CONTAINED = 0.005
"""For arrays that contain an element."""

_LEAST = 0.005  # for a pattern, since users mostly search for patterns that occur
_CHARACTER = 0.2  # share of the values matching so far that have this character next
_ANY_CHARACTER = 0.9
_ANY_TEXT = 5.0

_MATCH = {
    MatchMode.ALL: 0.01,
    MatchMode.ANY: 0.05,
    MatchMode.PHRASE: 0.005,
    MatchMode.PREFIX: 0.05,
    MatchMode.FUZZY: 0.02,
}


def like(parts: tuple[LikePart, ...]) -> float:
    """The share of texts that match a LIKE pattern, or the rest of one."""
    share = 1.0
    for number, part in enumerate(parts):
        if part.kind == "text":
            share *= _CHARACTER ** len(part.text)
        elif part.kind == "one":
            share *= _ANY_CHARACTER
        elif number:  # at the beginning it changes nothing
            share *= _ANY_TEXT
    return min(max(share, _LEAST), 1.0)


def text(fixed: str) -> float:
    """The share of texts that contain this text."""
    return max(float(_CHARACTER ** len(fixed)), _LEAST)


def match(mode: MatchMode) -> float:
    """The share of texts that match a full-text search."""
    return _MATCH[mode]
