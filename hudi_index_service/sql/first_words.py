"""The first words of a query, which decide whether the service looks at it at all."""

import re

# White space, and comments to the end of the line (SqlBaseLexer.g4 of Spark 3.5).
_GAP = re.compile(r"[ \t\r\n]+|--(?:\\\n|[^\r\n])*")
_COMMENT_MARK = re.compile(r"/\*|\*/")
_WORD = re.compile(r"[A-Za-z0-9_]+")


def first_words(query: str, count: int = 2) -> tuple[str, ...]:
    """The first `count` words in upper case, comments skipped; fewer if something else than a word
    comes before. Reads no further than that."""
    return tuple(match.group().upper() for match in _matches(query, count))


def after_words(query: str, count: int) -> int:
    """Where what follows the first `count` words begins, comments skipped."""
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
    """Where the white space and the comments that begin at an offset end, as Spark reads them."""
    while True:
        gap = _GAP.match(query, offset)
        if gap is not None:
            offset = gap.end()
        # A hint, /*+ … */, is no comment.
        elif query.startswith("/*", offset) and not query.startswith("/*+", offset):
            offset = _comment_end(query, offset)
        else:
            return offset


def _comment_end(query: str, start: int) -> int:
    """Bracketed comments nest in Spark; an unclosed one reaches to the end."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(query, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(query)
