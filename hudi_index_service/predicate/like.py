"""LIKE patterns: parsing by Spark's rules, and conversion for the evaluator."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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


class LikeMatcher:
    """Matches texts one by one, for patterns too long for a regular expression.

    The segments between the ``%`` are searched from left to right, each at its first position after
    the previous one. If the pattern matches at all, it matches at these positions.
    """

    def __init__(self, parts: Sequence[LikePart]) -> None:
        self._parts = parts
        self.least_length = sum(_length(part) for part in parts if part is not ANY)
        """Minimum characters of a matching text."""

    @cached_property
    def _segments(self) -> "list[_Segment]":
        """The parts before, between and after each ``%``; made once a text is long enough."""
        segments: list[list[LikePart]] = [[]]
        for part in self._parts:
            if part is ANY:
                segments.append([])
            else:
                segments[-1].append(part)
        return [_Segment.of(each) for each in segments]

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        if len(text) < self.least_length:
            return False
        first, *between = self._segments
        if not first.is_at(text, 0):
            return False
        if not between:
            return len(text) == self.least_length
        last = between.pop()
        at, end = first.length, len(text) - last.length
        for segment in between:
            position = segment.find(text, at, end)
            if position < 0:
                return False
            at = position + segment.length
        return last.is_at(text, end)


def _length(part: LikePart) -> int:
    """The length in characters of a part other than ``%``."""
    return 1 if part is ONE else len(part.text)


@dataclass(frozen=True, slots=True)
class _Segment:
    """The parts between two ``%``.

    Attributes:
        length: Length in characters.
        texts: The literal texts, each with its offset.
        longest: The longest text, with its offset.
    """

    length: int
    texts: tuple[tuple[int, str], ...]
    longest: tuple[int, str]

    @classmethod
    def of(cls, parts: Sequence[LikePart]) -> "_Segment":
        """Makes a segment of parts without ``%``."""
        length, texts = 0, []
        for part in parts:
            if part.kind == "text":
                texts.append((length, part.text))
            length += _length(part)
        longest = max(texts, key=lambda each: len(each[1]), default=(0, ""))
        return cls(length, tuple(texts), longest)

    def is_at(self, text: str, at: int) -> bool:
        """Whether the segment is at that position of a text that is long enough."""
        return all(text.startswith(each, at + offset) for offset, each in self.texts)

    def find(self, text: str, start: int, end: int) -> int:
        """The segment's first position between two positions of the text; -1 if there is none."""
        offset, longest = self.longest
        while start + self.length <= end:
            position = text.find(longest, start + offset, end)
            if position < 0:
                return -1
            start = position - offset
            if start + self.length <= end and (len(self.texts) < 2 or self.is_at(text, start)):
                return start
            start += 1
        return -1
