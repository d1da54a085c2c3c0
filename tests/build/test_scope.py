"""Which partitions a build is limited to."""

import pytest

from hudi_index_service.build.scope import partitions_in_scope
from hudi_index_service.errors import ConfigInvalid

HIVE = ["region=eu/dt=2026-01-01", "region=eu/dt=2026-02-01", "region=us/dt=2026-01-01"]
ENCODED = ["New%20York", "a%2Fb", "Rome"]
ODD = ["[x]", "x", "*"]


@pytest.mark.parametrize(
    ("known", "requested", "found"),
    [
        (HIVE, ["region=eu/dt=2026-01-01"], HIVE[:1]),
        (HIVE, ["/region=eu/dt=2026-01-01/"], HIVE[:1]),
        (HIVE, ["region=eu"], HIVE[:2]),
        (HIVE, ["region=*/dt=2026-01-*"], [HIVE[0], HIVE[2]]),
        (HIVE, ["region=e?"], HIVE[:2]),
        (HIVE, ["region=[!e]*"], HIVE[2:]),
        (HIVE, ["region=us", "region=eu/*-02-*"], [HIVE[1], HIVE[2]]),
        (ENCODED, ["New%20York"], ENCODED[:1]),
        (ENCODED, ["New York"], ENCODED[:1]),
        (ENCODED, ["a/b"], ENCODED[1:2]),
        (ENCODED, ["New *"], ENCODED[:1]),
        (ENCODED, ["*"], ENCODED),
        (ODD, ["[x]"], ODD[:1]),
        (ODD, ["*"], ODD[2:]),
        ([""], [""], [""]),
        (HIVE, [], []),
    ],
)
def test_partitions_are_selected_by_path_folder_or_pattern(
    known: list[str], requested: list[str], found: list[str]
) -> None:
    assert partitions_in_scope(known, requested) == set(found)


@pytest.mark.parametrize(
    "requested", ["region=asia", "dt=2026-01-01", "region=eu/dt=2026-01", "", "*/*/*"]
)
def test_a_path_without_a_partition_is_refused_with_the_known_ones(requested: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        partitions_in_scope(HIVE, ["region=eu", requested])
    assert repr(requested) in refused.value.message
    assert all(repr(path) in refused.value.remedy for path in HIVE)


def test_the_error_names_only_some_of_many_partitions() -> None:
    known = [f"dt={day:03}" for day in range(300)]
    with pytest.raises(ConfigInvalid) as refused:
        partitions_in_scope(known, ["dt=300"])
    assert refused.value.remedy.endswith("'dt=009' and 290 more.")


def test_a_table_without_partitions_is_reported() -> None:
    with pytest.raises(ConfigInvalid, match="not partitioned"):
        partitions_in_scope([""], ["dt=2026-01-01"])
