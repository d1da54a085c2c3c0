"""The first words of a query, which decide whether the service parses it."""

import re

# White space, and comments to the end of the line (SqlBaseLexer.g4 of Spark 3.5).
_GAP = re.compile(r"[ \t\r\n]+|--(?:\\\n|[^\r\n])*")
_COMMENT_MARK = re.compile(r"/\*|\*/")
_WORD = re.compile(r"[A-Za-z0-9_]+")


def first_words(query: str, count: int = 2) -> tuple[str, ...]:
    """The first `count` words in upper case, without comments; fewer if another token comes before.
    Reads no further."""
    return tuple(match.group().upper() for match in _matches(query, count))


def after_words(query: str, count: int) -> int:
    """The offset after the first `count` words and any comments that follow them."""
    words = _matches(query, count)
    return skip_gaps(query, words[-1].end() if words else 0)


def _matches(query: str, count: int) -> list[re.Match[str]]:
    words: list[re.Match[str]] = []
    offset = 0
    while len(words) < count:
        match = _WORD.match(query, skip_gaps(query, offset))
        if match is None:
            break
        words.append(match)
        offset = match.end()
    return words


def skip_gaps(query: str, offset: int) -> int:
    """The end of the white space and comments that begin at an offset, by Spark's rules."""
    while True:
        gap = _GAP.match(query, offset)
        if gap is not None:
            offset = gap.end()
        # A hint, /*+ … */, is not a comment.
        elif query.startswith("/*", offset) and not query.startswith("/*+", offset):
            offset = _comment_end(query, offset)
        else:
            return offset


def _comment_end(query: str, start: int) -> int:
    """The end of a bracketed comment. These nest in Spark; an unclosed one reaches to the end."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(query, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(query)
