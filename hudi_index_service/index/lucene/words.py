"""Candidates for values that fit a pattern, by the words of analysed text.

StandardAnalyzer never parts ASCII letters and digits that stand together, unless a word would be
too long: so a word contains them, in lower case, or is of the greatest length. Between white space,
or the ends of the value, they are a word.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.lucene.fields import TEXT_PREFIX, text_field
from hudi_index_service.index.lucene.search import OpenPhrase, Pattern, Search, Terms
from hudi_index_service.predicate.expression import LikePart
from hudi_index_service.predicate.like import ANY

_STANDARD = "standard"
_LONGEST = 255  # bytes that a word of the greatest length has at least
_SHORTEST_RUN = 3  # what is shorter is in too many words
_RUN = re.compile("[A-Za-z0-9]+")
_SPACE = " \t\n"


@dataclass(frozen=True, slots=True)
class _Run:
    """Letters and digits that stand together in every value that fits.

    Attributes:
        part, start, end: Where in the pattern.
        text: In lower case, as the analyser makes it.
        begins: Whether a word begins with it.
        ends: Whether a word ends with it.
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


def search_by_words(stored: StoredColumn, parts: Sequence[LikePart]) -> Search | None:
    """What finds all values that fit the LIKE pattern, and others; None if no words of the column
    are indexed whose making is known, or the pattern asks for none."""
    if TEXT_PREFIX + _STANDARD not in stored.fields:
        return None
    field = text_field(stored.name, _STANDARD)
    runs = list(_runs(parts))
    words = [run.text for run in runs if run.is_word]
    if words:
        return Terms(field, (max(words, key=len).encode(),))
    longest = max((run.text for run in runs), key=len, default="")
    if len(longest) < _SHORTEST_RUN:
        return None
    return Pattern(field, (ANY, LikePart("text", longest), ANY), _LONGEST)


def phrase_by_words(stored: StoredColumn, parts: Sequence[LikePart]) -> OpenPhrase | None:
    """The same by as many words as follow each other in the pattern, for who looks up row by row:
    each row is found sooner, all rows later."""
    if TEXT_PREFIX + _STANDARD not in stored.fields:
        return None
    field = text_field(stored.name, _STANDARD)
    phrases = [OpenPhrase(field, *each) for each in _phrases(parts)]
    return max(phrases, key=_length, default=None)


def _length(phrase: OpenPhrase) -> int:
    return len(phrase.words) + (phrase.beginning is not None)


def _phrases(parts: Sequence[LikePart]) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """Words that follow each other, and with what the next one begins."""
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
    """Whether nothing but white space lies between."""
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
