"""Row ids of whole predicates: conjuncts looked up together, cheapest first, none needlessly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.cost.constants import (
    LOOKUPS_OF_A_SLICE,
    MANY_SLICES,
    SHORT_LOOKUP,
)
from hudi_index_service.optimizer.cost.reading_steps import ReadingSteps
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And, Predicate
from hudi_index_service.predicate.fold import fold
from hudi_index_service.read.row_ids import Bounds
from tests.read.known_entries import KnownEntries, looked_up

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.string())])
TOTAL = 1_000_000
PAGE_STEPS = 20_000


def spelled(predicate: Predicate) -> str:
    return str(predicate).replace("`", "").replace("L", "")


@dataclass
class Known(KnownEntries):
    """The entry of a slice with given answers, which records each request and its limit.

    Attributes:
        answers_to: Predicate, without backticks and suffixes → its rows, and the steps that
            finding them takes.
        narrowed_to: Predicate → the rows that checking row by row leaves, and whether exactly.
    """

    answers_to: dict[str, tuple[BitMap, int]]
    total: int = TOTAL
    keys: Sequence[tuple[str, ...]] = ()
    lookups: list[tuple[str, int | None]] = field(default_factory=list)
    narrowed_to: dict[str, tuple[BitMap, bool]] = field(default_factory=dict)
    expects: dict[str, RowEstimate] = field(default_factory=dict)
    layout: int = field(default_factory=count().__next__)

    index_type = SimpleNamespace(name="known")

    def answer(self, leaf: Predicate) -> Answer:
        known = spelled(leaf) in self.answers_to
        return Answer.EXACT if known or not isinstance(leaf, And) else Answer.NONE

    def limit_of(self, where: str) -> int:
        """The most steps that the last look-up of a leaf may take."""
        limit = dict(self.lookups)[where]
        assert limit is not None
        return limit

    def estimate(self, leaf: Predicate) -> int:
        return self.answers_to.get(spelled(leaf), (None, TOTAL))[1]

    def steps(self, predicate: Predicate) -> int:
        return fold(predicate, self.estimate, min, sum, together=True)

    def rows(self, leaf: Predicate, most: int | None, *, superset_ok: bool) -> Bounds:
        self.lookups.append((spelled(leaf), most))
        rows, steps = self.answers_to.get(spelled(leaf), (None, TOTAL))
        if rows is None or (most is not None and steps > most):
            return Bounds.unanswered()
        return Bounds.exactly(rows)

    def expected(self, leaf: Predicate) -> RowEstimate | None:
        return self.expects.get(spelled(leaf))

    def pages(self, leaf: Predicate) -> Bounds:
        return Bounds.unanswered()

    def narrowed(self, leaf: Predicate, rows: BitMap) -> Bounds:
        left, exact = self.narrowed_to.get(spelled(leaf), (None, False))
        if left is None:
            return Bounds.unanswered()
        self.lookups.append((f"{len(rows)} of {spelled(leaf)}", None))
        return Bounds.exactly(rows & left) if exact else Bounds.among(rows & left)


def rows_of(
    where: str,
    known: Known,
    *,
    superset_ok: bool = True,
    row: int = 0,
    scan: int | None = None,
    columns: Mapping[str, int] | None = None,
) -> Bounds:
    reading = ReadingSteps(PAGE_STEPS, row, 0, scan, columns or {})
    (found,) = looked_up(normal_form(where), [known], superset_ok, reading)
    return found


def normal_form(where: str) -> Predicate:
    return negation_normal_form(parse_predicate(where, SCHEMA))


def test_conjuncts_are_looked_up_cheapest_first_until_one_is_empty():
    known = Known({"a = 1": (BitMap(), 0), "b = 2": (BitMap([7]), 1)})
    assert rows_of("b = 2 AND a = 1", known) == Bounds.exactly(BitMap())
    assert known.lookups == [("a = 1", SHORT_LOOKUP)]


def test_conjuncts_of_a_small_file_are_looked_up_as_written():
    known = Known({"a = 1": (BitMap(), 0), "b = 2": (BitMap([7]), 1)}, total=1000)
    assert rows_of("b = 2 AND a = 1", known) == Bounds.exactly(BitMap())
    assert [predicate for predicate, _ in known.lookups] == ["b = 2", "a = 1"]


def test_a_look_up_slower_than_reading_the_remaining_rows_is_skipped():
    half = BitMap(range(TOTAL // 2))
    apart = BitMap([1, 70_000])
    known = Known({"a = 1": (apart, 2), "b > 2": (half, 2 * PAGE_STEPS + 1)})
    found = rows_of("b > 2 AND a = 1", known)
    assert found == Bounds.among(apart)
    assert PAGE_STEPS < known.limit_of("b > 2") < 2 * PAGE_STEPS, "few of such rows may be left"

    known.answers_to["b > 2"] = (BitMap([1]), PAGE_STEPS)
    assert rows_of("b > 2 AND a = 1", known) == Bounds.exactly(BitMap([1]))


def test_a_short_look_up_is_not_compared_with_a_scan():
    known = Known({"a = 1": (BitMap([7]), SHORT_LOOKUP), "b = 2": (BitMap([7]), SHORT_LOOKUP + 1)})
    assert rows_of("a = 1", known, scan=0) == Bounds.exactly(BitMap([7]))
    assert rows_of("b = 2", known, scan=0) == Bounds.unanswered()
    assert known.lookups == [("a = 1", SHORT_LOOKUP), ("b = 2", SHORT_LOOKUP), ("b = 2", 0)]


def test_a_look_up_that_takes_longer_than_a_scan_is_skipped():
    spread, few = BitMap(range(0, TOTAL, 10)), BitMap([7])
    known = Known({"a = 1": (spread, 5_000), "b = 2": (few, 5_000)})
    assert rows_of("a = 1", known, scan=4_999) == Bounds.unanswered()
    assert rows_of("a = 1", known, scan=5_000) == Bounds.exactly(spread)
    assert rows_of("a = 1 OR b = 2", known, scan=4_999) == Bounds.unanswered()
    # To read the many rows that are left may take longer.
    rows_of("a = 1 AND b = 2", known, row=1, scan=5_001)
    assert known.limit_of("b = 2") == 5_001
    assert rows_of("a = 1", known, superset_ok=False, scan=0) == Bounds.exactly(spread)


def many_slices(answers_to: dict[str, tuple[BitMap, int]]) -> list[Known]:
    """So many that the first one decides for the others."""
    return [Known(answers_to, layout=1) for _ in range(MANY_SLICES)]


def test_a_look_up_that_takes_longer_than_a_scan_is_made_in_none_of_many_slices():
    answers_to = {"a = 1": (BitMap([7]), 5_000)}
    of_a_slice = 5_000 + LOOKUPS_OF_A_SLICE * 1_000
    for scan, lookups in ((of_a_slice, 0), (of_a_slice + 1, 2)):  # a short one, one with a limit
        slices = many_slices(answers_to)
        reading = ReadingSteps(PAGE_STEPS, 0, 1_000, scan, {})
        found = looked_up(normal_form("a = 1"), slices, True, reading)
        expected = Bounds.exactly(BitMap([7])) if lookups else Bounds.unanswered()
        assert found == [expected] * MANY_SLICES
        assert [len(each.lookups) for each in slices] == [lookups] * MANY_SLICES
    slices = many_slices(answers_to)
    assert looked_up(normal_form("a = 1"), slices, False, reading) == [expected] * MANY_SLICES


def test_entries_that_are_not_open_are_looked_up_in_many_slices_too():
    """They are then open for later queries, whose calls for many entries ask them."""
    slices = many_slices({"a = 1": (BitMap([7]), 1)})
    reading = ReadingSteps(PAGE_STEPS, 0, 1_000, 1_999, {})
    looked_up(normal_form("a = 1"), slices, True, reading)
    assert [each.lookups for each in slices] == [[]] * MANY_SLICES
    looked_up(normal_form("a = 1"), slices, True, reading, are_open=False)
    assert [each.lookups for each in slices] == [[("a = 1", SHORT_LOOKUP)]] * MANY_SLICES


def test_in_many_slices_few_rows_are_rather_tested_than_looked_up_one_by_one():
    answers_to = {"a = 1": (BitMap([7, 8]), 1), "b > 2": (BitMap([7]), 9)}
    for page, lookups in ((10, ["a = 1"]), (10_000, ["a = 1", "b > 2"])):
        slices = many_slices(answers_to)
        reading = ReadingSteps(page, 1, 1_000, 10**9, {})
        looked_up(normal_form("b > 2 AND a = 1"), slices, True, reading)
        assert [[leaf for leaf, _ in each.lookups] for each in slices] == [lookups] * MANY_SLICES


def test_a_look_up_that_rules_out_few_rows_is_skipped():
    nine_tenths = BitMap(range(TOTAL * 9 // 10))
    known = Known({"a > 1": (nine_tenths, 5_000)})
    known.expects = {"a > 1": RowEstimate(0, TOTAL * 9 // 10, TOTAL)}
    assert rows_of("a > 1", known, scan=49_000) == Bounds.unanswered()
    assert known.limit_of("a > 1") == 4_900, "a tenth of a scan"
    assert rows_of("a > 1", known, scan=51_000) == Bounds.exactly(nine_tenths)


def test_rows_left_are_tested_one_by_one_or_in_whole_columns():
    spread, half = BitMap(range(0, TOTAL, 10)), TOTAL // 2
    known = Known({"a = 1": (spread, 5_000), "b > 2": (BitMap(range(half)), half)})
    rows_of("b > 2 AND a = 1", known, row=10, columns={"b": 30_000})
    assert known.limit_of("b > 2") == 15_000, "half of the column, since half of the rows are left"
    rows_of("b > 2 AND a = 1", known, row=10, columns={"b": 10_000_000})
    assert known.limit_of("b > 2") == 10 * len(spread) // 2


def test_rows_of_one_page_count_as_one():
    run = BitMap(range(4_000, 8_000))
    known = Known({"a = 1": (run, 4_000), "b > 2": (BitMap([4_001]), PAGE_STEPS + 1)})
    assert rows_of("b > 2 AND a = 1", known) == Bounds.among(run)
    assert known.limit_of("b > 2") < PAGE_STEPS


def test_a_look_up_that_leaves_as_many_pages_to_read_is_skipped():
    """A hundred rows a page: half of them are in as many pages."""
    spread, half = BitMap(range(0, TOTAL, 200)), TOTAL // 2
    known = Known({"a = 1": (spread, 5_000), "b > 2": (BitMap(range(half)), half)})
    assert rows_of("b > 2 AND a = 1", known) == Bounds.among(spread)
    assert known.lookups == [("a = 1", SHORT_LOOKUP), ("a = 1", None), ("b > 2", 0)]

    # Unless a test of each row that is left takes as long as this many steps.
    found = rows_of("b > 2 AND a = 1", known, row=2 * half // 5_000)
    assert found == Bounds.exactly(BitMap(range(0, half, 200)))


def test_count_looks_up_every_conjunct():
    known = Known({"a = 1": (BitMap([1]), 1), "b > 2": (BitMap([1, 5]), TOTAL)})
    assert rows_of("b > 2 AND a = 1", known, superset_ok=False) == Bounds.exactly(BitMap([1]))
    assert known.lookups == [("a = 1", None), ("b > 2", None)]


def test_or_arms_are_limited_by_the_remaining_rows():
    known = Known(
        {"a = 1": (BitMap([1]), 1), "b = 2": (BitMap([1]), 1), "s = 'x'": (BitMap(), TOTAL)}
    )
    found = rows_of("(b = 2 OR s = 'x') AND a = 1", known)
    assert found == Bounds.exactly(BitMap([1])), "whatever the arm that was not looked up"
    assert [arm for arm, _ in known.lookups] == ["a = 1", "b = 2", "s = 'x'"]
    assert known.limit_of("b = 2") == PAGE_STEPS
    assert known.limit_of("s = 'x'") == 0, "every row matches"


@pytest.mark.parametrize(
    "where",
    ["a BETWEEN 3 AND 9", "a >= 3 AND a <= 9", "a >= 3 AND (b = 1 AND a <= 9)"],
)
def test_conjuncts_on_one_column_are_looked_up_together(where):
    both = "(a >= 3) AND (a <= 9)"
    known = Known({both: (BitMap([4]), 1), "b = 1": (BitMap([4, 5]), 2)})
    assert rows_of(where, known) == Bounds.exactly(BitMap([4]))
    assert known.lookups[0] == (both, SHORT_LOOKUP)
    assert all("a" not in predicate for predicate, _ in known.lookups[1:])


def test_other_conjuncts_are_looked_up_separately():
    known = Known({"a = 1": (BitMap([4]), 1), "b = 1": (BitMap([4, 5]), 2)})
    for where in ("a = 1 AND b = 1", "a = 1 AND a <> 2", "a = 1 AND a IS NOT NULL"):
        rows_of(where, known)
    assert not any(" AND " in predicate for predicate, _ in known.lookups)


def test_predicates_that_match_everything_or_nothing():
    known = Known({})
    assert rows_of("a = 1 OR b = 1", known) == Bounds.unanswered()
    assert rows_of("a = 1 AND FALSE", known) == Bounds.exactly(BitMap())
    everything = rows_of("TRUE", known)
    assert everything.exact_rows == BitMap(range(TOTAL))


def test_few_remaining_rows_are_checked_one_by_one():
    answers = {"a = 1": (BitMap([3, 5, 8]), 3), "b = 2": (BitMap(range(5, 10_000)), 10_000)}
    exact = Known(answers, narrowed_to={"b = 2": (BitMap([5, 8]), True)})
    assert rows_of("b = 2 AND a = 1", exact) == Bounds.exactly(BitMap([5, 8]))
    assert exact.lookups == [("a = 1", SHORT_LOOKUP), ("3 of b = 2", None)]

    some = Known(answers, narrowed_to={"b = 2": (BitMap([3, 5]), False)})
    assert rows_of("b = 2 AND a = 1", some) == Bounds.exactly(BitMap([5]))
    assert [leaf for leaf, _ in some.lookups[1:]] == ["3 of b = 2", "b = 2"]

    none = Known(answers, narrowed_to={"b = 2": (BitMap(), False)})
    assert rows_of("b = 2 AND a = 1", none) == Bounds.exactly(BitMap())
    assert none.lookups[1:] == [("3 of b = 2", None)]

    many = Known({**answers, "a = 1": (BitMap(range(5_000)), 3)}, narrowed_to=none.narrowed_to)
    found = rows_of("b = 2 AND a = 1", many, row=10)
    assert found.exact_rows == BitMap(range(5, 5_000))
    assert [predicate for predicate, _ in many.lookups] == ["a = 1", "b = 2"]


def test_a_count_examines_few_remaining_rows_one_by_one():
    answers = {"a = 1": (BitMap([3, 5, 8]), 3), "b = 2": (BitMap(range(5, 10_000)), 10_000)}
    exact = Known(answers, narrowed_to={"b = 2": (BitMap([5, 8]), True)})
    found = rows_of("b = 2 AND a = 1", exact, superset_ok=False)
    assert found == Bounds.exactly(BitMap([5, 8]))
    assert exact.lookups == [("a = 1", None), ("3 of b = 2", None)]

    some = Known(answers, narrowed_to={"b = 2": (BitMap([3, 5]), False)})
    found = rows_of("b = 2 AND a = 1", some, superset_ok=False)
    assert found == Bounds.exactly(BitMap([5])), "a superset is looked up to its end"


def test_exact_row_ids_look_up_all_conjuncts_together():
    together = {"(a = 1) AND (b = 2)": (BitMap([5]), 2)}
    known = Known(together)
    assert rows_of("a = 1 AND b = 2", known, superset_ok=False) == Bounds.exactly(BitMap([5]))
    assert known.lookups == [("(a = 1) AND (b = 2)", None)]

    superset_ok = Known({**together, "a = 1": (BitMap([5]), 1), "b = 2": (BitMap([5]), 9)})
    rows_of("a = 1 AND b = 2", superset_ok)
    assert [predicate for predicate, _ in superset_ok.lookups] == ["a = 1", "b = 2"]
