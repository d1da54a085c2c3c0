"""Conjuncts are looked up together where one entry answers them as well as any entry does."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest

from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And, Predicate

EXACT, SUPERSET, NONE = Answer.EXACT, Answer.SUPERSET, Answer.NONE
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.string())])


@dataclass
class Answering:
    """An entry of a layout of its own, which answers leaves and conjuncts as it is told."""

    of_leaf: Callable[[str], Answer]
    of_conjuncts: Callable[[str], Answer]
    keys: tuple[tuple[str, ...], ...] = ()
    layout: int = field(default_factory=count(1_000_000).__next__)
    asked: int = 0

    index_type = SimpleNamespace(name="known")

    def answer(self, leaf: Predicate) -> Answer:
        self.asked += 1
        name = ", ".join(sorted(leaf.columns()))
        return self.of_conjuncts(name) if isinstance(leaf, And) else self.of_leaf(name)


def entry(leaf: Answer, conjuncts: Answer, key: tuple[str, ...] = ()) -> Answering:
    """An entry that answers conjuncts on one column, and on the columns of its key."""
    names = {*SCHEMA.names, ", ".join(key)}
    keys = (key,) if key else ()
    return Answering(lambda _: leaf, lambda name: conjuncts if name in names else NONE, keys)


def groups(where: str, *entries: Answering, exact: bool = False) -> str:
    predicate = negation_normal_form(parse_predicate(where, SCHEMA))
    result = grouped(predicate, cast("tuple[ServingEntry, ...]", entries), exact=exact)
    return spelled(result)


def spelled(predicate: Predicate) -> str:
    """Groups in square brackets."""
    match predicate:
        case And(operands) if type(predicate) is not And:
            return f"[{', '.join(map(spelled, operands))}]"
        case And(operands):
            return " AND ".join(map(spelled, operands))
    return re.sub(r"`|(?<=\d)L", "", str(predicate))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a > 1 AND b = 2 AND a < 9", "[a > 1, a < 9] AND b = 2"),
        ("a > 1 AND a <> 3 AND a IS NOT NULL", "a > 1 AND a <> 3 AND a IS NOT NULL"),
        ("a > 1 AND TRUE", "a > 1 AND TRUE"),
        ("a > 1", "a > 1"),
        ("TRUE", "TRUE"),
    ],
)
def test_conjuncts_on_one_column_are_a_group(where, expected):
    assert groups(where, entry(EXACT, EXACT)) == expected
    assert "[" not in groups(where, entry(EXACT, NONE)), "no entry answers them together"


def test_conjuncts_on_the_first_columns_of_a_key_are_a_group():
    assert groups("s = 'x' AND b = 2 AND a = 1", entry(EXACT, EXACT, ("a", "b"))) == (
        "[a = 1, b = 2] AND s = 'x'"
    )
    assert groups("s = 'x' AND b = 2", entry(EXACT, EXACT, ("a", "b"))) == "s = 'x' AND b = 2"


def test_an_entry_that_answers_a_conjunct_worse_than_another_one_groups_none():
    both = "a > 1 AND a < 9"
    assert groups(both, entry(SUPERSET, SUPERSET), entry(EXACT, NONE)) == both
    assert groups(both, entry(SUPERSET, SUPERSET), entry(SUPERSET, NONE)) == "[a > 1, a < 9]"
    assert groups(both, entry(NONE, NONE), entry(EXACT, EXACT)) == "[a > 1, a < 9]"


def test_exact_row_ids_are_looked_up_together_if_that_is_exact():
    where = "a > 1 AND b = 2"
    everything = Answering(lambda _: EXACT, lambda _: EXACT)
    assert groups(where, everything, exact=True) == "[a > 1, b = 2]"
    assert groups(where, everything) == where, "apart, look-ups can stop early"
    inexact = Answering(lambda _: EXACT, lambda _: SUPERSET)
    assert groups("a > 1 AND a < 9", inexact) == "[a > 1, a < 9]"
    assert groups("a > 1 AND a < 9", inexact, exact=True) == "a > 1 AND a < 9"


def test_groups_are_made_once_for_all_entries_of_a_layout():
    first = entry(EXACT, EXACT)
    expected, asked = groups("a > 1 AND a < 9", first), first.asked
    other = entry(EXACT, EXACT)
    other.layout = first.layout
    for _ in range(3):
        assert groups("a > 1 AND a < 9", first) == groups("a > 1 AND a < 9", other) == expected
    assert (first.asked, other.asked) == (asked, 0)
    groups("a > 1 AND a < 8", first)
    assert first.asked > asked
