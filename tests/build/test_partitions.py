"""INCREMENTAL and ALL on tables with several partition columns, one and none, plain and in hive
style, with spaces and slashes in the values."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build.run import Build
from hudi_index_service.config import Settings
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    read_rows,
    run_clustering,
    run_compaction,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
REGIONS = ("New York", "a/b", "50% off")


@dataclass(frozen=True)
class Kind:
    """A kind of table: what is partitioned how, and the partitions' paths that come of it."""

    name: str
    table_type: str
    columns: str | None
    options: dict[str, str]
    paths: tuple[str, ...]


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "hive_style_cow",
            "COPY_ON_WRITE",
            "region,dt",
            {**ENCODED, **HIVE_STYLE},
            tuple(
                f"region={region}/dt=2026-01-0{day}"
                for region in ("50%25 off", "New York", "a%2Fb")
                for day in (1, 2)
            ),
        ),
        Kind(
            "encoded_mor",
            "MERGE_ON_READ",
            "region",
            ENCODED,
            ("50%25 off", "New York", "a%2Fb"),
        ),
        Kind("plain_cow", "COPY_ON_WRITE", None, {}, ("",)),
    )
}


@pytest.fixture(scope="module")
def written(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of each kind: written before the index ``early`` was defined, its second half (`id`
    from 30) after; then clustered or, after an upsert of ids below 6, compacted."""
    folder = tmp_path_factory.mktemp("partitions")
    for kind in KINDS.values():
        path = folder / kind.name
        options = hudi_options(
            kind.name,
            kind.table_type,
            partition_column=kind.columns,
            **{**kind.options, **NO_METADATA_TABLE},
        )
        rows = numbered_rows(spark, 0, 60).withColumn("region", region()).coalesce(1)
        write(rows, path, options, "bulk_insert", mode="overwrite")
        open_table(path).create_index("early", ["amount", "region"])
        if kind.table_type == "COPY_ON_WRITE":
            run_clustering(spark, path)
        else:
            changed = numbered_rows(spark, 0, 6, version=1).withColumn("region", region())
            write(changed, path, options)
            run_compaction(spark, path)
    return folder


def region() -> "F.Column":
    values = F.array(*map(F.lit, REGIONS))
    return values[F.col("id").cast("int") % len(REGIONS)]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def table(kind: Kind, written: Path, tmp_path: Path) -> IndexedTable:
    path = shutil.copytree(written / kind.name, tmp_path / kind.name)
    return open_table(path, settings=Settings(cache_folder=tmp_path / "cache"))


def partitions(build: Build) -> list[str]:
    return sorted({entry.base_file.partition for entry in build.due})


def assert_answers_by_index(table: IndexedTable, spark: "SparkSession") -> None:
    """Every predicate is answered by the index alone as Spark answers it."""
    for where in (
        "amount between 30 and 60",
        "region = 'a/b'",
        "region = '50% off' and amount < 90",
    ):
        columns = ["id", "amount", "region"]
        expected = read_rows(spark, table.uri).where(where).select(*columns).collect()
        assert expected
        found = table.scan(where, columns=columns, use_index="require").to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in found) == sorted(map(tuple, expected))


def test_incremental_builds_every_partition_that_a_service_wrote(
    table: IndexedTable, kind: Kind, spark: "SparkSession"
) -> None:
    build = table.build()

    assert partitions(build) == list(kind.paths)
    assert not build.failed
    assert table.build(strategy="all").due == ()
    (status,) = table.status()
    assert [each.partition for each in status.partitions] == list(kind.paths)
    assert status.coverage == 1
    assert_answers_by_index(table, spark)


def test_all_builds_partition_by_partition_and_nothing_twice(
    table: IndexedTable, kind: Kind, spark: "SparkSession"
) -> None:
    table.drop_index("early")
    table.create_index("late", ["amount", "region"])
    assert table.build().due == (), "no service has written since"

    for path in kind.paths:
        assert partitions(table.build(strategy="all", partitions=[path])) == [path]
    assert table.build(strategy="all").due == ()
    assert_answers_by_index(table, spark)


@pytest.mark.parametrize("kind", [KINDS["hive_style_cow"]], ids=["hive_style_cow"])
def test_partitions_by_pattern(table: IndexedTable) -> None:
    def due(*patterns: str) -> list[str]:
        return partitions(table.build(strategy="all", partitions=patterns, dry_run=True))

    assert due("region=a/b/dt=2026-01-01") == ["region=a%2Fb/dt=2026-01-01"]
    assert due("region=New York") == [
        "region=New York/dt=2026-01-01",
        "region=New York/dt=2026-01-02",
    ]
    assert due("*/dt=*-02") == [
        "region=50%25 off/dt=2026-01-02",
        "region=New York/dt=2026-01-02",
        "region=a%2Fb/dt=2026-01-02",
    ]
