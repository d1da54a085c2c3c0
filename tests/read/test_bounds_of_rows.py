"""Whatever is known of the leaves: certain rows match, and no row matches that is not possible."""

import random
from dataclasses import dataclass, field
from itertools import combinations, count
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service.arrow import as_truths
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.cost.reading_steps import ReadingSteps
from hudi_index_service.predicate import evaluate, negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate, Together
from hudi_index_service.read.row_ids import Bounds, matching_rows
from tests.read.known_entries import KnownEntries, looked_up

ROWS = 40
READING = ReadingSteps(page=10, row=0)
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.string())])
LEAVES = [
    "a = 1",
    "a > 2",
    "a <= 4",
    "b IN (0, 3)",
    "b <> 1",
    "s LIKE 'x%'",
    "s IS NULL",
    "b <=> 2",
]
SOURCES = ["exact entry", "other entry", "rows checked singly", "pages"]
SUBSETS = [each for size in range(5) for each in combinations(SOURCES, size)]


def table(dice: random.Random) -> pa.Table:
    numbers, texts = (None, 0, 1, 2, 3, 4, 5), (None, "x", "xy", "y")
    columns = [[dice.choice(some) for _ in range(ROWS)] for some in (numbers, numbers, texts)]
    return pa.table(dict(zip(SCHEMA.names, columns, strict=True)), SCHEMA)


def where(dice: random.Random, depth: int = 3) -> str:
    if depth == 0 or dice.random() < 0.2:
        return dice.choice([*LEAVES, *LEAVES, "TRUE", "FALSE"])
    parts = [f"({where(dice, depth - 1)})" for _ in range(dice.randint(2, 3))]
    return dice.choice(["", "NOT "]) + f"({dice.choice([' AND ', ' OR ']).join(parts)})"


@dataclass
class Known(KnownEntries):
    """The entries of a slice, which answer some leaves: exactly, or with other rows as well.

    Attributes:
        sources: Those of `SOURCES` that answer.
    """

    data: pa.Table
    sources: frozenset[str]
    dice: random.Random
    total: int = ROWS
    keys: tuple[tuple[str, ...], ...] = (("b", "a"),)
    layout: int = field(default_factory=count().__next__)
    _answers: dict[Predicate, Answer] = field(default_factory=dict)

    index_type = SimpleNamespace(name="known")

    def matching(self, predicate: Predicate) -> BitMap:
        truths = as_truths(evaluate(predicate, self.data).fill_null(False))
        return BitMap(np.flatnonzero(truths).astype(np.uint32))

    def bounds(self, leaf: Predicate, exact: bool) -> Bounds:
        rows = self.matching(leaf)
        others = BitMap(row for row in range(ROWS) if self.dice.random() < 0.2)
        return Bounds.exactly(rows) if exact else Bounds.among(rows | others)

    def answer(self, leaf: Predicate) -> Answer:
        able = [Answer.EXACT] * ("exact entry" in self.sources)
        able += [Answer.SUPERSET] * ("other entry" in self.sources)
        return self._answers.setdefault(leaf, self.dice.choice([*able, Answer.NONE]))

    def estimate(self, leaf: Predicate) -> int:
        return self.dice.randrange(ROWS)

    def rows(self, leaf: Predicate, most: int | None, *, superset_ok: bool) -> Bounds:
        answer = self.answer(leaf)
        if isinstance(leaf, Together) and self.dice.random() < 0.2:
            raise EntryInvalid("it is damaged")
        if answer is Answer.NONE or (superset_ok and most is not None and self.dice.random() < 0.3):
            return Bounds.unanswered()
        return self.bounds(leaf, answer is Answer.EXACT and not superset_ok)

    def narrowed(self, leaf: Predicate, rows: BitMap) -> Bounds:
        if "rows checked singly" not in self.sources or self.dice.random() < 0.3:
            return Bounds.unanswered()
        return self.bounds(leaf, self.dice.random() < 0.5).within(rows)

    def narrowed_exactly(self, leaf: Predicate, rows: BitMap) -> BitMap | None:
        if "rows checked singly" not in self.sources or self.dice.random() < 0.5:
            return None
        return self.matching(leaf) & rows

    def pages(self, leaf: Predicate) -> Bounds:
        if "pages" not in self.sources:
            return Bounds.unanswered()
        pages = {row // 8 for row in self.matching(leaf)}
        return Bounds.among(BitMap(row for row in range(ROWS) if row // 8 in pages))


@pytest.mark.parametrize("subset", SUBSETS, ids=lambda each: " + ".join(each) or "none")
def test_bounds_hold_for_each_subset_of_the_sources(subset):
    dice, sources = random.Random(",".join(subset)), frozenset(subset)
    narrowed = certain = 0
    for number in range(100):
        predicate = negation_normal_form(parse_predicate(where(dice), SCHEMA))
        window = [Known(table(dice), sources, dice) for _ in range(dice.choice([1, 1, 2, 5]))]
        for each in window:
            each.layout = number
        for superset_ok in (True, False):
            for known, found in zip(
                window, looked_up(predicate, window, superset_ok, READING), strict=True
            ):
                holds(found, known.matching(predicate), str(predicate))
                narrowed += found.possible is not None
                certain += bool(found.certain)
    assert narrowed > 20 or not sources & {"exact entry", "other entry", "pages"}
    assert certain > 3 or "exact entry" not in sources


def holds(bounds: Bounds, matching: BitMap, text: str) -> None:
    assert bounds.certain <= matching, text
    assert bounds.possible is None or matching <= bounds.possible, text
    assert bounds.exact_rows in (None, matching), text


def test_bounds_hold_if_each_leaf_is_looked_up_on_its_own():
    dice = random.Random(1)
    for _ in range(500):
        known = Known(table(dice), frozenset(), dice)
        predicate = negation_normal_form(parse_predicate(where(dice), SCHEMA))

        def of_leaf(leaf, known=known):
            answered = dice.random() < 0.7
            return known.bounds(leaf, dice.random() < 0.5) if answered else Bounds.unanswered()

        holds(matching_rows(predicate, of_leaf), known.matching(predicate), str(predicate))
