"""Converts regular expressions of RLIKE from Java's syntax, which Spark uses, to RE2's if both
certainly match the same texts.

That holds for their common features: characters, classes, ``.``, groups, alternatives, anchors and
quantifiers, since whether *some* match exists depends neither on greediness nor on the order of
alternatives. Java's other features are refused: look-around, back-references, possessive
quantifiers, ``\\b`` (whose words differ between Java versions), repetition of a part that may be
empty.

Source: java.util.regex.Pattern of Java 17, with no flags, `Matcher.find`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import texts_array

Range = tuple[int, int]
"""First and last code point."""

LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
_ASCII_LETTERS = ((0x41, 0x5A, 0x20), (0x61, 0x7A, -0x20))  # and the offset to the other case
_LINE_ENDS = ((0x0A, 0x0A), (0x0D, 0x0D), (0x85, 0x85), (0x2028, 0x2029))
_CLASSES: dict[str, tuple[Range, ...]] = {
    "d": ((0x30, 0x39),),
    "w": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "s": ((0x09, 0x0D), (0x20, 0x20)),
}
_CONTROLS = {"t": 0x09, "n": 0x0A, "r": 0x0D, "f": 0x0C, "a": 0x07, "e": 0x1B}
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)|\\.", re.DOTALL)
_FLAGS = re.compile(r"\(\?([is]{1,2})\)")
_REPEAT = re.compile(r"\{([0-9]{1,4})(,([0-9]{1,4})?)?\}")
_HEX = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")

_MOST_CHARACTERS = 1000
_MOST_NESTED = 50


class RegexUnsupported(Exception):
    """The expression is not certain to mean the same in both; the message names the reason."""


@dataclass(frozen=True, slots=True)
class Regex:
    """An RE2 expression that matches somewhere in exactly the same texts as Java's.

    Attributes:
        re2: The expression.
        before_line_end: Whether a text also matches if it does without its final line end, as
            Java's ``$`` allows.
        prefix: Text that every matching text begins with; may be empty.
        required: Text that every matching text contains; may be empty.
    """

    re2: str
    before_line_end: bool
    prefix: str
    required: str


LINE_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])\z"
"""RE2 expression for a text's final line end."""


def parse_regex(pattern: str) -> Regex:
    """The RE2 expression for a Java one.

    Raises:
        RegexUnsupported: it uses other than the common features, or is malformed.
    """
    if len(pattern) > _MOST_CHARACTERS:
        raise RegexUnsupported(f"more than {_MOST_CHARACTERS} characters")
    parser = _Parser(_QUOTED.sub(_without_quotes, pattern))
    piece = parser.whole()
    if parser.line_end and parser.text_end:
        raise RegexUnsupported(r"both $ and \z")
    try:
        pc.match_substring_regex(texts_array([""], pa.string()), pattern=piece.re2)
    except pa.ArrowInvalid as error:
        raise RegexUnsupported("repetition beyond what can be compiled") from error
    literal = _longest(piece.literals)
    return Regex(piece.re2, parser.line_end, piece.prefix, literal)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the expression.

    Attributes:
        empty: Whether it can match the empty text.
        at_end: Whether it can end with ``$``, so that nothing may follow.
        anchor: Whether it is an anchor itself.
        begins: Whether it matches only at the text's beginning.
        literals: Texts that every match contains, separated by `None`.
        prefix: The text's prefix if it `begins`.
        text: The only character that it matches.
    """

    re2: str
    empty: bool = False
    at_end: bool = False
    anchor: bool = False
    begins: bool = False
    literals: tuple[str | None, ...] = (None,)
    prefix: str = ""
    text: str | None = None


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.ignore_case = False
        self.dot_all = False
        self.line_end = False
        self.text_end = False

    def whole(self) -> _Piece:
        flags = _FLAGS.match(self.text)
        if flags is not None:
            self.at = flags.end()
            self.ignore_case, self.dot_all = "i" in flags[1], "s" in flags[1]
        piece = self.alternatives()
        if self.at < len(self.text):
            raise RegexUnsupported("a ) without its (")
        return piece

    def alternatives(self) -> _Piece:
        branches = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self.sequence())
        if len(branches) == 1:
            return branches[0]
        return _Piece(
            "|".join(each.re2 for each in branches),
            empty=any(each.empty for each in branches),
            at_end=any(each.at_end for each in branches),
        )

    def sequence(self) -> _Piece:
        pieces: list[_Piece] = []
        while self.peek() not in ("", "|", ")"):
            if pieces and pieces[-1].at_end:
                raise RegexUnsupported("$ before the end")
            pieces.append(self.quantified())
        literals: list[str | None] = []
        for piece in pieces:
            if piece.text is not None and literals and literals[-1] is not None:
                literals[-1] += piece.text
            elif not piece.anchor:
                literals.extend(piece.literals)
        begins = bool(pieces) and pieces[0].begins
        texts = []
        for piece in pieces[1:]:
            if piece.text is None:
                break
            texts.append(piece.text)
        return _Piece(
            "".join(each.re2 for each in pieces),
            empty=all(each.empty for each in pieces),
            at_end=bool(pieces) and pieces[-1].at_end,
            begins=begins,
            literals=tuple(literals) or (None,),
            prefix="".join(texts) if begins else "",
        )

    def quantified(self) -> _Piece:
        atom = self.atom()
        quantifier, least = self.quantifier()
        if not quantifier:
            return atom
        if atom.anchor or atom.at_end:
            raise RegexUnsupported("a repeated anchor")
        if atom.empty and quantifier != "?":
            raise RegexUnsupported("repetition of what may be empty")
        if self.peek() == "+":
            raise RegexUnsupported("a possessive quantifier")
        if self.peek() == "?":  # reluctant: a match still exists, though another one
            self.at += 1
        if self.peek() in ("*", "+", "?", "{") and self.peek():
            raise RegexUnsupported("a quantifier behind another")
        # A group, so that RE2 never sees two quantifiers in a row.
        literals = (None, *atom.literals, None) if least else (None,)
        return _Piece(
            f"(?:{atom.re2}){quantifier}", empty=atom.empty or not least, literals=literals
        )

    def quantifier(self) -> tuple[str, int]:
        """The next quantifier and its minimum count; "" if there is none."""
        character = self.peek()
        if character and character in "*+?":
            self.at += 1
            return character, int(character == "+")
        if character != "{":
            return "", 1
        match = _REPEAT.match(self.text, self.at)
        if match is None or (match[3] and int(match[3]) < int(match[1])):
            raise RegexUnsupported("a { that begins no quantifier")
        self.at = match.end()
        return match[0], int(match[1])

    def atom(self) -> _Piece:
        character = self.take()
        match character:
            case "(":
                return self.group()
            case "[":
                return _of_class(self.bracket())
            case ".":
                return _of_class(((0, LAST),) if self.dot_all else complement(_LINE_ENDS))
            case "^":
                return _Piece(r"\A", empty=True, anchor=True, begins=True)
            case "$":
                self.line_end = True
                return _Piece(r"\z", empty=True, at_end=True, anchor=True)
            case "*" | "+" | "?" | "{":
                raise RegexUnsupported(f"a {character} with nothing before it")
            case "\\":
                return self.escaped()
        return self.character(ord(character))

    def group(self) -> _Piece:
        if self.text.startswith("?:", self.at):
            self.at += 2
        elif self.peek() == "?":
            raise RegexUnsupported("a group (?…")
        self.depth += 1
        if self.depth > _MOST_NESTED:
            raise RegexUnsupported(f"more than {_MOST_NESTED} groups in one another")
        inner = self.alternatives()
        self.depth -= 1
        if self.take() != ")":
            raise RegexUnsupported("a ( without its )")
        # A ^ at the beginning of a group is left to RE2.
        return _Piece(
            f"(?:{inner.re2})",
            empty=inner.empty,
            at_end=inner.at_end,
            literals=(None, *inner.literals, None),
        )

    def escaped(self) -> _Piece:
        character = self.peek()
        if character in ("A", "z"):
            self.at += 1
            if character == "A":
                return _Piece(r"\A", empty=True, anchor=True, begins=True)
            self.text_end = True
            return _Piece(r"\z", empty=True, anchor=True)
        ranges = self.escaped_class()
        return _of_class(ranges) if ranges is not None else self.character(self.escaped_code())

    def escaped_class(self) -> tuple[Range, ...] | None:
        """The characters of ``\\d`` and the like after a backslash; None if there is none."""
        ranges = _CLASSES.get(self.peek().lower())
        if ranges is None:
            return None
        return ranges if self.take().islower() else complement(ranges)

    def escaped_code(self) -> int:
        """The code point after a backslash."""
        match = _HEX.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            code = int(match[1] or match[2], 16)
            if SURROGATES[0] <= code <= SURROGATES[1]:
                raise RegexUnsupported("half a surrogate pair")
            return code
        character = self.take()
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character == "" or (character.isascii() and character.isalnum()):
            raise RegexUnsupported(f"\\{character}")
        return ord(character)

    def bracket(self) -> tuple[Range, ...]:
        negated = self.peek() == "^"
        self.at += negated
        ranges: list[Range] = []
        first = True
        while self.peek() != "]" or first:
            if self.peek() in ("", "[", "]") or self.text.startswith("&&", self.at):
                raise RegexUnsupported("a class within a class, or one that is not closed")
            if self.peek() == "-" and not (first or self.text.startswith("-]", self.at)):
                raise RegexUnsupported("a - in the middle of a class")
            ranges.extend(self.item())
            first = False
        self.at += 1
        if self.ignore_case:
            ranges.extend(list(other_case(ranges)))
        class_ranges = merged(ranges)
        if negated:
            return complement(class_ranges)
        low, high = SURROGATES
        if any(start <= high and end >= low and end < LAST for start, end in class_ranges):
            raise RegexUnsupported("a class that holds surrogates")
        return class_ranges

    def item(self) -> Iterable[Range]:
        """A character, a range, or ``\\d`` and the like."""
        character = self.take()
        if character == "\\":
            ranges = self.escaped_class()
            if ranges is not None:
                if self.peek() == "-" and not self.text.startswith("-]", self.at):
                    raise RegexUnsupported("a - in the middle of a class")
                return ranges
            start = self.escaped_code()
        else:
            start = ord(character)
        if self.peek() != "-" or self.text.startswith("-]", self.at):
            return ((start, start),)
        self.at += 1
        character = self.take()
        if character in ("", "[", "]", "&", "-", "^"):
            raise RegexUnsupported("a range of a class that ends with a special character")
        if character == "\\":
            if self.escaped_class() is not None:
                raise RegexUnsupported("a range of a class that ends with a class")
            end = self.escaped_code()
        else:
            end = ord(character)
        if end < start:
            raise RegexUnsupported("a range of a class that goes downwards")
        return ((start, end),)

    def character(self, code: int) -> _Piece:
        ranges = ((code, code),)
        if self.ignore_case and any(other_case(ranges)):
            return _of_class(merged([*ranges, *other_case(ranges)]))
        return _Piece(f"\\x{{{code:x}}}", literals=(chr(code),), text=chr(code))

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        character = self.peek()
        self.at += 1
        return character


def _without_quotes(match: re.Match[str]) -> str:
    r"""``\Q…\E`` character by character."""
    if match[1] is None:
        return match[0]
    return "".join(c if c.isascii() and c.isalnum() else "\\" + c for c in match[1])


def _of_class(ranges: tuple[Range, ...]) -> _Piece:
    if not ranges:
        raise RegexUnsupported("a class of no character")
    return _Piece(class_re2(ranges))


def _longest(literals: Iterable[str | None]) -> str:
    return max((each for each in literals if each is not None), key=len, default="")


def class_re2(ranges: Iterable[Range]) -> str:
    """The ranges as a class for RE2."""
    body = "".join(
        f"\\x{{{start:x}}}" if start == end else f"\\x{{{start:x}}}-\\x{{{end:x}}}"
        for start, end in ranges
    )
    return f"[{body}]"


def other_case(ranges: Iterable[Range]) -> Iterable[Range]:
    """The ASCII letters in the ranges, in the other case; Java's (?i) adds no others."""
    for start, end in ranges:
        for first, last, step in _ASCII_LETTERS:
            low, high = max(start, first), min(end, last)
            if low <= high:
                yield low + step, high + step


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same characters as ascending ranges that do not touch."""
    result: list[Range] = []
    for start, end in sorted(ranges):
        if result and start <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return tuple(result)


def complement(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """All other characters; the ranges ascend and do not touch."""
    result: list[Range] = []
    after = 0
    for start, end in ranges:
        if start > after:
            result.append((after, start - 1))
        after = end + 1
    if after <= LAST:
        result.append((after, LAST))
    return tuple(result)
