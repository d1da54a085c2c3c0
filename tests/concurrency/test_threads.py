"""Queries in many threads while the index and the table change under them."""

from collections import Counter
from itertools import count
from pathlib import Path

from pyspark.sql import SparkSession

from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.errors import SnapshotChanged
from tests.concurrency.conftest import ROWS, meanwhile
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    run_clustering,
    write,
)
from tests.indexed import indexed

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


def test_queries_see_one_snapshot_while_hudi_rewrites_clusters_and_cleans(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    at_once = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
    options = hudi_options("moving", **at_once, **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 200).coalesce(1), path, options, "bulk_insert")
    table = indexed(path, ["amount"], settings=Settings(cache_folder=tmp_path / "cache"))
    seen: Counter[int | str] = Counter()

    def query() -> None:
        try:
            rows = table.scan("amount >= 0", columns=["ts", "amount"]).to_arrow()
        except SnapshotChanged:
            seen["changed"] += 1
            return
        (version,) = set(rows["ts"].to_pylist())
        assert sorted(rows["amount"].to_pylist()) == [3 * i + version for i in range(200)]
        seen[version] += 1

    with meanwhile(query, threads=3) as wait_for_all_threads:
        for version in (1, 2):
            write(numbered_rows(spark, 0, 200, version), path, options)
            run_clustering(spark, path)
            table.build(strategy="all").raise_for_failures()
            table.clean()
            wait_for_all_threads()

    assert seen[1] >= 1
    assert seen[2] >= 3
    assert len(list(path.glob("*.parquet"))) < 5, "Hudi's cleaner has removed files"
    assert table.verify().problems == ()
