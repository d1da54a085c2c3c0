"""A table written by one Hudi release and upgraded in place by a later one keeps its index."""

from pathlib import Path

import pytest

from tests.versions.journey import COLUMNS, Journey, build, check_answers, check_rows, due
from tests.versions.written import NEWEST, OLDEST, TABLE_VERSIONS, upgraded, written_by

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def test_copy_on_write_table_keeps_its_index(tmp_path: Path) -> None:
    journey, after = Journey(written_by(OLDEST), "upgraded_copy_on_write", tmp_path), upgraded()
    table, _ = journey.to("written")
    table.create_index("all_columns", COLUMNS)
    table, state = journey.to("clustered")
    assert build(table) == state.base_files
    definitions = table.indexes()

    table, state = journey.to("upgraded", after)
    versions = [TABLE_VERSIONS[OLDEST], TABLE_VERSIONS[NEWEST]]
    assert versions == [6, 9]
    assert "hoodie.table.version=9" in (
        (Path(table.uri) / ".hoodie" / "hoodie.properties").read_text()
    )
    assert table.indexes() == definitions
    check_rows(table, state)
    # The newer release upserted one partition; the other's clustered file is covered.
    (covered,) = state.written_by("CLUSTER")
    assert covered.startswith("south east/")
    assert due(table) == set()
    assert table.status()[0].covered == 1
    check_answers(table, state)

    table, state = journey.to("clustered_again", after)
    check_rows(table, state)
    assert build(table) == state.base_files - {covered}
    check_answers(table, state, use_index="require")
    assert table.verify().problems == ()


def test_merge_on_read_table_keeps_its_index(tmp_path: Path) -> None:
    journey, after = Journey(written_by(OLDEST), "upgraded_merge_on_read", tmp_path), upgraded()
    table, _ = journey.to("written")
    table.create_index("all_columns", COLUMNS)
    table, state = journey.to("compacted")
    assert build(table) == state.base_files
    check_answers(table, state, use_index="require")

    table, state = journey.to("upgraded", after)
    check_rows(table, state)
    table.build()
    check_answers(table, state)

    table, state = journey.to("compacted_again", after)
    check_rows(table, state)
    assert build(table) == state.base_files
    check_answers(table, state, use_index="require")
    table.clean()
    check_answers(table, state, use_index="require")


@pytest.mark.parametrize("name", ["upgraded_copy_on_write", "upgraded_merge_on_read"])
def test_index_defined_before_the_upgrade_is_built_after_it(name: str, tmp_path: Path) -> None:
    """No build ran from before the clustering until after the upgrade."""
    journey = Journey(written_by(OLDEST), name, tmp_path)
    table, _ = journey.to("written")
    table.create_index("all_columns", COLUMNS)
    table, state = journey.to("upgraded", upgraded())
    services = state.written_by("CLUSTER") | state.written_by("COMPACT")
    assert services
    assert services <= build(table)
    check_answers(table, state)
