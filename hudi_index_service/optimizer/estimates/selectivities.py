"""Shares of rows where nothing tells them: those of PostgreSQL (its `selfuncs.h` and
`like_support.c`), where it has one."""

from hudi_index_service.predicate.expression import LikePart, MatchMode

EQUAL = 0.005
"""Of a value, where neither the number of distinct values nor the span is known."""

RANGE = 1 / 3
"""Of a range open at one end, where the bounds are not known."""

CLOSED_RANGE = 0.005
"""Of a range with two ends, likewise."""

NULL = 0.005
"""Of NULL, in a column that no entry holds."""

CONTAINED = 0.005
"""Of the arrays that hold an element."""

_LEAST = 0.005  # of a pattern, since who asks for one knows of some that fit
_CHARACTER = 0.2  # of the values that fit so far, those with this character next
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
    """Of the texts that fit a LIKE pattern, or what is left of one."""
    share = 1.0
    for number, part in enumerate(parts):
        if part.kind == "text":
            share *= _CHARACTER ** len(part.text)
        elif part.kind == "one":
            share *= _ANY_CHARACTER
        elif number:  # at the beginning it costs nothing
            share *= _ANY_TEXT
    return min(max(share, _LEAST), 1.0)


def text(fixed: str) -> float:
    """Of the texts that have this one at some place."""
    return max(float(_CHARACTER ** len(fixed)), _LEAST)


def match(mode: MatchMode) -> float:
    """Of the texts that fit a full-text search."""
    return _MATCH[mode]
