"""A process that looks up keys for as long as it lives takes no more memory for it."""

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

HEAP_MB = 64
MOST_SECONDS = 1500  # it takes less than one of a processor's minutes
MOST_KB = 24 * 2**10  # as long as threads stayed in the JVM, 100,000 look-ups took 97 MB


def run(what: str, folder: Path) -> dict[str, int]:
    """What `many_lookups` tells."""
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
    told: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.timeout(MOST_SECONDS)
def test_a_hundred_thousand_lookups_in_threads_that_end(tmp_path: Path) -> None:
    told = run("lookups", Path(shutil.copytree(make.FOLDER, tmp_path / "table")))
    assert told["java_threads"] == 1
    assert told["grown_kb"] < MOST_KB


@pytest.mark.timeout(MOST_SECONDS)
def test_thousands_of_queries(path: Path) -> None:
    table = open_table(path)
    table.create_index("keys", ["id", "amount"])
    assert len(table.build(strategy="all").raise_for_failures().built) == 4
    told = run("queries", path)
    assert told["java_threads"] == 1
    assert told["grown_kb"] < MOST_KB
