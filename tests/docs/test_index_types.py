"""docs/index_types.md: its figures were measured, and its statements on options hold."""

import json

from benchmarks.index_types import CONTESTANTS, FILE_COUNTS, PAGE, RESULTS, kinds, page_with, row
from hudi_index_service.index.factory import index_type
from tests.docs.markdown import code_blocks


def test_table_is_from_the_last_run() -> None:
    file = RESULTS / "types.json"
    results = json.loads(file.read_text()) if file.exists() else None
    assert page_with(results, PAGE.read_text()) == PAGE.read_text()


def test_table_contains_everything_measured() -> None:
    units = {"build": "seconds", "bytes": "bytes", **{kind.name: "ms" for kind in kinds()}}
    samples = {"lucene": [2_000_000.0, 4_000_000.0], "btree": [1_000_000.0, 2_000_000.0]}
    results = {
        "where": {"cores": 2, "machine": "x86_64"},
        "load": 0.1,
        "rows": 2_000_000,
        "files": list(FILE_COUNTS),
        "contestants": {name: {"title": each.title} for name, each in CONTESTANTS.items()},
        "results": [
            row(what, files, samples, unit) for what, unit in units.items() for files in FILE_COUNTS
        ],
    }

    page = page_with(results, PAGE.read_text())

    assert "2,000,000 rows, 2 cores, x86_64, load 0.1 before it began:" in page
    assert "| index, MB | 3.0 | - | 1.5 | - | 3.0 | - | 1.5 | - |" in page
    assert all(f"| {kind.title}, ms |" in page for kind in kinds())
    assert results["results"][0]["over_lucene"] == {"btree": 0.5}


def test_kinds_of_queries_match_their_names() -> None:
    """Each run has the same conditions, with the same literals."""
    assert kinds() == kinds()
    by_name = {kind.name: kind for kind in kinds()}
    assert by_name["in_100"].wheres[0].count("'User") == 100
    assert by_name["point_rows"].columns
    assert {each.index_type for each in CONTESTANTS.values()} == {"btree", "hbase", "lucene"}
    for each in CONTESTANTS.values():
        assert index_type(each.index_type).name == each.index_type


def test_described_length_of_the_plug_in() -> None:
    lines = (PAGE.parent.parent / "tests/index/plug_in/copied_columns.py").read_text().splitlines()
    assert 110 <= len(lines) <= 139
    assert any("lucene.analyzer" in block for block in code_blocks("docs/index_types.md", "python"))
