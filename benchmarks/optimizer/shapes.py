"""Conditions without their literals, from a fixed seed."""

import math
from collections.abc import Callable
from random import Random
from typing import TypeAlias

from benchmarks.optimizer.columns import Columns
from benchmarks.optimizer.values import Values, literal

Leaf: TypeAlias = Callable[[Values, Random], str]
"""Makes a leaf's text with literals of its own."""


def _part(dice: Random, least: float, most: float = 1.0) -> float:
    """From `least` to `most`, evenly over the orders of magnitude."""
    return math.exp(dice.uniform(math.log(least), math.log(most)))


_RARE, _COMMON = 1e-6, 3e-2
"""The least part of the rows that match a leaf; more for conjuncts, or most queries would match no
row."""


class Shapes:
    """Makes conditions without literals: functions from literals to a condition's text.

    Args:
        columns: The columns to use.
        dice: Decides the shape.
    """

    def __init__(self, columns: Columns, dice: Random) -> None:
        self._columns = columns
        self._dice = dice

    def condition(self) -> tuple[str, Leaf]:
        """Its kind, and the function that makes its text."""
        kinds = ("one", "two", "pair", "many", "or", "or and", "unindexed", "nested")
        kind = self._dice.choices(kinds, (24, 20, 14, 10, 8, 6, 6, 12))[0]
        if kind == "nested":
            return kind, self._nested(2)
        if kind == "one":
            return kind, self._any(_RARE)
        if kind == "two":
            return kind, _all_of([self._any(_RARE), self._any(_COMMON)])
        if kind == "pair":
            more = [self._any(_COMMON)] if self._dice.random() < 0.25 else []
            return kind, _all_of([self._pair(_RARE), *more])
        if kind == "many":
            return kind, _all_of([self._any(_COMMON) for _ in range(self._dice.choice((3, 4)))])
        if kind == "unindexed":
            pair = [self._any(_RARE), self._unindexed(_COMMON)]
            return kind, self._dice.choice((_all_of, _all_of, _any_of))(pair)
        arms = _any_of([self._any(_RARE) for _ in range(self._dice.choice((2, 2, 3)))])
        return kind, arms if kind == "or" else _all_of([arms, self._any(_COMMON)])

    def _nested(self, depth: int) -> Leaf:
        """AND and OR of two or three conditions, each a leaf or nested again."""
        operands = [self._operand(depth) for _ in range(self._dice.choice((2, 2, 3)))]
        return self._dice.choice((_all_of, _all_of, _any_of))(operands)

    def _operand(self, depth: int) -> Leaf:
        if depth > 1 and self._dice.random() < 0.6:
            return self._nested(depth - 1)
        return self._unindexed(_RARE) if self._dice.random() < 0.2 else self._any(_RARE)

    def _any(self, least: float) -> Leaf:
        makers = [self._range, self._range, self._equal, self._equal, self._equal, self._in_list]
        makers += [self._like, self._null, self._flag, self._not]
        return self._dice.choice(makers)(least)

    def _range(self, least: float, column: str | None = None) -> Leaf:
        column = column or self._dice.choice(self._columns.ordered)
        part, form = _part(self._dice, least), self._dice.randrange(4)

        def leaf(values: Values, literals: Random) -> str:
            if form == 0:
                return f"{column} > {values.below_the_last(column, part, literals)}"
            low, high = values.between(column, part, literals)
            if form == 1:
                return f"{column} >= {low} AND {column} < {high}"
            return f"{column} BETWEEN {low} AND {high}"

        return leaf

    def _equal(self, least: float) -> Leaf:
        column, part = self._dice.choice(self._columns.named), _part(self._dice, least)
        return lambda v, literals: f"{column} = {literal(v.equal(column, part, literals))}"

    def _in_list(self, least: float) -> Leaf:
        column, part = self._dice.choice(self._columns.named), _part(self._dice, least, 0.1)
        length = self._dice.choice((2, 3, 8, 40, 200))

        def leaf(values: Values, literals: Random) -> str:
            chosen = {literal(values.equal(column, part, literals)) for _ in range(length)}
            return f"{column} IN ({', '.join(sorted(chosen))})"

        return leaf

    def _like(self, least: float) -> Leaf:
        form, part = self._dice.randrange(4), _part(self._dice, least, 0.3)
        cut = self._dice.choice((1, 2, 3))
        words = self._columns.words

        def leaf(values: Values, literals: Random) -> str:
            if form < 2:
                word = values.picked(values.words, part, literals)
                return f"{words} LIKE '{'%' if form == 0 else ''}{word}%'"
            column = self._columns.texts[form - 2]
            value = values.equal(column, part, literals)
            if form == 2 and cut == 1:
                return f"{column} LIKE '%{value[-3:]}'"
            return f"{column} LIKE '{value[: len(value) - cut]}%'"

        return leaf

    def _null(self, least: float) -> Leaf:
        if not self._columns.nullable:
            return self._flag(least)
        column = self._dice.choice(self._columns.nullable)
        text = f"{column} IS {self._dice.choice(('', 'NOT '))}NULL"
        return lambda values, literals: text

    def _flag(self, least: float) -> Leaf:
        text = self._dice.choice(self._columns.flags)
        return lambda values, literals: text

    def _not(self, least: float) -> Leaf:
        inner = self._dice.choice((self._equal, self._in_list))(least)
        return lambda values, literals: f"NOT ({inner(values, literals)})"

    def _unindexed(self, least: float) -> Leaf:
        if self._dice.random() < 0.3 and self._columns.payload:
            column = self._columns.payload
            return lambda values, literals: f"{column} LIKE '{literals.randrange(256):02x}%'"
        return self._range(least, self._columns.unindexed)

    def _pair(self, least: float) -> Leaf:
        """Correlated conjuncts: mostly values that occur together, sometimes values that do not."""
        columns = self._columns
        pair = self._dice.choice((*columns.equal, *columns.near, *columns.box))
        apart = self._dice.random() < 0.25
        part = _part(self._dice, least, 0.2)

        def leaf(values: Values, literals: Random) -> str:
            one, other = values.with_it(pair, literals)
            if apart:
                other = values.with_it(pair, literals)[1]
            first = f"{pair[0]} = {literal(one)}"
            if pair in columns.equal:
                return f"{first} AND {pair[1]} = {literal(other)}"
            low, high = values.around(pair[1], other, part)
            if pair in columns.box:
                start, end = values.around(pair[0], one, part)
                first = f"{pair[0]} BETWEEN {start} AND {end}"
            return f"{first} AND {pair[1]} BETWEEN {low} AND {high}"

        return leaf


def _all_of(leaves: list[Leaf]) -> Leaf:
    return lambda values, literals: " AND ".join(f"{each(values, literals)}" for each in leaves)


def _any_of(leaves: list[Leaf]) -> Leaf:
    joined = lambda v, d: " OR ".join(f"({each(v, d)})" for each in leaves)  # noqa: E731
    return lambda values, literals: f"({joined(values, literals)})"
