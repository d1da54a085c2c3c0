"""Finds candidates for values that match a pattern, from the words of analyzed text.

StandardAnalyzer never splits adjacent ASCII letters and digits, unless a word would be too long. So
a word contains them in lower case, or has the maximum length. Between white space or the ends of
the value, they are a whole word.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.lucene.fields import TEXT_PREFIX, lucene_field
from hudi_index_service.index.lucene.search import OpenPhrase, Pattern, Search, Terms
from hudi_index_service.predicate.expression import LikePart
from hudi_index_service.predicate.like import ANY

_STANDARD = TEXT_PREFIX + "standard"
_LONGEST = 255  # minimum bytes of a word of the maximum length
_SHORTEST_RUN = 3  # shorter runs occur in too many words
_RUN = re.compile("[A-Za-z0-9]+")
_SPACE = " \t\n"


@dataclass(frozen=True, slots=True)
class _Run:
    """Adjacent letters and digits that every matching value contains.

    Attributes:
        part, start, end: The position in the pattern.
        text: The run in lower case, as the analyzer returns it.
        begins: Whether a word begins with the run.
        ends: Whether a word ends with the run.
    """

    part: int
    start: int
    end: int
    text: str
    begins: bool
    ends: bool

    @property
    def is_word(self) -> bool:
        return self.begins and self.ends and len(self.text) < _LONGEST


def search_by_words(column: StoredColumn, parts: Sequence[LikePart]) -> Search | None:
    """A search that finds a superset of the values that match the LIKE pattern. None if the column
    has no StandardAnalyzer text, or the pattern contains no usable words."""
    if _STANDARD not in column.fields:
        return None
    field = lucene_field(_STANDARD, column.name)
    runs = list(_runs(parts))
    words = [run.text for run in runs if run.is_word]
    if words:
        return Terms(field, (max(words, key=len).encode(),))
    longest = max((run.text for run in runs), key=len, default="")
    if len(longest) < _SHORTEST_RUN:
        return None
    return Pattern(field, (ANY, LikePart("text", longest), ANY), _LONGEST)


def phrase_by_words(column: StoredColumn, parts: Sequence[LikePart]) -> OpenPhrase | None:
    """Like `search_by_words`, with the longest sequence of words in the pattern. It is for look-ups
    of single rows: each row is checked faster, but finding all rows takes longer."""
    if _STANDARD not in column.fields:
        return None
    field = lucene_field(_STANDARD, column.name)
    phrases = [OpenPhrase(field, *each) for each in _phrases(parts)]
    return max(phrases, key=_length, default=None)


def _length(phrase: OpenPhrase) -> int:
    return len(phrase.words) + (phrase.beginning is not None)


def _phrases(parts: Sequence[LikePart]) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """The sequences of adjacent words, each with the beginning of the next word, if known."""
    words: list[str] = []
    last: _Run | None = None
    for run in _runs(parts):
        if last is not None and not _follows(last, run, parts):
            yield tuple(words), None
            words = []
        last = run if run.is_word else None
        if run.is_word:
            words.append(run.text)
        elif run.begins and len(run.text) < _LONGEST:
            yield tuple(words), run.text
            words = []
        elif words:
            yield tuple(words), None
            words = []
    if words:
        yield tuple(words), None


def _follows(one: _Run, other: _Run, parts: Sequence[LikePart]) -> bool:
    """Whether only white space separates the two runs."""
    between = parts[one.part].text[one.end : other.start]
    return one.part == other.part and not between.strip(_SPACE)


def _runs(parts: Sequence[LikePart]) -> Iterator[_Run]:
    for number, part in enumerate(parts):
        for run in _RUN.finditer(part.text):
            start, end = run.span()
            first = start == 0 and number == 0
            last = end == len(part.text) and number == len(parts) - 1
            begins = first or part.text[start - 1 : start] in tuple(_SPACE)
            ends = last or part.text[end : end + 1] in tuple(_SPACE)
            yield _Run(number, start, end, run[0].lower(), begins, ends)
