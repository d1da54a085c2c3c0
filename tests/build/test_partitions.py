"""INCREMENTAL and ALL on tables with several partition columns, one and none, with and without hive
style, with spaces and slashes in the values."""

from dataclasses import dataclass

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.build.outcomes import Build
from tests.golden.recipes.services import OF_REGIONS
from tests.golden.table import Golden, GoldenTable
from tests.indexed import OwnTable


@dataclass(frozen=True)
class Kind:
    """A kind of table: the name of the golden table, and the paths of its partitions."""

    name: str
    paths: tuple[str, ...]


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "regions_clustered_hive_style",
            tuple(
                f"region={region}/dt=2026-01-0{day}"
                for region in ("50%25 off", "New York", "a%2Fb")
                for day in (1, 2)
            ),
        ),
        Kind("regions_compacted", ("50%25 off", "New York", "a%2Fb")),
        Kind("regions_clustered", ("",)),
    )
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def table(kind: Kind, own_table: OwnTable) -> IndexedTable:
    """Written before the index ``early`` was defined; then clustered or, after an upsert of ids
    below 6, compacted."""
    early = {"name": "early", "defined": "written", "build": False}
    return own_table(kind.name, ["amount", "region"], **early)


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
    table: IndexedTable, kind: Kind, golden: Golden
) -> None:
    build = table.build()

    assert partitions(build) == list(kind.paths)
    assert not build.failed
    assert table.build(strategy="all").due == ()
    (status,) = table.status()
    assert [each.partition for each in status.partitions] == list(kind.paths)
    assert status.coverage == 1
    assert_answers_by_index(table, golden(kind.name))


def test_all_can_build_partition_by_partition(
    table: IndexedTable, kind: Kind, golden: Golden
) -> None:
    table.drop_index("early")
    table.create_index("late", ["amount", "region"])
    assert table.build().due == (), "no table service has written since"

    for path in kind.paths:
        assert partitions(table.build(strategy="all", partitions=[path])) == [path]
    assert table.build(strategy="all").due == ()
    assert_answers_by_index(table, golden(kind.name))


@pytest.mark.parametrize("kind", [KINDS["regions_clustered_hive_style"]])
def test_partitions_are_selected_by_pattern(table: IndexedTable) -> None:
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
