"""Character classes of regular expressions as ranges of code points."""

from collections.abc import Iterable

Range = tuple[int, int]
"""First and last code point."""

LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
_ASCII_LETTERS = ((0x41, 0x5A, 0x20), (0x61, 0x7A, -0x20))  # and the offset to the other case


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
