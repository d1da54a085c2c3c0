"""The examples of docs/reading.md work on a real table."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from hudi_index_service import open_table
from tests.docs.markdown import code_blocks
from tests.docs.test_readme import check_doctests, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = "docs/reading.md"


def test_examples_give_the_shown_output(messages: Path) -> None:
    blocks = [block for block in code_blocks(PAGE, "python") if block.startswith(">>>")]
    check_doctests("\n".join(blocks), PAGE, messages, at_least=9)


def test_examples_with_data_frames(spark: "SparkSession", messages: Path) -> None:
    blocks = [block for block in code_blocks(PAGE, "python") if not block.startswith(">>>")]
    names = {
        "spark": spark,
        "table": open_table(messages),
        "other": spark.createDataFrame([("1",), ("2",)], "id string"),
    }

    exec(compile("\n".join(blocks), PAGE, "exec"), names)

    assert sorted(row.id for row in names["frame"].collect()) == ["1", "2"]
    found = {row.record_key: row.row_id for row in names["located"].collect()}
    assert found == {"2": 1, "nobody": None}


def test_commands_run(messages: Path) -> None:
    (block,) = code_blocks(PAGE, "sh")

    printed = {line.split()[1]: run(line, messages) for line in block.splitlines()}

    first, second = map(json.loads, printed["search"].splitlines())
    assert (first["id"], second["id"]) == ("2", "3")
    assert first["_score"] > second["_score"] > 0
