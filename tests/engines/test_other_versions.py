"""The oldest Polars and DuckDB that are supported: the tests of this folder once more, with these
in front of those that are installed."""

import hashlib
import re
import sys
from pathlib import Path

import pytest

from dev.environment import Environment
from dev.paths import CONSTRAINTS
from dev.steps import Steps
from tests.kept_tables import kept
from tests.programs import ended

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PINS = CONSTRAINTS / "engines.txt"
TESTS = {
    "duckdb": ("test_dataset.py", "test_meaning_in_duckdb.py"),
    "polars": ("test_polars_source.py", "test_meaning_in_polars.py"),
}


@pytest.fixture(scope="module")
def older(tmp_path_factory) -> Path:
    """The folder with the older engines, kept in the user's cache."""

    def install(folder: Path) -> None:
        log = tmp_path_factory.mktemp("log")
        Environment(Path(sys.prefix), Steps(log)).install_beside(PINS, folder, log="engines")

    return kept("engines", hashlib.sha256(PINS.read_bytes()).hexdigest(), install)


@pytest.mark.parametrize("name", TESTS)
def test_an_older_engine_gives_the_same_answers(name, older, tmp_path):
    pins = dict(line.split("==") for line in PINS.read_text().split())
    found = ended(f"import {name}; print({name}.__version__)", PYTHONPATH=str(older))
    assert found.stdout.strip() == pins[name], found.stderr
    files = [f"tests/engines/{each}" for each in TESTS[name]]
    done = ended(
        "pytest",
        *("-n", 0, "-q", "-m", "", "--basetemp", tmp_path / "own", *files),
        module=True,
        timeout=1700,
        PYTHONPATH=str(older),
    )
    assert done.returncode == 0, done.stdout[-5_000:]
    assert re.search(r"\d+ passed", done.stdout)
