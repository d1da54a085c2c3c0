"""Every block of code is at least well formed: shell, Python, JSON, YAML, and the arguments of this
package's commands. Those for a cluster cannot run here: they are checked as far as possible."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
import yaml

from hudi_index_service.cli import app
from hudi_index_service.submit.spark import argument_parser
from tests.docs.markdown import PAGES, ROOT, code_blocks

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
CLUSTER = "docs/guides/cluster.md"

pages = pytest.mark.parametrize("page", [page.relative_to(ROOT).as_posix() for page in PAGES])


def command_lines(page: str) -> Iterator[list[str]]:
    """The words of each command in the shell blocks of a page."""
    for block in code_blocks(page, "sh"):
        joined = block.replace("\\\n", " ")
        for line in joined.splitlines():
            words = shlex.split(re.sub(r" (#|> ).*", "", line))  # without comment and redirection
            if words:
                yield words


def parse(words: list[str]) -> None:
    """Parses a command line of `hudi-index`, without running it; refuses what it does not know."""
    command = COMMANDS[words[0]]
    command.make_context(words[0], words[1:])


@pages
def test_shell_blocks_are_shell(page: str) -> None:
    for block in code_blocks(page, "sh"):
        subprocess.run(["bash", "-n", "-c", block], check=True)


@pages
def test_command_lines_have_known_arguments(page: str) -> None:
    for words in command_lines(page):
        if words[0] == "hudi-index":
            parse(words[1:])


@pages
def test_what_continues_a_list_is_indented_by_four(page: str) -> None:
    """With fewer, the docs site ends the list before it."""
    assert not re.findall(r"\n\n {1,3}[^ \n]", (ROOT / page).read_text())


@pages
def test_python_blocks_are_python(page: str) -> None:
    for block in code_blocks(page, "python"):
        if not block.startswith(">>>"):
            compile(block, page, "exec")


@pages
def test_documents_are_well_formed(page: str) -> None:
    for block in code_blocks(page, "json"):
        json.loads(block)
    for block in code_blocks(page, "yaml"):
        yaml.safe_load(block)


def test_no_block_of_another_language_is_left_unchecked() -> None:
    checked = {
        "sh",
        "python",
        "json",
        "yaml",
        "text",
        "console",
        "sql",
        "dockerfile",
        "json definition",
    }
    checked |= {"json manifest", "python reader", ""}  # tests/docs/test_format.py
    for page in PAGES:
        infos = re.findall(r"^ *```([a-z ]+)$", page.read_text(), re.MULTILINE)
        assert set(infos) <= checked, page


def test_applications_on_a_cluster_have_known_arguments() -> None:
    """What stands after the application of spark-submit."""
    submitted = [words for words in command_lines(CLUSTER) if words[0] == "spark-submit"]
    assert submitted
    for words in submitted:
        arguments = argument_parser().parse_args(words[words.index("--table") :])
        assert arguments.strategy == "all"
        assert arguments.table[0].startswith("s3://")


def test_options_of_spark_submit_exist() -> None:
    import pyspark

    home = Path(pyspark.__file__).parent
    told = subprocess.run(
        [home / "bin" / "spark-submit", "--help"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SPARK_HOME": str(home)},
    )
    known = set(re.findall(r"^ +(--[a-z-]+)", told.stdout + told.stderr, re.MULTILINE))
    own = set(re.findall(r"--[a-z-]+", argument_parser().format_help()))

    assert {"--archives", "--conf", "--deploy-mode"} <= known
    for words in command_lines(CLUSTER):
        if words[0] == "spark-submit":
            assert {word for word in words if word.startswith("--")} <= known | own
