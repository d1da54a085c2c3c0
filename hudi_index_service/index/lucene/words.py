"""Candidates for values that fit a pattern, by the words of analysed text.

StandardAnalyzer never parts ASCII letters and digits that stand together, unless a word would be
too long: so a word contains them, in lower case, or is of the greatest length. Between white space,
or the ends of the value, they are a word.
"""

import re
from collections.abc import Iterator, Sequence

from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.lucene.fields import TEXT_PREFIX, text_field
from hudi_index_service.index.lucene.search import Pattern, Search, Terms
from hudi_index_service.predicate.expression import LikePart
from hudi_index_service.predicate.like import ANY

_STANDARD = "standard"
_LONGEST = 255  # bytes that a word of the greatest length has at least
_SHORTEST_RUN = 3  # what is shorter is in too many words
_RUN = re.compile("[A-Za-z0-9]+")
_SPACE = " \t\n"


def search_by_words(stored: StoredColumn, parts: Sequence[LikePart]) -> Search | None:
    """What finds all values that fit the LIKE pattern, and others; None if no words of the column
    are indexed whose making is known, or the pattern asks for none."""
    if TEXT_PREFIX + _STANDARD not in stored.fields:
        return None
    field = text_field(stored.name, _STANDARD)
    found = [(len(run), whole, run.lower()) for run, whole in _runs(parts)]
    words = [each for each in found if each[1]]
    if words:
        return Terms(field, (max(words)[2].encode(),))
    length, _, longest = max(found, default=(0, False, ""))
    if length < _SHORTEST_RUN:
        return None
    return Pattern(field, (ANY, LikePart("text", longest), ANY), _LONGEST)


def _runs(parts: Sequence[LikePart]) -> Iterator[tuple[str, bool]]:
    """Letters and digits that stand together in every value that fits, and whether they are a whole
    word of it."""
    for number, part in enumerate(parts):
        for run in _RUN.finditer(part.text):
            starts = run.start() == 0 and number == 0
            ends = run.end() == len(part.text) and number == len(parts) - 1
            before = starts or part.text[run.start() - 1 : run.start()] in tuple(_SPACE)
            after = ends or part.text[run.end() : run.end() + 1] in tuple(_SPACE)
            short = len(run[0]) < _LONGEST
            yield run[0], before and after and short
