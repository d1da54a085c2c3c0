"""Queries in many threads while the index and the table change under them."""

from collections import Counter
from itertools import count
from pathlib import Path

from hudi_index_service import open_table
from hudi_index_service.config import Settings
from tests.concurrency.conftest import ROWS, meanwhile

EXPECTED = {
    "amount = 300": 1,
    "amount BETWEEN 300 AND 599": 100,
    "msg = 'Buying car 3'": sum(i % 7 == 3 for i in range(ROWS)),
    "msg LIKE 'Buying%' AND amount < 30": 10,
    "NOT (amount >= 30 OR msg = 'Buying car 3')": 9,
    "dt = '2026-01-01' AND amount IS NOT NULL": ROWS // 2,
    "amount IS NULL": 0,
}


def test_eight_threads_query_one_table_while_it_is_built_dropped_and_cleaned(
    path: Path, tmp_path: Path
) -> None:
    settings = Settings(cache_folder=tmp_path / "cache", clean={"grace_seconds": 0})
    table = open_table(path, settings=settings)
    turns = count()
    used: Counter[bool] = Counter()

    def query() -> None:
        where, expected = list(EXPECTED.items())[next(turns) % len(EXPECTED)]
        scan = table.scan(where, columns=["id"])
        assert scan.count() == expected, where
        assert len(set(scan.to_arrow()["id"].to_pylist())) == expected, where
        used[scan.explain().uses_index] += 1

    with meanwhile(query, threads=8) as wait_for_all_threads:
        for columns in (["amount"], ["amount", "msg"], ["msg"]):
            table.create_index("by", columns)
            assert len(table.build(strategy="all").raise_for_failures().built) == 4
            wait_for_all_threads()
            table.clean()
            table.drop_index("by", purge=True)
            wait_for_all_threads()

    assert used[True] >= 8
    assert used[False] >= 8
    assert list((path / ".hoodie/.index").rglob("*.pack")) == []
