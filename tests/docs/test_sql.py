"""docs/sql.md lists the columns of each statement's result."""

import re

import pytest

from hudi_index_service.sql import build_statements, explain, index_statements
from tests.docs.markdown import ROOT


def listed_columns() -> list[dict[str, str]]:
    """Column → type, for each table of columns on the page."""
    page = (ROOT / "docs" / "sql.md").read_text()
    tables = page.split("| column | type | |\n| --- | --- | --- |\n")[1:]
    return [
        dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table.split("\n\n")[0], re.MULTILINE))
        for table in tables
    ]


def columns(ddl: str) -> dict[str, str]:
    """Column → the first word of its type, for a schema in Spark's DDL."""
    flat = ddl
    while "<" in flat:
        flat = re.sub(r"<[^<>]*>", "", flat)
    return dict(re.findall(r"(\w+) (\w+)(?: NOT NULL)?(?:,|$)", " ".join(flat.split())))


@pytest.mark.parametrize(
    ("number", "schema"),
    list(
        enumerate(
            [
                *(index_statements.DROPPED, index_statements.INDEXES),
                *(build_statements.ENTRIES, build_statements.INDEXING),
                *(build_statements.BUILD, build_statements.CANCELLED, explain.EXPLAINED),
            ]
        )
    ),
)
def test_columns_of_results(number: int, schema: str) -> None:
    page, real = listed_columns()[number], columns(schema)
    assert list(page) == list(real)
    assert [kind.split()[0] for kind in page.values()] == [kind.lower() for kind in real.values()]
