"""Queries whose columns are all stored beside the index read no base file, and give Spark's answers."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service import Column, IndexedTable, open_table
from tests.golden.predicates import PREDICATES
from tests.read.conftest import COLUMNS, Indexed
from tests.same_rows import assert_same_rows

INDEX_TYPES = ["lucene", "btree"]


def columns_for(using: str) -> list[str | Column]:
    return [
        each if isinstance(each, str) or using == "lucene" else each.name for each in COLUMNS
    ]


def stored_copy(path: Path, target: Path, using: str = "lucene") -> IndexedTable:
    """A copy of the table, whose only index stores the values of every column."""
    shutil.copytree(path, target)
    table = open_table(target)
    table.drop_index("all_columns", purge=True)
    columns = columns_for(using)
    indexed = {each if isinstance(each, str) else each.name for each in columns}
    others = [
        each.name
        for each in table.schema()
        if each.name not in indexed and not pa.types.is_struct(each.type)
    ]
    table.create_index("all_stored", columns, include=others, using=using)
    table.build(strategy="all").raise_for_failures()
    return table


def erase_pages(path: Path) -> int:
    """Overwrites all pages of the base files, whose footers and lengths stay; returns how many."""
    files = [each for each in path.rglob("*.parquet") if ".hoodie" not in each.parts]
    for each in files:
        length = each.stat().st_size
        footer = pq.read_metadata(each).serialized_size + 8
        with each.open("r+b") as file:
            file.seek(4)
            file.write(b"\xff" * (length - footer - 4))
    return len(files)


@pytest.fixture(scope="module", params=INDEX_TYPES)
def erased(
    request: pytest.FixtureRequest,
    clustered: Callable[[bool], Indexed],
    tmp_path_factory: pytest.TempPathFactory,
) -> IndexedTable:
    """A table whose base files can no longer be read."""
    target = tmp_path_factory.mktemp("stored") / "table"
    table = stored_copy(clustered(True).path, target, request.param)
    assert erase_pages(target)
    return table


@pytest.mark.parametrize(
    "where",
    [
        "name = 'plain'",
        "price = CAST('NaN' AS DOUBLE)",
        "amount BETWEEN 30 AND 300",
        "msg LIKE 'Buying a new car 1%'",
    ],
)
def test_no_base_file_is_read(
    erased: IndexedTable, clustered: Callable[[bool], Indexed], where: str
) -> None:
    columns = [each.name for each in erased.schema() if not pa.types.is_struct(each.type)]
    found = erased.scan(where, columns=columns, use_index="require").to_arrow()
    assert_same_rows(found, clustered(True).answer(where).select(columns))


@pytest.mark.parametrize("using", INDEX_TYPES)
@pytest.mark.parametrize("kind", ["clustered", "half covered", "with logs"])
def test_every_predicate_gives_sparks_answer(
    using: str,
    kind: str,
    clustered: Callable[[bool], Indexed],
    half_covered: Indexed,
    with_logs: Callable[[bool], Indexed],
    tmp_path: Path,
) -> None:
    tables = {
        "clustered": lambda: clustered(False),
        "half covered": lambda: half_covered,
        "with logs": lambda: with_logs(True),
    }
    indexed = tables[kind]()
    with stored_copy(indexed.path, tmp_path / "table", using) as table:
        columns = [each.name for each in table.schema() if not pa.types.is_struct(each.type)]
        for where in PREDICATES:
            found = table.scan(where, columns=columns).to_arrow()
            assert_same_rows(found, indexed.answer(where).select(columns))
