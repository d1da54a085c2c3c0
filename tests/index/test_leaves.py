"""Every kind of leaf on every kind of column: the index compared with the evaluator."""

import random
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index_service.index.contract import Answer
from hudi_index_service.index.lucene.fields import ANALYZERS
from hudi_index_service.predicate.expression import (
    ArrayContains,
    BoundColumn,
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Predicate,
    RLike,
)
from hudi_index_service.predicate.like import parse_like
from hudi_index_service.predicate.regex import parse_regex
from tests.example_counts import examples
from tests.index.conftest import BuildIndex, IndexedData, rows_where

INF, NAN = float("inf"), float("nan")
STRINGS = [
    "", "a", "A", "ab", "aB", "b", " a", "a ", "ä", "ß", "日本", "😀", "😀x", "\uffff", "\x00",
    "a\x00b", "\x7f", "*", "?", "\\", "a*b", "a?b", "a\\b", "%", "_", "a%b", "a_b", "x\ny", "\t",
    "Buying a car", "I am Buying", "Buying", "ab" * 60,
]  # fmt: skip
TIMES = [
    datetime(1, 1, 1), datetime(1582, 10, 15), datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1970, 1, 1), datetime(2026, 2, 28, 12), datetime(9999, 12, 31, 23, 59, 59, 999999),
]  # fmt: skip
VALUES: dict[pa.DataType, list[object]] = {
    pa.string(): STRINGS,
    pa.large_string(): STRINGS[::3],
    pa.int8(): [-128, -1, 0, 1, 127],
    pa.int16(): [-(2**15), -1, 0, 1, 2**15 - 1],
    pa.int32(): [-(2**31), -1, 0, 1, 2**31 - 1],
    pa.int64(): [-(2**63), -(2**53) - 1, -1, 0, 1, 2**53 + 1, 2**63 - 1],
    pa.float32(): [-INF, -3.4e38, -1.5, -1e-45, -0.0, 0.0, 1e-45, 0.1, 1.5, 3.4e38, INF, NAN],
    pa.float64(): [-INF, -1.7e308, -1.5, -5e-324, -0.0, 0.0, 5e-324, 0.1, 1.5, 1.7e308, INF, NAN],
    pa.bool_(): [False, True],
    pa.date32(): [date(1, 1, 1), date(1582, 10, 15), date(1970, 1, 1), date(9999, 12, 31)],
    pa.timestamp("us"): TIMES,
    pa.timestamp("ms"): [time.replace(microsecond=0) for time in TIMES],
    pa.timestamp("us", "UTC"): TIMES,
    pa.timestamp("us", "Europe/Berlin"): TIMES[1:-1],
    pa.decimal128(18, 2): [
        Decimal("-9999999999999999.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("0.01"),
        Decimal("9999999999999999.99"),
    ],
    pa.decimal128(38, 2): [
        Decimal("-" + "9" * 36 + ".99"), Decimal("-1000000000000000000.00"), Decimal("-0.01"),
        Decimal("0.00"), Decimal("0.01"), Decimal("9" * 36 + ".99"),
    ],
    pa.decimal128(19, 0): [Decimal(-(10**19) + 1), Decimal(0), Decimal(10**19 - 1)],
    pa.binary(): [b"", b"\x00", b"a", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"a\x00"],
    pa.large_binary(): [b"", b"\xff", b"a"],
    pa.decimal128(5, 0): [Decimal(-99999), Decimal(0), Decimal(99999)],
    pa.decimal128(18, 18): [Decimal("-0.999999999999999999"), Decimal("0.000000000000000001")],
}  # fmt: skip


def rows_of(type: pa.DataType) -> pa.Table:
    """Every value twice and some NULLs, over three batches; the arrays start inside buffers."""
    values = VALUES[type]
    return pa.table({"c": pa.array([None, *values, None, *reversed(values), None], type).slice(1)})


def leaves_over(field: pa.Field) -> list[Predicate]:
    """Comparisons with a value, or searches for it in arrays, IN lists with and without NULL, IS
    NULL, and the negations."""
    column = BoundColumn(field.name, field.type)
    if pa.types.is_list(field.type):
        type = field.type.value_type
        contains = [ArrayContains(column, pa.scalar(value, type)) for value in VALUES[type][:2]]
        return with_negations([*contains, IsNull(column)])
    scalars = [pa.scalar(value, field.type) for value in VALUES[field.type][:2]]
    leaves = [
        *(Compare(column, operator, scalars[0]) for operator in Operator),
        In.of(column, tuple(scalars[:1])),
        In.of(column, tuple(scalars), has_null=True),
        IsNull(column),
    ]
    return with_negations(leaves)


def with_negations(leaves: Sequence[Predicate]) -> list[Predicate]:
    """The leaves and their negations; the normal form has ``a = b`` for ``NOT (a <> b)``."""

    def is_unequal(leaf: Predicate) -> bool:
        return isinstance(leaf, Compare) and leaf.operator is Operator.NE

    return [*leaves, *(Not(leaf) for leaf in leaves if not is_unequal(leaf))]


def test_columns_without_values_are_exact(build_any: BuildIndex) -> None:
    """NULLs alone; arrays that are empty or hold NULLs alone; no rows."""
    lists = [pa.list_(type) for type in VALUES]
    schema = pa.schema([(f"c{n}", type) for n, type in enumerate([*VALUES, *lists])])
    nulls = pa.table([pa.nulls(3, field.type) for field in schema], schema)
    hollow = pa.table({f"c{n}": pa.array([[], [None], []], kind) for n, kind in enumerate(lists)})
    for data in (nulls, hollow, schema.empty_table()):
        indexed = build_any(data)
        for field in data.schema:
            for leaf in leaves_over(field):
                assert indexed.check(leaf) is Answer.EXACT


def arrays_of(type: pa.DataType) -> pa.Table:
    """Arrays of no, one, two and a dozen values, with NULL elements and without, and NULLs."""
    values = VALUES[type][:12]
    arrays: list[object] = [
        None, [], *([value] for value in values), None, [None], *([None, v, v] for v in values),
        values, [None, *values, None], [], None,
    ]  # fmt: skip
    return pa.table({"c": pa.array(arrays, pa.list_(type)).slice(1)})


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_array_contains_is_exact(build_any: BuildIndex, type: pa.DataType) -> None:
    column = BoundColumn("c", pa.list_(type))
    contains = [ArrayContains(column, pa.scalar(value, type)) for value in VALUES[type][:12]]
    indexed = build_any(arrays_of(type), batch_rows=5)
    for leaf in with_negations([*contains, IsNull(column)]):
        assert indexed.check(leaf) is Answer.EXACT
    assert all(len(indexed.reader.row_ids(leaf)) for leaf in contains)


def test_elements_behind_null_arrays_are_not_indexed(build_any: BuildIndex) -> None:
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 5, 7]),
        pa.array([1, None, 7, None, 7, None, 2]),
        mask=pa.array([False, True, False, False]),
    )
    indexed = build_any(pa.table({"c": hidden}))
    for value in (1, 2, 7):
        leaf = ArrayContains(BoundColumn("c", pa.list_(pa.int64())), pa.scalar(value))
        assert indexed.check(leaf) is Answer.EXACT
        assert indexed.check(Not(leaf)) is Answer.EXACT


def test_comparisons_with_arrays_are_not_answered(build_any: BuildIndex) -> None:
    indexed = build_any(pa.table({"c": pa.array([["a"], None])}))
    column = BoundColumn("c", pa.string())
    for leaf in (
        Compare(column, Operator.EQ, pa.scalar("a")),
        Compare(column, Operator.NE, pa.scalar("a")),
        In.of(column, (pa.scalar("a"),)),
        Like(column, "a%", "\\", parse_like("a%")),
    ):
        assert indexed.answer(leaf) is Answer.NONE
    plain = build_any(pa.table({"c": ["a", None]}))
    assert plain.answer(ArrayContains(column, pa.scalar("a"))) is Answer.NONE


def test_long_elements_give_supersets(build_index: BuildIndex) -> None:
    term = "x" * 32_766
    arrays = [[term + "a", "y"], ["y", None], [term, term + "b"], [term[:-1] + "é"], None]
    indexed = build_index(pa.table({"c": arrays}))
    assert indexed.columns[0].truncated == 3
    for text in (term, term + "a", term + "c", "y"):
        leaf = ArrayContains(BoundColumn("c", pa.list_(pa.string())), pa.scalar(text))
        assert indexed.check(leaf) is Answer.SUPERSET
        assert indexed.answer(Not(leaf)) is Answer.NONE


def test_an_empty_batch_adds_no_rows(build_any: BuildIndex) -> None:
    empty = [pa.array([], type) for type in VALUES]
    schema = pa.schema([(f"c{i}", type) for i, type in enumerate(VALUES)])
    full = pa.Table.from_arrays([pa.array(v[:2], t) for t, v in VALUES.items()], schema=schema)
    data = pa.Table.from_batches(
        [pa.RecordBatch.from_arrays(empty, schema=schema), *full.to_batches()]
    )
    assert build_any(data).index.rows == 2


@pytest.fixture(scope="module")
def strings(build_index: BuildIndex) -> IndexedData:
    return build_index(rows_of(pa.string()), batch_rows=10)


PATTERNS = [
    "", "%", "_", "__", "a%", "%a", "%a%", "a_b", "a%b", "_%", "%_", "a__", "ab%ab", "Buying%",
    "%Buying%", "%Buying", "%b_y%", "%😀%", "😀_", "_x", "%日%", "ä%", "\x00%", "%\x00%", "a_b%",
    r"\%", r"\_", r"a\%b", r"a\_b", r"\\", r"a\\b", r"%\\%", "*", "?", "a*b", "a?b", "%*%", "%?%",
    "x_y", "%\n%", "%ab%ab%ab%", "\uffff%", "zzz%", "%zzz", "_____%",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("escape", ["\\", "!"])
def test_like_is_exact(strings: IndexedData, pattern: str, escape: str) -> None:
    pattern = pattern.replace("\\", escape) if escape != "\\" else pattern
    leaf = Like(BoundColumn("c", pa.string()), pattern, escape, parse_like(pattern, escape))

    assert strings.check(leaf) is Answer.EXACT
    assert strings.check(Not(leaf)) is Answer.EXACT


@pytest.mark.parametrize(
    ("patterns", "answer", "most"),
    [
        (["^a", "^Buying .*r$", r"^a\*b$", "^😀", r"\Aab(ab)*$"], Answer.SUPERSET, None),
        (["^\ufffd", "a", "(^a)", "ab$", "^", "(?i)^abc", "^abc|b"], Answer.NONE, None),
        (["Buy(ing)+", "(^I).*uyin.*", r"\s[a-z]*Buyi", "a+zzz"], Answer.SUPERSET, 6),
    ],
    ids=["by their prefix", "not", "by text in every match"],
)
def test_regexes_are_narrowed(
    strings: IndexedData,
    long_values: IndexedData,
    patterns: list[str],
    answer: Answer,
    most: int | None,
) -> None:
    for pattern in patterns:
        leaf = RLike(BoundColumn("c", pa.string()), pattern, parse_regex(pattern))
        assert strings.check(leaf) is answer
        assert strings.answer(Not(leaf)) is Answer.NONE
        if most is None:
            assert long_values.check(leaf) is answer
        else:
            assert len(strings.reader.row_ids(leaf)) <= most


# Patterns whose deterministic automaton is too large, some that only look like it, and some that
# are too long for any automaton.
HEAVY = [
    "%a" + "_" * 20 + "b%",
    "%a" + "_" * 12 + "%b" + "_" * 12,
    "%" + "ab" * 3000 + "%",
    "%" + "a" * 100 + "_" * 6 + "a" * 28 + "%",
    "%a______" * 1 + "%b%a%b%a%b%a%b",
    "_" * 1024,
    "_" * 40_000,
    "a%" + "_" * 30 + "z",
    "a" * 40_000 + "%",
    "%a%" * 400,
]


@pytest.mark.parametrize("pattern", HEAVY, ids=lambda pattern: f"{pattern[:12]}-{len(pattern)}")
def test_heavy_patterns_are_exact_or_narrowed_by_their_prefix(
    strings: IndexedData, pattern: str
) -> None:
    leaf = Like(BoundColumn("c", pa.string()), pattern, "\\", parse_like(pattern))

    promised = strings.check(leaf)

    assert promised is (Answer.SUPERSET if len(pattern) > 10_000 else Answer.EXACT)
    assert strings.answer(Not(leaf)) is (Answer.NONE if len(pattern) > 10_000 else promised)


@examples(150)
@given(pattern=st.text(st.sampled_from("ab%_*?\\😀é\x00"), max_size=12))
def test_any_pattern_is_answered_as_promised(strings: IndexedData, pattern: str) -> None:
    leaf = Like(BoundColumn("c", pa.string()), pattern, "!", parse_like(pattern, "!"))

    assert strings.check(leaf) is not Answer.NONE


@pytest.fixture(scope="module")
def long_values(build_index: BuildIndex) -> IndexedData:
    """Values around Lucene's longest term, which differ only after it."""
    term = "x" * 32_766
    values = [term, term + "a", term + "b", term[:-1], term[:-1] + "é", "x", None, "y", ""]
    return build_index(pa.table({"c": values}))


def test_values_longer_than_a_term_give_supersets(long_values: IndexedData) -> None:
    column = BoundColumn("c", pa.string())
    term = "x" * 32_766
    assert long_values.columns[0].truncated == 3
    literals = [pa.scalar(v) for v in (term, term + "a", term + "c", term[:-1] + "é", "x", "", "z")]

    for literal in literals:
        for operator in set(Operator) - {Operator.NE}:
            assert long_values.check(Compare(column, operator, literal)) is Answer.SUPERSET
        assert long_values.check(In.of(column, (literal,))) is Answer.SUPERSET
        for leaf in (Compare(column, Operator.NE, literal), Not(In.of(column, (literal,)))):
            assert long_values.answer(leaf) is Answer.NONE
    for pattern in ("x%", term + "%", term + "a%", "%a", "%b%", "x_%", term + "a", "_", "%"):
        like = Like(column, pattern, "\\", parse_like(pattern))
        assert long_values.check(like) in (Answer.EXACT, Answer.SUPERSET)
    assert long_values.check(IsNull(column)) is Answer.EXACT
    assert long_values.check(Not(IsNull(column))) is Answer.EXACT


def test_a_long_literal_on_short_values_finds_nothing(strings: IndexedData) -> None:
    column = BoundColumn("c", pa.string())
    literal = pa.scalar("a" * 40_000)
    for operator in set(Operator) - {Operator.NE}:
        assert strings.check(Compare(column, operator, literal)) is Answer.SUPERSET


BROKEN = [b"a\xff", b"\xed\xa0\x80", b"ab", None, b"", b"\xffa", "a\ufffd".encode(), b"a\xf0\x9f"]


def test_invalid_utf8_gives_supersets(build_index: BuildIndex) -> None:
    values = pa.array(BROKEN).view(pa.string())
    indexed = build_index(pa.table({"c": values}))
    assert indexed.columns[0].truncated == 4
    column = BoundColumn("c", pa.string())
    for literal in (values[0], values[1], values[2], values[6], pa.scalar("a"), pa.scalar("")):
        for operator in set(Operator) - {Operator.NE}:
            assert indexed.check(Compare(column, operator, literal)) is Answer.SUPERSET
        assert indexed.answer(Compare(column, Operator.NE, literal)) is Answer.NONE
    for pattern in ("a%", "%a", "%a%", "ab", "�%", "a�", "a_", "%a_%"):
        like = Like(column, pattern, "\\", parse_like(pattern))
        # Java decodes invalid UTF-8 as U+FFFD.
        java = [value and value.decode(errors="replace") for value in BROKEN]
        expected = rows_where(like, pa.table({"c": java}))
        assert indexed.reader.row_ids(like) >= expected, pattern
    arrays = pa.ListArray.from_arrays([0, 2, 4, 8], values)
    indexed = build_index(pa.table({"c": arrays}))
    assert indexed.columns[0].truncated == 4
    for value in (values[0], values[2]):
        leaf = ArrayContains(BoundColumn("c", arrays.type), value)
        assert indexed.check(leaf) is Answer.SUPERSET


def test_text_without_keyword_answers_only_is_null(build_index: BuildIndex) -> None:
    options = {"c": {"analyzer": "standard", "keyword": "false"}}
    indexed = build_index(rows_of(pa.string()), options=options)
    assert indexed.columns[0].fields == ("text:standard",)
    column = BoundColumn("c", pa.string())
    assert indexed.check(IsNull(column)) is Answer.EXACT
    assert indexed.check(Not(IsNull(column))) is Answer.EXACT
    for leaf in (
        Compare(column, Operator.EQ, pa.scalar("a")),
        In.of(column, (pa.scalar("a"),)),
        Like(column, "a%", "\\", parse_like("a%")),
    ):
        assert indexed.answer(leaf) is Answer.NONE


def test_analyzed_columns_keep_the_whole_value_too(build_index: BuildIndex) -> None:
    data = pa.table({analyzer: pa.array(STRINGS) for analyzer in ANALYZERS})
    indexed = build_index(data, options={name: {"analyzer": name} for name in ANALYZERS})
    for column in indexed.columns:
        assert column.fields == ("keyword", f"text:{column.name}")
        bound = BoundColumn(column.name, pa.string())
        like = Like(bound, "Buying%", "\\", parse_like("Buying%"))
        assert indexed.check(like) is Answer.EXACT


def test_columns_with_dots_and_spaces_are_kept_apart(build_index: BuildIndex) -> None:
    names = ["a", "`a.b`", "`t.standard.a`", "`k.a`", "a b", "ä"]
    data = pa.table({name: [f"{name}{i}" for i in range(3)] for name in names})
    indexed = build_index(data, options={name: {"analyzer": "simple"} for name in names})
    for name in names:
        leaf = Compare(BoundColumn(name, pa.string()), Operator.EQ, pa.scalar(f"{name}1"))
        assert indexed.answer(leaf) is Answer.EXACT
        assert list(indexed.reader.row_ids(leaf)) == [1]


def test_unindexed_columns_are_not_answered(build_any: BuildIndex) -> None:
    indexed, other = build_any(pa.table({"c": ["a"]})), BoundColumn("other", pa.string())
    for leaf in (
        IsNull(other),
        Not(IsNull(other)),
        Compare(other, Operator.EQ, pa.scalar("a")),
        Compare(other, Operator.NE, pa.scalar("a")),
        In.of(other, (pa.scalar("a"),)),
        Not(In.of(other, (pa.scalar("a"),), has_null=True)),
        Like(other, "a%", "\\", parse_like("a%")),
    ):
        assert indexed.answer(leaf) is Answer.NONE


def test_distinct_values_and_nulls_are_counted(strings: IndexedData) -> None:
    (column,) = strings.columns
    assert column.null_count == 2
    assert column.truncated == 0
    assert column.distinct is not None
    assert len(STRINGS) <= column.distinct <= len(strings.data)


def test_many_segments_keep_row_ids_in_row_order(build_index: BuildIndex) -> None:
    """Enough long values to overflow the writer's memory several times."""
    rows = 12_000
    data = pa.table(
        {
            "c": pa.array([f"{i:05}-{(i * 7919) % rows:05}" + "x" * 400 for i in range(rows)]),
            "n": pa.array([(i * 7919) % rows for i in range(rows)]),
        }
    )
    indexed = build_index(data, batch_rows=4096, memory_mb=2)
    assert sum(name.endswith(".si") for name in indexed.index.members) > 1

    for row in (0, 1, 4_567, rows - 1):
        equal = Compare(BoundColumn("n", pa.int64()), Operator.EQ, pa.scalar((row * 7919) % rows))
        assert list(indexed.reader.row_ids(equal)) == [row]
        starts = Like(BoundColumn("c", pa.string()), f"{row:05}-%", "\\", parse_like(f"{row:05}-%"))
        assert list(indexed.reader.row_ids(starts)) == [row]
    below = Compare(BoundColumn("n", pa.int64()), Operator.LT, pa.scalar(8_000))
    assert indexed.check(below) is Answer.EXACT


def test_values_of_every_kind_are_exact_over_many_segments(build_index: BuildIndex) -> None:
    rows, choose = 5_000, random.Random(7)

    def some(make: Callable[[], object]) -> list[object]:
        return [None if choose.random() < 0.1 else make() for _ in range(rows)]

    def several(make: Callable[[], object]) -> list[object]:
        return some(lambda: [make() for _ in range(choose.choice((0, 1, 2, 2, 9)))])

    def integer() -> int | None:
        return choose.choice((None, choose.randrange(5000), -(2**31), choose.randrange(10)))

    def wide() -> Decimal:
        return Decimal(choose.randrange(-(10**6), 10**6)).scaleb(choose.choice((0, 20, 27)))

    def raw() -> bytes:
        return choose.randbytes(choose.randrange(3)) + b"tail" * choose.randrange(4)

    kinds: dict[str, tuple[pa.DataType, list[object]]] = {
        "wide": (pa.decimal128(38, 4), some(wide)),
        "raw": (pa.binary(), some(raw)),
        "ints": (pa.list_(pa.int32()), several(integer)),
        "wides": (pa.list_(pa.decimal128(38, 4)), several(wide)),
        "texts": (pa.list_(pa.string()), several(lambda: f"t{integer()}" * choose.randrange(3))),
        "doubles": (pa.list_(pa.float64()), several(lambda: choose.choice((NAN, -0.0, 0.5)))),
    }
    data = pa.table({name: pa.array(values, type) for name, (type, values) in kinds.items()})
    indexed = build_index(data, batch_rows=3000, memory_mb=1)
    assert sum(name.endswith(".si") for name in indexed.index.members) > 1
    for name, (type, values) in kinds.items():
        column = BoundColumn(name, type)
        given = [value for value in values if value is not None]
        leaves: list[Predicate] = [IsNull(column)]
        for value in choose.sample(given, 5):
            if isinstance(value, list):
                leaves += [
                    ArrayContains(column, pa.scalar(element, type.value_type))
                    for element in value
                    if element is not None
                ]
            else:
                scalars = [pa.scalar(each, type) for each in (value, choose.choice(given))]
                leaves += [Compare(column, operator, scalars[0]) for operator in Operator]
                leaves.append(In.of(column, tuple(scalars)))
        for leaf in with_negations(leaves):
            assert indexed.check(leaf) is Answer.EXACT


def test_estimates_are_exact_for_terms(build_any: BuildIndex) -> None:
    data = pa.table({"c": ["rare"] + ["common"] * 999, "n": list(range(1000))})
    indexed = build_any(data)
    column = BoundColumn("c", pa.string())
    estimate = indexed.reader.estimate

    assert estimate(Compare(column, Operator.EQ, pa.scalar("rare"))) == 1
    assert estimate(Compare(column, Operator.EQ, pa.scalar("common"))) == 999
    assert estimate(Compare(column, Operator.EQ, pa.scalar("absent"))) == 0
    assert estimate(Compare(column, Operator.NE, pa.scalar("rare"))) == 999
    low = Compare(BoundColumn("n", pa.int64()), Operator.LT, pa.scalar(0))
    assert estimate(low) == 0
