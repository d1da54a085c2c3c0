"""The examples of pages that have no test of their own run as they stand on a real table, and the
tutorial from the first block to the last."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hudi_index_service import open_table
from tests.docs.markdown import ROOT, code_blocks, only_block
from tests.docs.test_readme import SHOWN_PATH, run
from tests.golden.table import Golden
from tests.indexed import indexed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


def outputs(block: str, table: Path) -> list[str]:
    """What each command of a block prints."""
    return [run(line, table) for line in block.replace("\\\n", " ").splitlines()]


def test_columns_are_proposed_and_chosen(golden: Golden, tmp_path: Path) -> None:
    path = golden("version_9").put(tmp_path / "messages")
    (block,) = code_blocks("docs/guides/choose_columns.md", "sh")
    proposed, _ = outputs(block, path)
    assert "amount" in proposed
    with open_table(path) as table:
        indexes = table.status()
    columns = {column.name for each in indexes for column in each.definition.columns}
    assert "msg" in columns
    assert "amount" not in columns
    assert all(each.covered == each.base_files > 0 for each in indexes)


def test_builds_are_sized_and_limited(golden: Golden, tmp_path: Path) -> None:
    path = golden("regions_clustered_hive_style").put(tmp_path / "messages")
    with open_table(path) as table:
        table.create_index("by_msg", ["msg"])
    (block,) = code_blocks("docs/guides/sizing.md", "sh")
    assert "region=eu" in block
    sized, some, _ = outputs(block.replace("region=eu", "region=New York"), path)
    assert "due" in sized
    assert "0 failed" in some
    with open_table(path) as table:
        (status,) = table.status()
    assert status.covered == status.base_files > 0


def test_operating_a_table(messages: Path) -> None:
    indexed(messages, ["sender"]).close()
    blocks = code_blocks("docs/operating.md", "sh")
    printed = [text for block in blocks for text in outputs(block, messages)]
    assert len(printed) == 7
    with open_table(messages) as table:
        assert table.verify().problems == ()
        assert table.scan("sender = 'UserA'", use_index="require").count() == 2


def test_statements_of_the_command_line(messages: Path) -> None:
    with open_table(messages) as table:
        table.create_index("by_sender", ["sender"])
    (block,) = code_blocks("docs/sql.md", "console")
    listed, explained = outputs(block, messages)
    assert "by_sender" in listed
    assert "UserA" in explained


@pytest.mark.usefixtures("reads_by_index")
def test_a_session_is_enabled(spark: "SparkSession", messages: Path) -> None:
    indexed(messages, ["sender"]).close()
    names: dict[str, Any] = {"spark": spark}
    exec(only_block("docs/guides/spark.md", "python", "enable(spark)"), names)
    spark.read.format("hudi").load(str(messages)).where("sender = 'UserB'").collect()
    (use,) = names["last_queries"](spark)[-1]
    assert use.table.endswith(str(messages))


@pytest.mark.usefixtures("reads_by_index")
def test_blocks_run_in_order(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, table = "docs/tutorial.md", tmp_path / "messages"
    names: dict[str, object] = {}
    printed: dict[str, str] = {}
    text = (ROOT / page).read_text()
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 7

    for language, block in blocks:
        if language == "python":
            code = block.replace(SHOWN_PATH, str(table))
            exec(compile(code, page, "exec"), names)  # the builder finds the tests' session
            continue
        for line in block.splitlines():
            printed[line] = run(line, table)

    assert names["spark"] is spark
    commands = list(printed)
    assert [line.split()[1] for line in commands] == [
        *("init", "create", "build", "build", "status", "query", "explain", "drop")
    ]
    assert "sender" in printed[commands[0]]
    assert "Would build" in printed[commands[2]]
    assert "built" in printed[commands[3]]
    assert "User1234" in printed[commands[5]]
    assert "by index" in printed[commands[6]]
    out = capsys.readouterr().out
    assert "by index: lucene entry" in out
    assert "by_index=True" in out
