"""LIKE patterns: parsing by Spark's rules, and conversion for the evaluator."""

import re
from collections.abc import Sequence

from hudi_index_service.errors import PredicateInvalid
from hudi_index_service.predicate.expression import LikePart
from hudi_index_service.wording import shortened

ANY = LikePart("any")
ONE = LikePart("one")
_WILDCARDS = {"%": ANY, "_": ONE}


def parse_like(pattern: str, escape: str = "\\") -> tuple[LikePart, ...]:
    """The parts of `pattern`: adjacent texts merged, and adjacent ``%`` merged.

    `escape` is one character and may only precede ``%``, ``_`` and itself
    (``StringUtils.escapeLikeRegex`` of Spark).

    Raises:
        PredicateInvalid: the escape character ends the pattern or precedes another character.
    """
    parts: list[LikePart] = []
    text: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            text.append(_escaped_character(pattern, escape, next(characters, None)))
            continue
        part = _WILDCARDS.get(character)
        if part is None:
            text.append(character)
            continue
        if text:
            parts.append(LikePart("text", "".join(text)))
            text.clear()
        if not (part is ANY and parts and parts[-1] is ANY):
            parts.append(part)
    if text:
        parts.append(LikePart("text", "".join(text)))
    return tuple(parts)


def _escaped_character(pattern: str, escape: str, character: str | None) -> str:
    if character is None:
        raise PredicateInvalid(
            f"ESC_AT_THE_END: the LIKE pattern {shortened(pattern)!r} ends with its escape "
            "character.",
            remedy=f"Write {escape}{escape} for the character itself.",
        )
    if character not in ("%", "_", escape):
        raise PredicateInvalid(
            f"ESC_IN_THE_MIDDLE: the escape character of the LIKE pattern "
            f"{shortened(pattern)!r} precedes "
            f"{character!r}.",
            remedy=f"It may only precede %, _ and itself; write {escape}{escape} for itself.",
        )
    return character


def escaped_text(text: str) -> str:
    """A pattern for the text itself, with ``!`` as its escape character."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def like_regex(parts: tuple[LikePart, ...]) -> str:
    """A regular expression for RE2 that matches the same whole texts as the pattern.

    ``.`` matches every code point, including line ends.
    """
    pieces = {"any": ".*", "one": "."}
    body = "".join(pieces.get(part.kind) or _quote(part.text) for part in parts)
    return rf"(?s)\A{body}\z"


def _quote(text: str) -> str:
    # RE2 reads a pattern as a C string, without NUL; re.escape leaves NUL unchanged.
    return re.escape(text).replace("\0", r"\x00")


def long_like_regex(parts: Sequence[LikePart]) -> str:
    """The same for Python's `re`, for patterns that would take RE2 too much memory.

    The segments between the ``%`` are searched from left to right, each at its first position after
    the previous one, and never again elsewhere (in atomic groups). If the pattern matches at all,
    it matches at these positions.
    """
    segments = [""]
    for part in parts:
        if part is ANY:
            segments.append("")
        else:
            segments[-1] += "." if part is ONE else re.escape(part.text)
    first, *between = segments
    if not between:
        return rf"(?s){first}\Z"
    last = between.pop()
    return rf"(?s){first}{''.join(f'(?>.*?{each})' for each in between)}.*{last}\Z"


def least_length(parts: Sequence[LikePart]) -> int:
    """The minimum number of characters of a matching text."""
    return sum(1 if part is ONE else len(part.text) for part in parts)
