"""The examples of the README work on a real table."""

import doctest
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hudi_index_service import open_table
from hudi_index_service.hudi.properties import parse_properties
from tests.docs.markdown import ROOT, only_block
from tests.hudi_tables import hudi_options, read_rows
from tests.indexed import covered, indexed
from tests.programs import output_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

SHOWN_PATH = "/data/messages"
SCHEMA = "id string, msg string, sender string"
BIN = Path(sys.executable).parent


def run(command: str, table: Path) -> str:
    """Runs a shell command of the README on the test's table and returns its output."""
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
    }
    on_the_table = command.replace(SHOWN_PATH, shlex.quote(str(table)))
    return output_of(["bash", "-euo", "pipefail", "-c", on_the_table], environment)


def check_doctests(text: str, page: str, table: Path, *, at_least: int) -> None:
    """The examples of a page print what it shows, on the test's table."""
    shown = text.replace(SHOWN_PATH, str(table))
    example = doctest.DocTestParser().get_doctest(shown, {}, page, page, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    failed, tried = runner.run(example, out=report.append)
    assert (failed, tried >= at_least) == (0, True), "".join(report)


def test_first_example_gives_the_shown_output(messages: Path) -> None:
    block = only_block("README.md", "python", "open_table(")
    check_doctests(block, "README.md", messages, at_least=6)


def test_hook_example_builds_clustered_files(spark: "SparkSession", messages: Path) -> None:
    config = parse_properties((ROOT / "configs/hudi-write.properties").read_bytes())
    services = {key: value for key, value in config.items() if "callback" not in key}
    names = {
        "spark": spark,
        "df": spark.createDataFrame([("4", "Selling a car", "UserA")], SCHEMA),
        "my_options": hudi_options("messages", ordering_column=None, **services),
    }
    with open_table(messages) as table:
        table.create_index("by_sender", ["sender", "msg"])

        block = only_block("README.md", "python", "IndexHook").replace(SHOWN_PATH, str(messages))
        exec(compile(block, "README.md", "exec"), names)

        (status,) = table.status()
        assert (status.base_files, status.covered) == (1, 1)
        found = table.scan("sender = 'UserA'", columns=["id"], use_index="require").to_arrow()
    expected = read_rows(spark, messages).where("sender = 'UserA'").select("id").collect()
    assert sorted(found["id"].to_pylist()) == sorted(row.id for row in expected) == ["1", "2", "4"]


def test_sql_statements_run(
    spark: "SparkSession", messages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    block = only_block("README.md", "python", "IndexSession").replace(SHOWN_PATH, str(messages))

    exec(compile(block, "README.md", "exec"), {"spark": spark})

    assert "by_sender" in capsys.readouterr().out
    assert covered(messages) == 1


def test_command_line_examples_run(messages: Path) -> None:
    block = only_block("README.md", "sh", "hudi-index query")

    printed = {line.split()[1]: run(line, messages) for line in block.splitlines()}

    assert "1 due, 1 built, 0 failed" in printed["build"]
    assert "by_text" in printed["show"]
    assert "Buying a new car" in printed["query"]
    assert "Buying a new home" not in printed["query"]
    assert "rows returned" in printed["explain"]
    assert not list((messages / ".hoodie" / ".index").glob("lucene/**/manifest-*"))


def test_spark_submit_example_builds(messages: Path) -> None:
    with open_table(messages) as table:
        table.create_index("by_sender", ["sender"])
    block = only_block("README.md", "sh", "spark-submit")

    command = block.replace("--strategy incremental", "--strategy all")
    assert command != block
    run(command, messages)

    assert covered(messages) == 1


def test_all_changes_are_in_the_index_folder(messages: Path) -> None:
    before = _files(messages)
    indexed(messages, ["sender"]).close()

    added = {path: content for path, content in _files(messages).items() if path not in before}
    changed = [path for path, content in before.items() if _files(messages)[path] != content]

    assert added
    assert all(path.startswith(".hoodie/.index/") for path in added)
    assert changed == []


def _files(table: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(table)): path.read_bytes()
        for path in table.rglob("*")
        if path.is_file()
    }
