"""Predicates of any nesting in Spark SQL; their literals are values of the table or near one."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.proof.families import Family, Place
from tests.proof.kinds import quoted

Draw = Callable[[st.SearchStrategy[Any]], Any]

COMPARISONS = ("=", "<=>", "<>", "<", "<=", ">", ">=")
LIKES = ("LIKE a%", "LIKE %a", "LIKE %a%", "LIKE a%b", "LIKE _", "LIKE … ESCAPE", "RLIKE")


@dataclass(frozen=True)
class Condition:
    """A predicate's text, and the conditions it is made of.

    Attributes:
        parts: The joined or negated conditions; empty for a condition on one column.
        place: For a condition on one column: the column or field…
        counted: … its operator and type.
        form: How the parts' texts are combined.
    """

    form: str
    parts: "tuple[Condition, ...]" = ()
    place: str = ""
    counted: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        if not self.parts:
            return self.form
        if self.form == "NOT":
            return f"NOT ({self.parts[0]})"
        return f" {self.form} ".join(f"({part})" for part in self.parts)

    def leaves(self) -> "Iterator[Condition]":
        """The conditions on one column."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def smaller(self) -> "Iterator[Condition]":
        """The parts, and predicates with one part fewer: what a failing predicate is shrunk to."""
        yield from self.parts
        if len(self.parts) > 2:
            for left_out in range(len(self.parts)):
                kept = self.parts[:left_out] + self.parts[left_out + 1 :]
                yield Condition(self.form, kept)
        for at, part in enumerate(self.parts):
            for less in part.smaller():
                yield Condition(self.form, (*self.parts[:at], less, *self.parts[at + 1 :]))


def counted(condition: Condition) -> Counter[tuple[str, str]]:
    """How often each operator is used on each type."""
    return Counter(leaf.counted for leaf in condition.leaves())


def operators(place: Place) -> tuple[str, ...]:
    """The operators that a place supports."""
    nulls = ("IS NULL", "IS NOT NULL")
    if place.array:
        return ("array_contains", "array_contains", *nulls)
    own = (
        LIKES
        if place.kind.name == "string"
        else ("column",)
        if place.kind.name == "boolean"
        else ()
    )
    return (*COMPARISONS, "BETWEEN", "IN", *nulls, *own)


def cells(family: Family) -> set[tuple[str, str]]:
    """Every operator with every type."""
    return {
        (each, place.type_name) for place in family.predicate_places for each in operators(place)
    }


@dataclass(frozen=True)
class _Literals:
    """The literals for one place, to draw from.

    Attributes:
        own: Literals of values in the table.
        listed: Literals for IN lists and arrays.
        any: Literals for comparisons.
        patterns: Patterns by kind of LIKE.
    """

    own: list[str]
    listed: list[str]
    any: list[str]
    patterns: dict[str, list[str]]

    @classmethod
    def of(cls, place: Place) -> "_Literals":
        values, kind = place.values, place.kind
        own = [kind.own(value) for value in values]
        near = [literal for value in values for literal in kind.near(value)]
        # Half of all draws are values of the table, so that half of the answers have rows.
        any_ = own * (1 + (len(near) + len(kind.odd)) // len(own)) + near + list(kind.odd)
        missing = [kind.own(value) for value in _missing(place)]
        patterns = _patterns([v for v in values if len(v) < 1000]) if kind.name == "string" else {}
        return cls(own, [*own, *own, *missing], any_, patterns)


def _missing(place: Place) -> list[Any]:
    """Values of the kind that are probably not in the table."""
    others = {"boolean": [], "string": ["missing", "a "], "binary": [b"missing"], "int": [77]}
    return others.get(place.kind.name, [])


def _patterns(values: list[str]) -> dict[str, list[str]]:
    texts = [value for value in values if value] or ["a"]

    def escaped(text: str, by: str = "\\") -> str:
        return "".join(by + each if each in ("%", "_", by) else each for each in text)

    starts = [escaped(text[: 1 + len(text) // 2]) for text in texts]
    ends = [escaped(text[-1 - len(text) // 2 :]) for text in texts]
    middles = [escaped(text[len(text) // 3 :][:2]) for text in texts]
    middles += [escaped(text[1:7]) for text in texts] + [escaped(text[-9:-1]) for text in texts]
    middles += [escaped(text[1:4]) + "%" + escaped(text[-5:-1]) for text in texts]
    ones = ["_" * len(text) for text in texts] + [escaped(text[:-1]) + "_" for text in texts]
    ones += ["_%" + escaped(text[1:]) for text in texts] + ["__%", "%_"]
    by_mark = [f"{quoted(escaped(text, '!'))} ESCAPE '!'" for text in texts]
    by_mark += [f"{quoted(escaped(text[:1], '!') + '%')} ESCAPE '!'" for text in texts]
    plain = {
        "LIKE a%": [start + "%" for start in starts],
        "LIKE %a": ["%" + end for end in ends],
        "LIKE %a%": ["%" + middle + "%" for middle in middles],
        "LIKE a%b": [escaped(t[:1]) + "%" + escaped(t[-1:]) for t in texts] + ["%", "%%", ""],
        "LIKE _": ones,
    }
    quoted_ = {kind: [quoted(pattern) for pattern in found] for kind, found in plain.items()}
    regexes = ["^" + re.escape(text[:1]) for text in texts]
    regexes += [re.escape(text[-2:]) + "$" for text in texts]
    regexes += [f"{re.escape(text[:2])}|^{re.escape(text[-1:])}.*" for text in texts]
    regexes += ["^$", "^.{2,3}$", "[a-c]+b?", "(a|é)_?", "[^a-zA-Z]", "^.$"]
    return quoted_ | {"LIKE … ESCAPE": by_mark, "RLIKE": [quoted(regex) for regex in regexes]}


def predicates(family: Family) -> st.SearchStrategy[Condition]:
    """Conditions on the family's columns, joined and negated in any nesting."""
    literals = {place.name: _Literals.of(place) for place in family.predicate_places}
    # Each type is drawn equally often, whether one column has it or several.
    places_of_cell: dict[tuple[str, str], list[Place]] = {}
    for place in family.predicate_places:
        for operator in operators(place):
            places_of_cell.setdefault((operator, place.type_name), []).append(place)

    def made_leaf(cell: tuple[str, str], draws: int) -> Condition:
        place = places_of_cell[cell][draws % len(places_of_cell[cell])]
        return _leaf(place, cell[0], literals[place.name], draws >> 8)

    leaf = st.builds(made_leaf, st.sampled_from(list(places_of_cell)), st.integers(0, 2**72 - 1))
    sizes = st.sampled_from((1, 1, 2, 2, 2, 3, 3, 3, 4, 6, 8))
    joints = st.sampled_from(("AND", "OR"))
    negated = st.sampled_from((False, False, False, True))

    @st.composite
    def condition(draw: Draw, leaves: int) -> Condition:
        if leaves == 1:
            made = draw(leaf)
        else:
            arms = 2 if leaves < 4 else draw(st.integers(2, 3))
            shares = [leaves // arms + (arm < leaves % arms) for arm in range(arms)]
            parts = tuple(draw(condition(share)) for share in shares)
            made = Condition(draw(joints), parts)
        return Condition("NOT", (made,)) if draw(negated) else made

    return sizes.flatmap(condition)


def _leaf(place: Place, operator: str, literals: _Literals, draws: int) -> Condition:
    def one(texts: list[str], draw: int) -> str:
        return texts[draw % len(texts)]

    first, second, third, shape = (draws >> 16 * part & 0xFFFF for part in range(4))
    name = place.name if shape % 3 else place.name.upper()
    if operator in COMPARISONS:
        literal = one(literals.any, first)
        if operator not in ("<=>", "<>") and shape % 5 == 0:
            text = f"{literal} {_MIRRORED[operator]} {name}"
        else:
            text = f"{name} {operator} {literal}"
    elif operator == "BETWEEN":
        no = "NOT " if shape % 4 == 0 else ""
        text = f"{name} {no}BETWEEN {one(literals.any, first)} AND {one(literals.any, second)}"
    elif operator == "IN":
        no = "NOT " if shape % 4 == 0 else ""
        items = [one(literals.listed, each) for each in (first, second, third)[: 1 + shape % 3]]
        items += ["NULL"] if shape % 7 == 0 else []
        text = f"{name} {no}IN ({', '.join(items)})"
    elif operator == "array_contains":
        text = f"array_contains({name}, {one(literals.listed, first)})"
    elif operator == "column":
        text = name if shape % 2 else f"{name} IS {'NOT ' if shape % 4 else ''}TRUE"
    elif operator in LIKES:
        no = "NOT " if shape % 4 == 0 else ""
        word = "RLIKE" if operator == "RLIKE" else "LIKE"
        text = f"{name} {no}{word} {one(literals.patterns[operator], first)}"
    else:
        text = f"{name} {operator}"
    return Condition(text, place=place.name, counted=(operator, place.type_name))


_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
