"""The tutorial works as it stands, from the first block to the last."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.markdown import ROOT
from tests.docs.test_readme import SHOWN_PATH, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "tutorial.md"


@pytest.mark.usefixtures("reads_by_index")
def test_blocks_run_in_order(
    spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "messages"
    names: dict[str, object] = {}
    printed: dict[str, str] = {}
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 7

    for language, block in blocks:
        if language == "python":
            code = block.replace(SHOWN_PATH, str(table))
            exec(compile(code, PAGE.name, "exec"), names)  # the builder finds the tests' session
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
