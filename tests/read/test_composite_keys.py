"""A composite key answers conditions on its first columns by one look-up, with Spark's answers."""

import random
import shutil

import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.errors import ColumnNotIndexable, IndexDefinitionInvalid
from tests.example_counts import share
from tests.golden.predicates import PREDICATES, RANGES
from tests.indexed import indexed
from tests.read.conftest import unindexed_copy
from tests.same_rows import assert_same_rows

KEYS = [
    ("name", "amount", "seen"),
    ("price", "huge", "raw"),
    ("born", "flag", "msg"),
    ("small", "cost", "ratio"),
    ("place.City", "place.zip"),
]
LITERALS = {
    "name": ["'plain'", "''", "'Ünïcödé'", "'a_b'", "'zz'"],
    "amount": ["3", "300", "1791", "0", "-1"],
    "seen": ["TIMESTAMP'1970-01-01 00:00:00.000300'", "TIMESTAMP'1969-12-31 23:59:59'"],
    "price": ["1.5", "0.0", "CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)", "-1.5"],
    "huge": ["0", "12345678901234567890.5", "-12345678901234567890.5"],
    "raw": ["X''", "X'07'", "X'010000'", "X'C0'"],
    "born": ["DATE'0001-01-01'", "DATE'1970-01-01'", "DATE'9999-12-31'"],
    "flag": ["true", "false"],
    "msg": ["'Buying a new car 1'", "'I am Buying'", "''"],
    "small": ["-50", "0", "7"],
    "cost": ["7.25", "0", "4000.125"],
    "ratio": ["1.5", "CAST('NaN' AS FLOAT)"],
    "place.City": ["'Rome'", "'City 1'"],
    "place.zip": ["7", "0"],
}


def composite(names: tuple[str, ...]) -> list[Column]:
    return [Column(name=name, options={"key": "composite"}) for name in names]


@pytest.fixture(scope="module", params=["btree", "lucene,btree"])
def table(request, awkward, tmp_path_factory) -> IndexedTable:
    """A table with several composite keys."""
    target = tmp_path_factory.mktemp("composite") / "table"
    table = unindexed_copy(awkward("clustered, partitioned").path, target)
    for number, names in enumerate(KEYS):
        table.create_index(f"key_{number}", composite(names), using="btree")
    if "lucene" in request.param:
        table.create_index("words", ["name", "amount", "price"])
    table.build(strategy="all").raise_for_failures()
    return table


def test_every_predicate_gives_sparks_answer(table, awkward):
    for where in [*PREDICATES, *RANGES]:
        assert_same_rows(
            table.scan(where).to_arrow(), awkward("clustered, partitioned").answer(where)
        )


def conditions(column: str, dice: random.Random) -> str:
    """A condition on a column."""
    one, two = dice.choice(LITERALS[column]), dice.choice(LITERALS[column])
    forms = [f"{column} = {one}"] * 4 + [
        f"{column} IN ({one}, {two})",
        f"{column} IS NULL",
        f"{column} IS NOT NULL",
        f"{column} >= {one}",
        f"{column} < {one}",
        f"{column} BETWEEN {one} AND {two}",
        f"{column} <=> {one}",
        f"{column} <> {one}",
    ]
    if column in ("name", "msg"):
        forms.append(f"{column} LIKE 'Buy%'")
    return dice.choice(forms)


@pytest.mark.parametrize("seed", range(share(60)))
def test_conjuncts_give_the_answer_of_a_scan(table, seed):
    dice = random.Random(seed)
    key = dice.choice(KEYS)
    names = list(key[: dice.randint(1, len(key))])
    if dice.random() < 0.3:
        names.append(dice.choice(dice.choice(KEYS)))
    where = " AND ".join(conditions(name, dice) for name in names)
    if dice.random() < 0.2:
        where = f"({where}) OR {conditions(key[0], dice)}"
    expected = table.scan(where, use_index="never").to_arrow()
    scan = table.scan(where)
    assert_same_rows(scan.to_arrow(), expected)
    assert scan.count() == expected.num_rows, where
    assert scan.exists() == bool(expected.num_rows), where


def test_equality_and_a_range_on_the_next_column_are_counted_by_index(awkward, tmp_path):
    with unindexed_copy(awkward("clustered").path, tmp_path / "table") as table:
        indexed(table, composite(("flag", "amount", "cost")), using="btree")
        where = "flag AND amount >= 0 AND amount < 900"
        scan = table.scan(where, use_index="require")
        assert scan.count() == table.scan(where, use_index="never").count() > 0
        assert scan.statistics.pages == 0
        assert scan.statistics.rows_checked == 0


def test_columns_that_make_no_key(awkward, tmp_path):
    path = shutil.copytree(awkward("clustered").path, tmp_path / "table")
    with open_table(path) as table:
        with pytest.raises(ColumnNotIndexable, match="array"):
            table.create_index("a", composite(("name", "tags")), using="btree")
        with pytest.raises(IndexDefinitionInvalid, match="lucene has no composite keys"):
            table.create_index("b", composite(("name", "amount")))
        nine = ("name", "msg", "price", "ratio", "amount", "small", "flag", "born", "seen")
        with pytest.raises(IndexDefinitionInvalid, match="at most 8 columns, not 9"):
            table.create_index("c", composite(nine), using="btree")
        both = Column(name="name", options={"key": "both"})
        with pytest.raises(IndexDefinitionInvalid, match="cannot be 'both'"):
            table.create_index("d", [both], using="btree")
        assert [each.name for each in table.indexes()] == ["all_columns"]
