"""Base files that hold a column in another type than the table: the others are indexed."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.build.outcomes import Build
from hudi_index_service.cli.reports import build_lines, coverage_hints
from hudi_index_service.errors import BuildFailed, NeedsSpark
from hudi_index_service.optimizer.plan import Access
from tests.edited_tables import ROWS, commit_again, put_with_columns
from tests.golden.table import Golden

NUMBERS = {
    "int": pa.array(range(-5, ROWS - 5), pa.int32()),
    "long": pa.array([-(2**63), *range(ROWS - 1)], pa.int64()),
    "float": pa.array([each / 10 for each in range(ROWS)], pa.float32()),
    "double": pa.array([each / 10 for each in range(ROWS)], pa.float64()),
}
LEFT = [("float", "double"), ("float", "string"), ("double", "string")]
READ = [("int", "string"), ("long", "string"), ("int", "long"), ("int", "double")]


def put(golden: Golden, path: Path, **types: tuple[str, str]) -> None:
    """A table whose columns have other types in the commit than in the file."""
    put_with_columns(golden, path, {name: (NUMBERS[own], to) for name, (own, to) in types.items()})


def built(path: Path, *columns: str, using: str = "btree") -> tuple[IndexedTable, Build]:
    table = open_table(path)
    table.create_index("some", list(columns), using=using)
    return table, table.build(strategy="all").raise_for_failures()


def assert_by_index(table: IndexedTable, where: str, ids: list[int]) -> None:
    scan = table.scan(where, columns=["id"])
    plan = scan.explain().plan
    assert plan is not None
    assert plan.count(Access.INDEX) == 1
    for each in (scan, table.scan(where, columns=["id"], use_index="never")):
        assert sorted(map(int, each.to_arrow().column("id").to_pylist())) == ids
        assert each.count() == len(ids)


@pytest.mark.parametrize("using", ["btree", "lucene"])
@pytest.mark.parametrize(("stored", "table_type"), LEFT)
def test_the_other_columns_are_indexed_and_the_promoted_one_is_named(
    golden: Golden, tmp_path: Path, stored: str, table_type: str, using: str
) -> None:
    put(golden, tmp_path, price=(stored, table_type), n=("long", "long"))
    table, build = built(tmp_path, "price", "n", using=using)
    (outcome,) = build.built
    assert list(outcome.skipped) == ["price"]
    assert f"holds column price as {stored}, but the table's type is" in outcome.skipped["price"]
    assert any("Built without column price" in line for line in build_lines(build))
    assert_by_index(table, "n = 7", [8])
    by_price = table.scan("price = '0.1'", columns=["id"])
    assert f"its {using} entry lacks column price, which only Spark" in str(by_price.explain())
    with pytest.raises(NeedsSpark, match="holds column price as"):
        by_price.count()

    for again in (table, open_table(tmp_path)):
        status = again.status()
        (index,) = status
        assert (index.covered, index.due, index.left) == (1, 0, 0)
        assert index.skipped["price"][0] == 1
        assert any("column price in 1 of 1 base files" in hint for hint in coverage_hints(status))
        assert json.loads(json.dumps(index.to_dict()))["skipped"][0]["column"] == "price"
        assert again.build(strategy="all").due == ()
        assert again.refresh("some").due == ()
        assert again.verify().problems == ()


@pytest.mark.parametrize("using", ["btree", "lucene"])
@pytest.mark.parametrize(("stored", "table_type"), READ)
def test_promotions_that_lose_nothing_are_read_and_indexed(
    golden: Golden, tmp_path: Path, stored: str, table_type: str, using: str
) -> None:
    put(golden, tmp_path, n=(stored, table_type))
    table, build = built(tmp_path, "n", using=using)
    assert not build.built[0].skipped
    sought = NUMBERS[stored][0].as_py()
    literal = f"'{sought}'" if table_type == "string" else f"CAST('{sought}' AS {table_type})"
    assert_by_index(table, f"n = {literal}", [0])
    values = table.scan("n IS NOT NULL", columns=["n"]).to_arrow().column("n").to_pylist()
    assert values == [
        str(each) if table_type == "string" else each for each in NUMBERS[stored].to_pylist()
    ]
    if table_type == "string":
        assert_by_index(table, "n LIKE '-%'", [0, 1, 2, 3, 4] if stored == "int" else [0])
        assert_by_index(table, "n < '1'", sorted(_below_one(stored)))


def _below_one(stored: str) -> list[int]:
    return [row for row, each in enumerate(NUMBERS[stored].to_pylist()) if str(each) < "1"]


def test_a_composite_key_without_one_of_its_columns_is_skipped(
    golden: Golden, tmp_path: Path
) -> None:
    put(golden, tmp_path, price=("float", "double"), n=("long", "long"), m=("int", "int"))
    table = open_table(tmp_path)
    in_key = [Column(name=name, options={"key": "composite"}) for name in ("n", "price")]
    table.create_index("key", in_key, using="btree")
    table.create_index("alone", ["m"], using="btree")
    (outcome,) = table.build(strategy="all").raise_for_failures().built
    assert list(outcome.skipped) == ["n", "price"]
    assert outcome.skipped["n"].startswith("Its key needs column price.")
    assert_by_index(table, "m = 7", [12])
    assert table.scan("n = 7", columns=["id"]).to_arrow().to_pylist() == [{"id": "8"}]
    assert table.build(strategy="all").due == ()


def test_an_index_of_the_promoted_column_alone_fails_by_name(
    golden: Golden, tmp_path: Path
) -> None:
    put(golden, tmp_path, price=("float", "double"))
    table = open_table(tmp_path)
    table.create_index("alone", ["price"])
    with pytest.raises(BuildFailed, match="holds column price as float, but the table's type is"):
        table.build(strategy="all").raise_for_failures()


def test_a_column_that_is_promoted_later_is_built_without(golden: Golden, tmp_path: Path) -> None:
    put(golden, tmp_path, price=("float", "float"), n=("long", "long"))
    table, build = built(tmp_path, "price", "n")
    assert not build.built[0].skipped
    assert_by_index(table, "price > 2.85", [29])
    commit_again(tmp_path, {"price": "double"})
    assert_by_index(table, "n = 7", [8])
    with pytest.raises(NeedsSpark, match="holds column price as float"):
        table.scan("price > 2.85", columns=["id"]).count()
    (outcome,) = table.refresh("some").raise_for_failures().built
    assert list(outcome.skipped) == ["price"]
    assert table.refresh("some").due == ()
    assert_by_index(table, "n = 7", [8])
