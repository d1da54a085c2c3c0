"""Builds and queries work without pandas: two threads that import it at once can fail."""

from pathlib import Path

from tests.golden.table import Golden
from tests.programs import lines_of

NAMES = ["name", "price", "ratio", "amount", "small", "flag", "born", "seen", "cost", "huge", "raw"]

WORK = """
import sys
from hudi_index_service import Column, open_table

paths, names = sys.argv[1:3], sys.argv[3:]
key = [Column(name=each, options={"key": "composite"}) for each in ("name", "small", "huge")]
text = Column(name="msg", options={"analyzer": "english", "ranked": "true"})
for table in map(open_table, paths):
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


def test_building_verifying_and_querying_import_no_pandas(golden: Golden, tmp_path: Path) -> None:
    tables = ("awkward_clustered", "awkward_with_logs")
    paths = [str(golden(name).put(tmp_path / name)) for name in tables]
    lines = lines_of(WORK, *paths, *NAMES)
    assert lines == ["finished False", "() False", "queried False", "True False"] * 2
