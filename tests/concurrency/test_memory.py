"""A process that keeps looking up keys does not grow in memory."""

import json
import shutil
from pathlib import Path

import pytest

from tests.index.golden import make
from tests.indexed import GoldenIndex
from tests.programs import lines_of

pytestmark = pytest.mark.slow

HEAP_MB = 64
MOST_SECONDS = 1500  # it takes less than a minute of CPU time
MOST_KB = 24 * 2**10  # when threads stayed attached to the JVM, 100,000 look-ups took 97 MB


def run(what: str, folder: Path) -> dict[str, int]:
    """The output of `many_lookups`."""
    heap = {"HUDI_INDEX_LUCENE__HEAP_MB": str(HEAP_MB)}
    module = "tests.concurrency.many_lookups"
    *_, printed = lines_of(module, what, folder, module=True, timeout=MOST_SECONDS, **heap)
    result: dict[str, int] = json.loads(printed)
    return result


@pytest.mark.timeout(MOST_SECONDS)
def test_memory_is_stable_over_lookups_in_threads_that_end(tmp_path: Path) -> None:
    result = run("lookups", Path(shutil.copytree(make.FOLDER, tmp_path / "table")))
    assert result["java_threads"] == 1
    assert result["grown_kb"] < MOST_KB


@pytest.mark.timeout(MOST_SECONDS)
def test_memory_is_stable_over_thousands_of_queries(golden_index: GoldenIndex) -> None:
    result = run("queries", golden_index("four_base_files", ["id", "amount"]))
    assert result["java_threads"] == 1
    assert result["grown_kb"] < MOST_KB
