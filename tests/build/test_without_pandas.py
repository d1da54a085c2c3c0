"""Builds and queries work without pandas: two threads that import it at once can fail."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.table import Golden

NAMES = ["name", "price", "ratio", "amount", "small", "flag", "born", "seen", "cost", "huge", "raw"]

WORK = """
import sys
from hudi_index_service import Column, open_table

path, *names = sys.argv[1:]
key = [Column(name=each, options={"key": "composite"}) for each in ("name", "small", "huge")]
text = Column(name="msg", options={"analyzer": "english", "ranked": "true"})
with open_table(path) as table:
    table.create_index("values", [*names, "tags", "codes"], include=["id"], using="btree")
    table.create_index("pairs", key, using="btree")
    table.create_index("words", [text, *names, "tags", "codes"])
    print(table.build(strategy="all").raise_for_failures().state, "pandas" in sys.modules)
    print(table.verify().unrepaired, "pandas" in sys.modules)
    for where in ("name = 'ada' AND small = 1", "raw IS NULL", "NOT cost > 3.5"):
        table.scan(where).to_arrow(), table.scan(where).count()
    print("queried", "pandas" in sys.modules)
    print(len(table.search("msg", "car")) > 0, "pandas" in sys.modules)
"""


@pytest.mark.parametrize("name", ["awkward_clustered", "awkward_with_logs"])
def test_building_verifying_and_querying_import_no_pandas(
    golden: Golden, tmp_path: Path, name: str
) -> None:
    path = golden(name).put(tmp_path / "table")
    command = [sys.executable, "-c", WORK, str(path), *NAMES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert lines == ["finished False", "() False", "queried False", "True False"], done.stderr
