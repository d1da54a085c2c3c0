"""LIKE patterns: parsed by Spark's rules, and turned into what the evaluator matches with."""

import re

from hudi_index_service.errors import PredicateInvalid
from hudi_index_service.predicate.expression import LikePart

ANY = LikePart("any")
ONE = LikePart("one")


def parse_like(pattern: str, escape: str = "\\") -> tuple[LikePart, ...]:
    """The parts of `pattern`: adjacent texts merged, and adjacent ``%`` merged.

    `escape` is one character and may stand before ``%``, ``_`` and itself only
    (``StringUtils.escapeLikeRegex`` of Spark).

    Raises:
        PredicateInvalid: the escape character ends the pattern or precedes another character.
    """
    parts: list[LikePart] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            part = LikePart("text", _escaped(pattern, escape, next(characters, None)))
        else:
            part = {"%": ANY, "_": ONE}.get(character) or LikePart("text", character)
        if parts and part.kind == parts[-1].kind == "text":
            parts[-1] = LikePart("text", parts[-1].text + part.text)
        elif not (parts and part == parts[-1] == ANY):
            parts.append(part)
    return tuple(parts)


def _escaped(pattern: str, escape: str, character: str | None) -> str:
    if character is None:
        raise PredicateInvalid(
            f"ESC_AT_THE_END: the LIKE pattern {pattern!r} ends with its escape character.",
            remedy=f"Write {escape}{escape} for the character itself.",
        )
    if character not in ("%", "_", escape):
        raise PredicateInvalid(
            f"ESC_IN_THE_MIDDLE: the escape character of the LIKE pattern {pattern!r} stands "
            f"before {character!r}.",
            remedy=f"It may precede %, _ and itself; write {escape}{escape} for itself.",
        )
    return character


def like_regex(parts: tuple[LikePart, ...]) -> str:
    """A regular expression for RE2 that matches the whole of what the pattern matches.

    ``.`` matches every code point here, line ends too.
    """
    pieces = {"any": ".*", "one": "."}
    body = "".join(pieces.get(part.kind) or _quoted(part.text) for part in parts)
    return rf"(?s)\A{body}\z"


def _quoted(text: str) -> str:
    # RE2 takes no NUL from a C string's view of a pattern; re.escape leaves it as it is.
    return re.escape(text).replace("\0", r"\x00")
