"""Row estimates from manifests: bounds that hold, guesses that are close."""

import random
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_index_service.optimizer.estimates import ManifestEstimates, estimated_rows
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.partitions import PartitionValues
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.predicate.expression import Constant, Predicate, conjunction, disjunction
from tests.optimizer.estimates.conftest import count_where, normal, slice_of
from tests.predicate.test_bounds import LEAVES, SCHEMA, VALUES

PREDICATES = [normal(where, SCHEMA) for where in LEAVES]


def some_rows(dice: random.Random, *, nulls: bool = True) -> pa.Table:
    """A few rows of values, odd ones included; some columns have only one value."""
    rows, columns = dice.randrange(0, 6), {}
    for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True):
        values = dice.sample(VALUES[name], dice.randrange(1, len(VALUES[name]) + 1))
        choice = [*values, None] if nulls and dice.random() < 0.5 else values
        columns[name] = pa.array([dice.choice(choice) for _ in range(rows)], kind)
    return pa.table(columns)


def holds(plan: SlicePlan, predicate: Predicate, data: pa.Table) -> RowEstimate:
    """The true number of rows lies between the bounds, and so does the guess."""
    found = estimated_rows(plan, predicate)
    assert found is not None
    rows = count_where(predicate, data)
    assert 0 <= found.least <= rows <= found.most <= len(data), f"{predicate}: {found}, has {rows}"
    assert found.least <= found.expected <= found.most, f"{predicate}: {found}"
    return found


def test_bounds_hold_for_every_leaf_on_every_type():
    dice, exact = random.Random(7), 0
    for _ in range(60):
        data = some_rows(dice)
        plan = slice_of(data)
        for predicate in PREDICATES:
            found = holds(plan, predicate, data)
            exact += found.least == found.most
    assert exact > 60 * len(PREDICATES) / 4  # the bounds are not trivial


CONSTANTS: st.SearchStrategy[Predicate] = st.sampled_from((True, False, None)).map(Constant)
TREES = st.recursive(
    st.sampled_from(PREDICATES) | CONSTANTS,
    lambda below: st.lists(below, min_size=2, max_size=4).flatmap(
        lambda parts: st.sampled_from((conjunction(parts), disjunction(parts)))
    ),
    max_leaves=8,
)


@settings(derandomize=True, deadline=None, database=None, max_examples=150)
@given(tree=TREES, seed=st.integers(0, 10_000))
def test_bounds_hold_for_trees(tree, seed):
    data = some_rows(random.Random(seed))

    holds(slice_of(data), tree, data)


@settings(derandomize=True, deadline=None, database=None, max_examples=150)
@given(
    ends=st.tuples(*[st.sampled_from(("<", "<=", ">", ">=", "="))] * 3),
    literals=st.tuples(*[st.integers(-1, 6)] * 3),
    values=st.lists(st.none() | st.integers(0, 5), max_size=6),
)
def test_ranges_of_one_column_are_taken_together(ends, literals, values):
    data = pa.table({"i": pa.array(values, pa.int32())})
    where = " AND ".join(f"i {end} {literal}" for end, literal in zip(ends, literals, strict=True))

    holds(slice_of(data), normal(where, data.schema), data)


@pytest.fixture(scope="module")
def sales() -> pa.Table:
    """20,000 rows, evenly spread, a tenth of each column NULL."""
    rows, dice = 20_000, np.random.default_rng(3)

    def column(values, kind):
        return pa.array(values, kind, mask=dice.random(rows) < 0.1)

    days = dice.integers(0, 1000, rows)
    return pa.table(
        {
            "id": column(list(dice.permutation(rows)), pa.int64()),
            "state": column(list(dice.integers(0, 5, rows)), pa.int32()),
            "price": column(list(dice.random(rows) * 200 - 100), pa.float64()),
            "cut": column([Decimal(int(n)) / 100 for n in dice.integers(0, 11, rows)],
                          pa.decimal128(9, 2)),
            "day": column([date(2024, 1, 1) + timedelta(int(n)) for n in days], pa.date32()),
            "code": column([f"order-{n:05}" for n in dice.integers(0, 10_000, rows)], pa.string()),
            "word": column([f"{chr(97 + n)}x" for n in dice.integers(0, 26, rows)], pa.string()),
            "flag": column(list(dice.random(rows) < 0.5), pa.bool_()),
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    "where",
    [
        "id = 77",
        "state = 3",
        "state <> 3",
        "state IN (1, 3, 9)",
        "state NOT IN (1, 3)",
        "cut = 0.05",
        "cut >= 0.08",
        "flag",
        "id < 5000",
        "id BETWEEN 1000 AND 1999",
        "NOT (id <=> 5)",
        "price > 50",
        "price BETWEEN -1 AND 1",
        "day >= date '2026-01-01'",
        "day < date '2024-01-11'",
        "code LIKE 'order-01%'",
        "code >= 'order-05000'",
        "code BETWEEN 'order-02' AND 'order-03'",
        "word LIKE 'b%'",
        "word > 'n'",
        "price IS NULL",
        "price IS NOT NULL",
        "state = 3 AND price IS NOT NULL",
        "state = 3 OR id < 5000",
    ],
)
def test_guesses_are_close_for_evenly_spread_values(sales, where):
    plan = slice_of(sales, distinct={"code": 10_000, "word": 26})
    predicate = normal(where, sales.schema)
    rows = count_where(predicate, sales)

    assert holds(plan, predicate, sales).expected == pytest.approx(rows, rel=0.25, abs=10)


def test_columns_with_one_value_are_estimated_exactly():
    data = pa.table({"a": ["x", "x", None], "n": pa.array([1, 1, 1], pa.int32())})
    plan = slice_of(data)
    for where, rows in {
        "a = 'x'": 2,
        "a <> 'x'": 0,
        "a <> 'y'": 2,
        "a LIKE 'x%'": 2,
        "a LIKE 'y%'": 0,
        "a IS NULL": 1,
        "NOT (a <=> 'x')": 1,
        "n = 1 AND a = 'x'": 2,
        "n > 0": 3,
        "n BETWEEN 2 AND 1": 0,
    }.items():
        assert estimated_rows(plan, normal(where, data.schema)) == RowEstimate(rows, rows, rows)


def test_unindexed_columns_may_have_any_values():
    held, whole = pa.table({"a": [1, 2, None]}), pa.table({"a": [1, 2, None], "b": [1, 1, None]})
    plan = slice_of(held)
    for where in ("b = 1", "b <> 1", "b IS NULL", "NOT (b <=> 1)", "b NOT IN (2)", "b < 5",
                  "a = 1 AND b = 1", "b = 1 OR a IS NULL"):  # fmt: skip
        found = estimated_rows(plan, normal(where, whole.schema))
        assert found.least <= count_where(normal(where, whole.schema), whole) <= found.most


def test_a_partitions_value_overrides_that_of_the_file():
    data = pa.table({"part": ["old", "old"], "n": [1, 2]})
    plan = slice_of(data, values={"part": pa.scalar("new")})
    estimates = {
        where: estimated_rows(plan, normal(where, data.schema))
        for where in ("part = 'new'", "part = 'old'", "part = 'new' AND n > 0", "part <> 'new'")
    }

    assert list(estimates.values()) == [
        RowEstimate(rows, rows, rows) for rows in (2, 0, 2, 0)
    ]  # fmt: skip


def test_one_estimator_serves_many_slices():
    tables = [pa.table({"n": list(range(start, start + 10))}) for start in (0, 10, 20)]
    estimates = ManifestEstimates(normal("n >= 15", tables[0].schema))
    plans = [slice_of(data, path=f"{number}.parquet") for number, data in enumerate(tables)]

    assert [estimates.rows(plan) for plan in plans] == [
        RowEstimate(0, 0, 0),
        RowEstimate(0, 5, 10),
        RowEstimate(10, 10, 10),
    ]


PARTITIONS = {"day=1": "1", "day=2": "2", "day=3": "3", "other": None}


def partition_values(by_path: Mapping[str, str | None]) -> PartitionValues:
    """Partitions, most of whose paths give the value of `part`."""
    values = {path: {"part": pa.scalar(value)} if value else {} for path, value in by_path.items()}
    column = pa.array(list(by_path.values()), pa.string())
    return PartitionValues(values, pa.record_batch([column], ["part"]))


@pytest.mark.parametrize(
    "where",
    ["part = '2'", "part > '1' AND n > 5", "part = '1' OR n > 5", "n > 5", "part IN ('1', '3')",
     "NOT (part IN ('1', NULL) AND n > 2)", "part = '2' AND (part < '3' OR n = 1) AND n < 9"],
)  # fmt: skip
def test_partitions_estimated_together_equal_those_estimated_singly(where):
    data = pa.table({"part": pa.array(["4"] * 10), "n": list(range(10))})
    predicate, partitions = normal(where, data.schema), partition_values(PARTITIONS)
    at_once = ManifestEstimates(predicate, partitions)
    for path, values in partitions.by_partition.items():
        plan = slice_of(data, values=values, path=f"{path}/file.parquet")
        assert at_once.rows(plan) == estimated_rows(plan, predicate)


def test_partitions_with_the_same_remaining_predicate_share_it():
    schema = pa.schema([("part", pa.string()), ("n", pa.int64())])
    predicate = normal("part < '3' AND n > 5", schema)
    left = partition_values(PARTITIONS).within(predicate)

    assert left["day=1"] is left["day=2"]
    assert left["day=1"].columns() == {"n"}
    assert left["day=3"] != left["day=1"]
    assert "other" not in left


def test_slices_without_entries_are_unknown_and_skipped_ones_empty():
    data = pa.table({"n": [1, 2]})
    plan, predicate = slice_of(data), normal("n = 1", data.schema)

    assert estimated_rows(plan._replace(entries=()), predicate) is None
    assert estimated_rows(plan.skipped("no row", "rule"), predicate) == RowEstimate(0, 0, 0)
    # Declined slices are still estimated.
    assert estimated_rows(plan.declined("it is small", "rule"), predicate) == RowEstimate(0, 1, 2)
