"""Which answers of the tree are exact or a superset, where it differs from other index types."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service.errors import IndexDefinitionInvalid
from hudi_index_service.index.btree.keys import CUT_BYTES
from hudi_index_service.index.btree.leaf_file import SET_ROWS
from hudi_index_service.index.contract import Answer
from hudi_index_service.index.factory import index_type
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import (
    ArrayContains,
    BoundColumn,
    Compare,
    In,
    Like,
    Not,
    Operator,
)
from hudi_index_service.predicate.like import parse_like
from tests.index.conftest import BuildIndex, IndexedData, rows_where
from tests.index.test_leaves import BROKEN, PATTERNS, VALUES, rows_of

TEXT = BoundColumn("c", pa.string())


@pytest.fixture(scope="module")
def strings(build_btree: BuildIndex) -> IndexedData:
    return build_btree(rows_of(pa.string()))


def like(pattern: str) -> Like:
    return Like(TEXT, pattern, "\\", parse_like(pattern))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_like_is_answered_by_its_prefix(strings: IndexedData, pattern: str) -> None:
    leaf = like(pattern)
    kinds = [part.kind for part in leaf.parts]
    if kinds in ([], ["text"], ["any"], ["text", "any"]):
        expected = Answer.EXACT
    else:
        expected = Answer.SUPERSET if leaf.prefix else Answer.NONE
    assert strings.check(leaf) is expected
    assert strings.check(Not(leaf)) is (expected if expected is Answer.EXACT else Answer.NONE)


CUT = "x" * CUT_BYTES
LONG = [CUT, CUT + "a", CUT + "b", CUT[:-1], CUT[:-1] + "é", CUT[:-2] + "yz" + CUT, "x", "y", ""]


@pytest.fixture(scope="module")
def long_values(build_btree: BuildIndex) -> IndexedData:
    """Values around the longest whole key; some differ only after the cut."""
    return build_btree(pa.table({"c": [*LONG, None, *LONG]}))


def test_only_literals_as_long_as_cut_keys_give_supersets(long_values: IndexedData) -> None:
    assert long_values.columns[0].truncated == 10
    for text in (*LONG, "z", CUT + "c", CUT[:-1] + "w", CUT[:100]):
        is_long = len(text.encode()) >= CUT_BYTES
        expected = Answer.SUPERSET if is_long else Answer.EXACT
        literal = pa.scalar(text)
        for operator in set(Operator) - {Operator.NE}:
            assert long_values.check(Compare(TEXT, operator, literal)) is expected
        unequal = long_values.check(Compare(TEXT, Operator.NE, literal))
        assert unequal is (Answer.NONE if is_long else Answer.EXACT)
        assert long_values.check(In.of(TEXT, (literal, pa.scalar("y")))) is expected
    for pattern in (CUT[:-1] + "%", CUT + "%", CUT + "a%", "x%", CUT + "a"):
        assert long_values.check(like(pattern)) is not Answer.NONE
    assert long_values.check(like(CUT + "%")) is Answer.EXACT
    assert long_values.check(like(CUT + "a%")) is Answer.SUPERSET


def test_long_literals_are_exact_if_no_key_is_cut(build_btree: BuildIndex) -> None:
    indexed = build_btree(pa.table({"c": ["a", CUT[:-1], None, "xy", "y", ""]}))
    for text in (CUT, CUT + "a", CUT[:-1] + "é", "y" * 600, "\x00" * 600):
        for operator in Operator:
            assert indexed.check(Compare(TEXT, operator, pa.scalar(text))) is Answer.EXACT
        assert indexed.check(like(text + "%")) is not Answer.NONE


def test_long_elements_and_binary_values_are_answered(build_btree: BuildIndex) -> None:
    arrays = [[CUT + "a", "y"], ["y", None], [CUT, CUT + "b"], None]
    indexed = build_btree(pa.table({"c": arrays}))
    for text, expected in (
        (CUT, Answer.SUPERSET),
        (CUT + "c", Answer.SUPERSET),
        ("y", Answer.EXACT),
    ):
        leaf = ArrayContains(BoundColumn("c", pa.list_(pa.string())), pa.scalar(text))
        assert indexed.check(leaf) is expected
    raw = build_btree(pa.table({"c": [b"\xff" * 600, b"\xff" * 508, b"\xff" * 507, None]}))
    column = BoundColumn("c", pa.binary())
    for value in (b"\xff" * 600, b"\xff" * 507, b"\xff"):
        for operator in set(Operator) - {Operator.NE}:
            assert raw.check(Compare(column, operator, pa.scalar(value))) is not Answer.NONE


def test_invalid_utf8_compares_by_its_bytes(build_btree: BuildIndex) -> None:
    values = pa.array(BROKEN).view(pa.string())
    indexed = build_btree(pa.table({"c": values}))
    for literal in (values[0], values[1], values[2], values[6], pa.scalar("a")):
        for operator in Operator:
            assert indexed.check(Compare(TEXT, operator, literal)) is Answer.EXACT
    java = pa.table({"c": [value and value.decode(errors="replace") for value in BROKEN]})
    for pattern, expected in (
        ("a%", Answer.EXACT),
        ("a\ufffd", Answer.SUPERSET),
        ("\ufffd%", Answer.NONE),
    ):
        assert indexed.answer(like(pattern)) is expected
        if expected is not Answer.NONE:
            assert indexed.reader.row_ids(like(pattern)) >= rows_where(like(pattern), java)
    assert indexed.reader.value_counts("c", None, 100) is None


def test_leaves_of_every_shape_are_exact(build_btree: BuildIndex) -> None:
    """Keys with one row, with several, and with enough rows for a bitmap, over many leaves."""
    choose = random.Random(5)
    often = [7] * SET_ROWS + [8] * (SET_ROWS - 1) + [2**40] * 3000 + [9] * 300
    values = [*often, *(choose.randrange(-(10**9), 10**9) for _ in range(3 * SET_ROWS)), None]
    choose.shuffle(values)
    data = pa.table({"n": pa.array(values), "s": [v and f"{v:x}" * 9 for v in values]})
    indexed = build_btree(data, batch_rows=1500)
    for where in (
        "n = 7", "n = 8", "n = 9", "n <> 8", "n > 7", "n BETWEEN 7 AND 9", "n < 1000", "n >= 8",
        "n IN (7, 8, 9, 10, 11, 12, 13, 14, 15, 16)", "NOT n IN (7, 8)", "s LIKE '7%'", "s > '8'",
        "s = '777777777'", "s LIKE '1%'", "s BETWEEN '2' AND '5'", "n IS NULL", "s IS NOT NULL",
    ):  # fmt: skip
        leaf = negation_normal_form(parse_predicate(where, data.schema))
        assert indexed.check(leaf) is Answer.EXACT
    assert indexed.kind.verify(indexed.index, indexed.columns) == []
    assert indexed.columns[0].distinct == len({*values} - {None})


@pytest.mark.parametrize("share", [0.001, 0.1, 0.9])
@pytest.mark.parametrize("type", [pa.string(), pa.int64()], ids=str)
def test_long_lists_are_exact(build_btree: BuildIndex, type: pa.DataType, share: float) -> None:
    """Of keys that are there and of others: between them, below and above those of a leaf."""
    choose = random.Random(11)
    numbers = [choose.randrange(10**6) for _ in range(5 * SET_ROWS)]
    wanted = [n + choose.randrange(-1, 2) for n in numbers if choose.random() < share]
    wanted += [-1, 0, 10**6, 10**9, *numbers[:3], *numbers[:3]]

    def typed(values: list[int]) -> pa.Array:
        return pa.array([f"User{n}" if pa.types.is_string(type) else n for n in values], type)

    column = BoundColumn("c", type)
    indexed = build_btree(pa.table({"c": typed(numbers)}))
    others = ["", "A", "Use", "User", "Z"] if pa.types.is_string(type) else [-(2**63), 2**63 - 1]
    values = pa.concat_arrays([typed(wanted), pa.array(others, type)])
    assert indexed.check(In(column, values)) is Answer.EXACT


def test_estimates_are_exact_for_a_range_and_close_for_long_lists(build_btree: BuildIndex) -> None:
    data = pa.table({"n": pa.array([i // 3 for i in range(30_000)])})
    indexed = build_btree(data, batch_rows=10_000)
    column = BoundColumn("n", pa.int64())
    some = In.of(column, tuple(pa.scalar(value) for value in range(0, 9000, 30)))
    assert 0.5 <= indexed.reader.estimate(some) / 900 <= 2
    range_ = negation_normal_form(parse_predicate("n BETWEEN 100 AND 4099", data.schema))
    assert indexed.reader.estimate(range_) == 12_000
    assert indexed.reader.row_bounds(range_) == (12_000, 12_000)
    assert indexed.check(some) is Answer.EXACT


def test_values_are_counted(build_btree: BuildIndex) -> None:
    texts = ["a", "b", None, "a", "", "c"] * 200 + [f"t{i}" for i in range(40)]
    indexed = build_btree(pa.table({"c": texts, "n": list(range(len(texts)))}))
    counts = indexed.reader.value_counts("c", None, 100)
    assert counts == {t: texts.count(t) for t in {*texts} - {None}}
    among = indexed.reader.row_ids(Compare(BoundColumn("n", pa.int64()), Operator.LT, pa.scalar(6)))
    assert indexed.reader.value_counts("c", among, 100) == {"a": 2, "b": 1, "": 1, "c": 1}
    assert indexed.reader.value_counts("c", None, 10) is None
    assert indexed.reader.value_counts("n", None, 10_000) is None


def test_btree_has_no_column_options() -> None:
    with pytest.raises(IndexDefinitionInvalid, match="no column option 'analyzer'"):
        index_type("btree").fields("c", pa.string(), {"analyzer": "standard"})
    for type in VALUES:
        assert index_type("btree").fields("c", type, {}) == ("key",)


def test_a_build_leaves_only_its_members_behind(build_btree: BuildIndex, tmp_path: Path) -> None:
    indexed = build_btree(pa.table({"c": ["a"] * 5000}), batch_rows=500, memory_mb=1)
    assert sorted(indexed.index.members) == ["leaves", "tree"]
    folder = Path(str(indexed.index.path).removesuffix(".pack"))
    assert sorted(path.name for path in folder.iterdir()) == ["leaves", "tree"]


def test_bounds_of_a_long_list_come_from_the_leaves_of_its_values(build_btree: BuildIndex) -> None:
    numbers = [7] * 600 + [number % 4_000 for number in range(0, 24_000, 5)]
    indexed = build_btree(pa.table({"n": numbers}))
    values = ", ".join(str(number) for number in range(7, 400, 4))
    leaf = parse_predicate(f"n IN ({values})", indexed.data.schema)
    assert indexed.check(leaf) is Answer.EXACT
    rows = len(indexed.reader.row_ids(leaf))
    least, most = indexed.reader.row_bounds(leaf)
    assert 600 <= least <= rows <= most <= 600 + 1_024, "of two leaves and a set"
