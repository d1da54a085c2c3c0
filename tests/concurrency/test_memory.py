"""A process that keeps looking up keys does not grow in memory."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_index_service import open_table
from tests.docs.markdown import ROOT
from tests.index.golden import make

pytestmark = pytest.mark.slow

HEAP_MB = 64
MOST_SECONDS = 1500  # it takes less than a minute of CPU time
MOST_KB = 24 * 2**10  # when threads stayed attached to the JVM, 100,000 look-ups took 97 MB


def run(what: str, folder: Path) -> dict[str, int]:
    """The output of `many_lookups`."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.concurrency.many_lookups", what, str(folder)],
        cwd=ROOT,
        env={**os.environ, "HUDI_INDEX_LUCENE__HEAP_MB": str(HEAP_MB)},
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.timeout(MOST_SECONDS)
def test_memory_is_stable_over_lookups_in_threads_that_end(tmp_path: Path) -> None:
    result = run("lookups", Path(shutil.copytree(make.FOLDER, tmp_path / "table")))
    assert result["java_threads"] == 1
    assert result["grown_kb"] < MOST_KB


@pytest.mark.timeout(MOST_SECONDS)
def test_memory_is_stable_over_thousands_of_queries(path: Path) -> None:
    table = open_table(path)
    table.create_index("keys", ["id", "amount"])
    assert len(table.build(strategy="all").raise_for_failures().built) == 4
    result = run("queries", path)
    assert result["java_threads"] == 1
    assert result["grown_kb"] < MOST_KB
