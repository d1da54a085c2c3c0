"""Every kind of leaf on every Arrow type, with every index type: the promised answers are those in
docs/index_types.md, and the rows found are those that Spark finds."""

import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import Answer, ColumnSpec, ColumnStatistics, StoredColumn
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.routed import Routed
from hudi_index_service.predicate import negation_normal_form
from hudi_index_service.predicate.expression import (
    And,
    BoundColumn,
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    RLike,
)
from hudi_index_service.predicate.like import parse_like
from hudi_index_service.predicate.regex import parse_regex
from tests.index.conftest import BuildIndex, IndexedData, rows_where
from tests.index.test_leaves import VALUES, rows_of

EXACT, SUPERSET, NONE = Answer.EXACT, Answer.SUPERSET, Answer.NONE

# Kind of leaf → what lucene, btree and a plug-in promise; NOT of an exact leaf is exact too.
# hbase promises the same as btree.
PROMISED = {
    "equal": (EXACT, EXACT, EXACT),
    "range": (EXACT, EXACT, EXACT),
    "between": (EXACT, EXACT, EXACT),
    "in": (EXACT, EXACT, EXACT),
    "is null": (EXACT, EXACT, EXACT),
    "like beginning": (EXACT, EXACT, EXACT),
    "like whole": (EXACT, EXACT, EXACT),
    "like beginning and more": (EXACT, SUPERSET, EXACT),
    "like anywhere": (EXACT, NONE, EXACT),
    "rlike beginning": (SUPERSET, SUPERSET, EXACT),
    "rlike anywhere": (SUPERSET, NONE, EXACT),
    "array_contains": (EXACT, EXACT, EXACT),
}
OF_ANY_TYPE = ("equal", "range", "between", "in", "is null")
OF_TEXTS = [kind for kind in PROMISED if "like" in kind]
PATTERNS = {
    "like beginning": ("a%", "Buying%", "日%"),
    "like whole": ("ab", "", "Buying"),
    "like beginning and more": ("a%b", "I%Buying", "a_"),
    "like anywhere": ("%a", "%uyin%", "_", "%_b"),
    "rlike beginning": ("^Buy.*g$", "^a"),
    "rlike anywhere": ("Buy(ing)+", "yin"),
}


def leaves(type: pa.DataType) -> Iterator[tuple[str, Predicate]]:
    """Leaves over a column of that type, each with its kind."""
    column = BoundColumn("c", type)
    yield "is null", IsNull(column)
    scalars = [pa.scalar(value, type) for value in VALUES[type]]
    for scalar in scalars:
        for operator in Operator:
            is_range = operator.value[0] in "<>" and operator.value not in ("<>", "<=>")
            yield ("range" if is_range else "equal"), Compare(column, operator, scalar)
        for other in scalars[:: max(1, len(scalars) // 4)]:
            low = Compare(column, Operator.GE, scalar)
            yield "between", And((low, Compare(column, Operator.LT, other)))
        yield "in", In.of(column, (scalar, scalars[0]))
        yield "in", In.of(column, (scalar,), has_null=True)
    yield "in", In.of(column, tuple(scalars))
    yield "in", In.of(column, tuple(scalars[::2]), has_null=True)
    if not (pa.types.is_string(type) or pa.types.is_large_string(type)):
        return
    for kind, patterns in PATTERNS.items():
        for pattern in patterns:
            if kind.startswith("rlike"):
                yield kind, RLike(column, pattern, parse_regex(pattern))
            else:
                yield kind, Like(column, pattern, "\\", parse_like(pattern))


OfType = Callable[[pa.DataType], IndexedData]


@pytest.fixture(scope="module")
def of_type(build_any: BuildIndex) -> OfType:
    """An index of all values of a type, built once."""
    return cache(lambda type: build_any(rows_of(type), batch_rows=7))


def test_the_services_own_types_implement_contract_2() -> None:
    assert {index_type(name).contract for name in ("btree", "hbase", "lucene")} == {2}


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_each_leaf_is_answered_as_promised(of_type: OfType, type: pa.DataType) -> None:
    indexed = of_type(type)
    position = {"lucene": 0, "btree": 1, "hbase": 1, "copied": 2}[indexed.kind.name]
    compared: Counter[str] = Counter()
    for kind, leaf in leaves(type):
        promised = PROMISED[kind][position]
        assert indexed.check(leaf) is promised, leaf
        compared[kind] += promised is not NONE
        if kind != "between":
            inverse = negation_normal_form(Not(leaf))
            assert not isinstance(inverse, And | Or)
            found = indexed.check(inverse)
            assert found is (EXACT if promised is EXACT else NONE), inverse
            compared[f"not {kind}"] += found is EXACT
    is_text = pa.types.is_string(type) or pa.types.is_large_string(type)
    for kind in (*OF_ANY_TYPE, *OF_TEXTS * is_text):
        promised = PROMISED[kind][position]
        assert (compared[kind] > 0) is (promised is not NONE), kind
        assert (compared[f"not {kind}"] > 0) is (promised is EXACT and kind != "between"), kind


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_entries_looked_up_together_give_the_rows_of_each(
    build_any: BuildIndex, of_type: OfType, type: pa.DataType
) -> None:
    whole, empty = of_type(type), build_any(rows_of(type).slice(0, 0))
    assert [each.layout for each in whole.columns] == [each.layout for each in empty.columns]
    readers = [whole.reader, empty.reader, whole.reader]
    together = whole.kind.together(readers)
    assert (together is None) is (whole.kind.name not in ("lucene", "btree"))
    if together is None:
        return
    every, answered = np.arange(3, dtype=np.int32), 0
    for _, leaf in leaves(type):
        if whole.answer(leaf) is NONE:
            continue
        few_rows, without_rows = (
            together.few_rows(leaf, every, 10_000),
            together.without_rows(leaf, every),
        )
        assert (few_rows is None) is (without_rows is None)
        if few_rows is not None and without_rows is not None:
            rows = whole.reader.row_ids(leaf)
            assert list(few_rows) == [rows, BitMap(), rows], leaf
            fewer = together.few_rows(leaf, every, 1)
            expected = None if len(rows) > 1 else rows
            assert fewer == [expected, BitMap(), expected], leaf
            assert without_rows.tolist() == [not rows, True, not rows], leaf
            two = np.array([2, 1], dtype=np.int32)
            assert together.few_rows(leaf, two, 10_000) == [rows, BitMap()], leaf
            some = together.without_rows(leaf, two)
            assert some is not None
            assert some.tolist() == [not rows, True], leaf
            answered += 1
    assert answered > 0


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_rows_of_several_entries_are_examined_together(
    build_any: BuildIndex, of_type: OfType, type: pa.DataType
) -> None:
    whole, part = of_type(type), build_any(rows_of(type).slice(0, 3))
    together = whole.kind.together([whole.reader, part.reader])
    if together is None:
        return
    asked, examined = np.array([1, 0, 0], dtype=np.int32), 0
    given = [BitMap([0, 2]), BitMap(range(0, len(whole.data), 2)), BitMap()]
    for kind, leaf in leaves(type):
        for each in (leaf, negation_normal_form(Not(leaf))) if kind != "between" else ():
            found = together.narrowed(each, asked, given)
            if found is None:
                continue
            examined += 1
            for data, rows, narrowed in zip(
                (part.data, whole.data, whole.data), given, found, strict=True
            ):
                assert narrowed == rows_where(each, data) & rows, each
    assert (examined > 0) is (whole.kind.name == "lucene")


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_entries_are_asked_together_for_other_values_each(
    of_type: OfType, type: pa.DataType
) -> None:
    whole = of_type(type)
    together = whole.kind.together([whole.reader] * 4)
    if together is None:
        return
    column = BoundColumn("c", type)
    leaf = In(column, pa.array(VALUES[type], type))
    every = np.arange(len(leaf.values), dtype=np.int32)
    some = [every[::-2], every[:0], every[1:2], every]
    ends = np.cumsum([len(each) for each in some], dtype=np.int32)
    routed = Routed(np.concatenate(some), np.concatenate([[0], ends[:-1]]).astype(np.int32), ends)
    asked = np.array([3, 1, 0, 2], dtype=np.int32)
    found = together.rows_of_values(leaf, asked, routed, 10_000)
    assert (found is None) is (pa.types.is_decimal(type) and type.precision > 18), type
    if found is None:
        return
    for rows, wanted in zip(found, some, strict=True):
        values = leaf.values.take(wanted)
        alone = whole.reader.row_ids(In(column, values)) if len(values) else BitMap()
        assert rows is None or rows == alone, values
    assert all(rows is not None for rows in found) or whole.kind.name == "btree"
    fewer = together.rows_of_values(leaf, asked, routed, 1)
    assert fewer is not None
    assert fewer[3] is None


def test_verify_finds_no_fault_in_a_new_index(build_any: BuildIndex) -> None:
    schema = pa.schema([(f"c{i}", type) for i, type in enumerate(VALUES)])
    data = pa.table([pa.array([*v[:2], None], t) for t, v in VALUES.items()], schema=schema)
    indexed = build_any(data, batch_rows=2)

    assert indexed.kind.verify(indexed.index, indexed.columns) == []
    assert indexed.index.length == indexed.index.path.stat().st_size > 0
    indexed.reader.close()


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_promised_answers_depend_on_the_columns_layout_alone(
    of_type: OfType, type: pa.DataType
) -> None:
    indexed = of_type(type)
    others = [
        StoredColumn.of(column.spec, ColumnStatistics(nulls, distinct, column.truncated))
        for column in indexed.columns
        for nulls, distinct in ((0, None), (5, 1), (10**6, 10**6))
    ]
    assert {column.layout for column in others} == {each.layout for each in indexed.columns}
    for _, leaf in leaves(type):
        promised = indexed.answer(leaf)
        assert {indexed.kind.answer(leaf, [column]) for column in others} == {promised}


SPEC = ColumnSpec("at", pa.timestamp("us", "UTC"), ("point", "exists"))


def test_cached_values_do_not_affect_equality_or_pickling() -> None:
    column = StoredColumn.of(SPEC, ColumnStatistics(3))
    assert column.layout == ("at", SPEC.type, SPEC.fields, False)
    assert column == StoredColumn.of(SPEC, ColumnStatistics(3))
    assert hash(column) == hash(StoredColumn.of(SPEC, ColumnStatistics(3)))
    again = pickle.loads(pickle.dumps(column))  # noqa: S301 - made here
    assert (again, again.layout) == (column, column.layout)


def test_it_holds_columns_of_its_type_with_a_subset_of_its_fields() -> None:
    column = StoredColumn.of(SPEC, ColumnStatistics(0))
    assert column.holds(SPEC)
    assert column.holds(ColumnSpec("at", SPEC.type, ("exists",)))
    assert not column.holds(ColumnSpec("at", SPEC.type, ("exists", "text")))
    assert not column.holds(ColumnSpec("at", pa.timestamp("us"), ("exists",)))


def test_an_unknown_type_is_refused_where_it_is_used() -> None:
    column = StoredColumn(name="at", type="interval", fields=("point",), null_count=0)
    assert not column.holds(SPEC)
    assert column.bounds(7).least is None
    for use in (lambda: column.type, lambda: column.spec, lambda: column.layout):
        with pytest.raises(EntryInvalid, match="unknown here: interval"):
            use()
