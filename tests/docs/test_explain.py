"""docs/explain.md: its tables list the fields of the JSON, and its commands run. And docs/sql.md
lists the columns of each statement's result."""

import json
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from hudi_index_service.read import explanation
from hudi_index_service.sql import build_statements, explain, index_statements
from tests.docs.markdown import ROOT, code_blocks, field_tables
from tests.docs.test_format import in_words
from tests.docs.test_readme import run
from tests.indexed import indexed

PAGE = "docs/explain.md"
TABLES = {table.label: table.fields for table in field_tables(PAGE)}
MODELS: dict[str, type[BaseModel]] = {
    "": explanation.Explanation,
    "files": explanation.ExplainedFiles,
    "groups[]": explanation.ExplainedGroup,
    "groups[].actual": explanation.ExplainedGroupRun,
    "expected": explanation.ExplainedCost,
    "expected.rows": explanation.ExplainedRows,
    "slices[]": explanation.ExplainedSlice,
    "slices[].actual": explanation.ExplainedReading,
    "actual": explanation.ExplainedRun,
    "actual.notes[]": explanation.ExplainedNote,
}


@pytest.mark.parametrize("label", MODELS)
def test_tables_list_the_fields_of_the_json(label: str) -> None:
    properties = MODELS[label].model_json_schema()["properties"]

    # Fields that may be null in the model are absent in the JSON.
    assert TABLES[label] == {
        name: in_words(schema).removesuffix(" or null") for name, schema in properties.items()
    }


def test_all_tables_are_compared() -> None:
    assert set(TABLES) == set(MODELS)


def test_described_version_is_current() -> None:
    assert f"of this schema: {explanation.EXPLANATION_VERSION}" in Path(PAGE).read_text()


def test_commands_run(messages: Path) -> None:
    indexed(messages, ["sender"]).close()
    # The last form of each command, in the order of the page.
    lines = {
        line.split(" /")[0]: line
        for block in code_blocks(PAGE, "sh")
        for line in block.splitlines()
    }
    printed = {command: run(line, messages) for command, line in lines.items()}

    explained_query = json.loads(printed["hudi-index explain"])
    assert explained_query["version"] == explanation.EXPLANATION_VERSION
    assert explained_query["actual"]["rows_returned"] == 2
    assert "sender = ?" in printed["hudi-index history"]
    assert printed["hudi-index forget"] == "1 shape of queries forgotten.\n"
    assert json.loads(printed["hudi-index advise"])["queries"] == 0


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
