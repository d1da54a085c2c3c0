"""Full-text searches, which Spark does not have: index and scan are compared with a few lines of
Python that know how the messages are split into words."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.proof.kinds import WORDS, quoted

# Texts that the analyzer `standard` does not keep as they are, and what it makes of them.
_SPLIT = {"red-blue": ["red", "blue"], "100%": ["100"], "中文": ["中", "文"]}
_SPLIT["w" * 300] = ["w" * 255, "w" * 45]
_SEARCHED = [word for word in WORDS if len(word) < 100]

Truth = Callable[[str | None], bool | None]


@dataclass(frozen=True)
class Search:
    """A condition with a full-text function, and whether it is true of a message.

    Attributes:
        function: The function's name; two are joined by AND or OR.
    """

    where: str
    function: str
    truth: Truth


def words(text: str) -> list[str]:
    """The words of a message, in order; its elements of `WORDS` are separated by spaces."""
    return [word for part in text.lower().split() for word in _SPLIT.get(part, [part])]


def searches(seed: int, count: int) -> list[Search]:
    """`count` searches in the column `msg`, the same for the same seed."""
    dice = random.Random(seed)
    return [_search(dice) for _ in range(count)]


def _search(dice: random.Random) -> Search:
    first, second = _single(dice), _single(dice)
    match dice.randrange(5):
        case 0:
            return Search(f"NOT ({first.where})", first.function, _not(first.truth))
        case 1:
            where = f"{first.where} AND NOT {second.where}"
            return Search(where, "joined", lambda text: _and(first, second, text))
        case 2:
            where = f"{first.where} OR {second.where}"
            return Search(where, "joined", lambda text: _or(first, second, text))
    return first


def _not(truth: Truth) -> Truth:
    return lambda text: None if text is None else not truth(text)


def _and(first: Search, second: Search, text: str | None) -> bool | None:
    return None if text is None else bool(first.truth(text)) and not second.truth(text)


def _or(first: Search, second: Search, text: str | None) -> bool | None:
    return None if text is None else bool(first.truth(text)) or bool(second.truth(text))


def _single(dice: random.Random) -> Search:
    chosen = dice.choices(_SEARCHED, k=dice.choice((1, 1, 2, 3)))
    text = " ".join(dice.choice((word, word.upper())) for word in chosen)
    searched = words(text)
    match dice.randrange(5):
        case 0:
            return _made("match", text, lambda found: set(searched) <= set(found))
        case 1:
            return _made("match_any", text, lambda found: bool(set(searched) & set(found)))
        case 2:
            return _made("match_phrase", text, lambda found: _follow(searched, found))
        case 3:
            start = chosen[0][: dice.randint(1, len(chosen[0]))]
            return _made("match_prefix", start, lambda found: _begins(start.lower(), found))
    edits = dice.randint(0, 2)
    text = " ".join(_misspelt(word, dice) for word in text.split())
    near = words(text)
    made = _made("match_fuzzy", text, lambda found: _near(near, found, edits))
    return Search(f"{made.where[:-1]}, {edits})", made.function, made.truth)


def _made(function: str, text: str, matches: Callable[[list[str]], bool]) -> Search:
    where = f"{function}(msg, {quoted(text)})"
    return Search(where, function, lambda msg: None if msg is None else matches(words(msg)))


def _follow(searched: list[str], found: list[str]) -> bool:
    starts = range(len(found) - len(searched) + 1)
    return any(found[start : start + len(searched)] == searched for start in starts)


def _begins(start: str, found: list[str]) -> bool:
    return any(word.startswith(start) for word in found)


def _near(searched: list[str], found: list[str], edits: int) -> bool:
    return all(any(distance(word, each) <= edits for each in found) for word in searched)


def _misspelt(word: str, dice: random.Random) -> str:
    """A plain word, perhaps with a letter replaced, inserted, or two swapped; others unchanged."""
    if not (word.isascii() and word.isalpha()):
        return word
    at = dice.randrange(len(word))
    swapped = word[:at] + word[at : at + 2][::-1] + word[at + 2 :]
    return dice.choice(
        (word, word[:at] + "q" + word[at + 1 :], word[:at] + "q" + word[at:], swapped)
    )


def distance(one: str, other: str) -> int:
    """The least number of characters inserted, removed or replaced, or neighbors swapped."""
    above: list[int] = []
    row = list(range(len(other) + 1))
    for i, character in enumerate(one, 1):
        two_above, above, row = above, row, [i]
        for j, against in enumerate(other, 1):
            least = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (character != against))
            if i > 1 and j > 1 and one[i - 2] == against and other[j - 2] == character:
                least = min(least, two_above[j - 2] + 1)
            row.append(least)
    return row[-1]
