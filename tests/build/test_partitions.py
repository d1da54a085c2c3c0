"""INCREMENTAL and ALL on tables with several partition columns, one and none, with and without hive
style, with spaces and slashes in the values."""

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.build.outcomes import Build
from tests.golden.recipes.services import OF_REGIONS
from tests.golden.table import Golden, GoldenTable
from tests.indexed import OwnTable

KINDS = {
    "regions_clustered_hive_style": [
        f"region={region}/dt=2026-01-0{day}"
        for region in ("50%25 off", "New York", "a%2Fb")
        for day in (1, 2)
    ],
    "regions_compacted": ["50%25 off", "New York", "a%2Fb"],
    "regions_clustered": [""],
}
"""The paths of the partitions of golden tables."""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(kind: str, own_table: OwnTable) -> IndexedTable:
    """Written before the index ``early`` was defined; then clustered or, after an upsert of ids
    below 6, compacted."""
    early = {"name": "early", "defined": "written", "build": False}
    return own_table(kind, ["amount", "region"], **early)


def partitions(build: Build) -> list[str]:
    return sorted({entry.base_file.partition for entry in build.due})


def assert_answers_by_index(table: IndexedTable, golden: GoldenTable) -> None:
    """The index alone answers every predicate as Spark does."""
    columns = ["id", "amount", "region"]
    for where in OF_REGIONS:
        expected = golden.answer(where).select(columns).to_pylist()
        assert expected
        found = table.scan(where, columns=columns, use_index="require").to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in found) == sorted(
            tuple(row.values()) for row in expected
        )


def test_incremental_builds_every_partition_that_a_table_service_wrote(
    table: IndexedTable, kind: str, golden: Golden
) -> None:
    build = table.build()

    assert partitions(build) == KINDS[kind]
    assert not build.failed
    assert table.build(strategy="all").due == ()
    (status,) = table.status()
    assert [each.partition for each in status.partitions] == KINDS[kind]
    assert status.coverage == 1
    assert_answers_by_index(table, golden(kind))


def test_all_can_build_partition_by_partition(
    table: IndexedTable, kind: str, golden: Golden
) -> None:
    table.drop_index("early")
    table.create_index("late", ["amount", "region"])
    assert table.build().due == (), "no table service has written since"

    for path in KINDS[kind]:
        assert partitions(table.build(strategy="all", partitions=[path])) == [path]
    assert table.build(strategy="all").due == ()
    assert_answers_by_index(table, golden(kind))
