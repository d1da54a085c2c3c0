"""Tables of every Hudi release: due base files, builds and answers, state by state."""

import re
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable
from hudi_index_service.errors import TableFeatureUnsupported
from hudi_index_service.index.metadata.summary import SUMMARIES_FOLDER
from tests.versions.journey import (
    COLUMNS,
    Journey,
    State,
    build,
    check_answers,
    check_rows,
    due,
    instant_of,
)
from tests.versions.written import TABLE_VERSIONS

# Writing the tables of a release takes minutes if they are not cached.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

STATES = {
    "copy_on_write": [
        "written",
        "clustering_pending",
        "clustered",
        "upserted",
        "clustered_again",
    ],
    "clustered_inline": ["written", "clustered", "upserted"],
    "one_partition_column": [
        "written",
        "clustered",
        "overwritten",
        "partition_deleted",
        "upserted",
    ],
    "two_partition_columns": ["written", "clustered", "upserted"],
    "archived": ["written", "clustered", "archived"],
    "merge_on_read": [
        "written",
        "logged",
        "compacted",
        "logged_again",
        "base_file_added",
        "compacted_again",
    ],
    "compaction_pending": ["logged", "scheduled", "pending", "compacted"],
    "compacted_inline": ["written", "compacted", "archived"],
    "merge_on_read_clustered": ["logged", "clustered", "logged_again"],
    "log_files_alone": ["written", "compacted", "logged"],
}


def is_refused(name: str, state: str) -> bool:
    """Whether Spark has to read this state."""
    return (name, state) == ("log_files_alone", "written")


def check_refused(table: IndexedTable) -> None:
    """Neither a build nor a query accepts slices that may be incomplete."""
    with pytest.raises(TableFeatureUnsupported, match=r"\.log\.|log files"):
        table.build()
    with pytest.raises(TableFeatureUnsupported, match=r"\.log\.|log files"):
        table.scan("ts = 0").to_arrow()


def expected_due(state: State, defined: State) -> set[str]:
    """The base files that INCREMENTAL has to build at a state: all that table services have written
    since the index was defined, and all of instants that are archived by now."""
    since = {path for path in state.base_files if instant_of(path) not in defined.instants}
    archived = {path for path in since if instant_of(path) not in state.active}
    services = state.written_by("CLUSTER") | state.written_by("COMPACT")
    return archived | (since & services)


@pytest.mark.parametrize("name", STATES)
def test_base_files_of_table_services_are_built_and_used(
    name: str, tables: Path, tmp_path: Path
) -> None:
    journey = Journey(tables, name, tmp_path)
    first = State(tables / name / STATES[name][0])
    entries: set[str] = set()
    for stop in STATES[name]:
        table, state = journey.to(stop)
        if not table.indexes():
            table.create_index("all_columns", COLUMNS)
        if is_refused(name, stop):
            check_refused(table)
            continue
        check_rows(table, state)
        assert due(table) == expected_due(state, first) - entries
        entries |= build(table)
        assert due(table) == set()
        check_answers(table, state)
        # An entry, manifest and data, is removed once Hudi has cleaned its base file; no other is.
        # The summary that contains its manifest is removed with it.
        cleaned = {path for path in entries if not Path(table.uri, path).exists()}
        removed = [each.path for each in table.clean().removals]
        of_entries = [path for path in removed if not path.startswith(SUMMARIES_FOLDER)]
        assert len(of_entries) == 2 * len(cleaned)
        entries -= cleaned
        assert due(table) == set()


@pytest.mark.parametrize("name", STATES)
def test_build_catches_up_after_missed_states(name: str, tables: Path, tmp_path: Path) -> None:
    """The index is defined at any earlier state, even with a pending table service: the next build,
    at the table's last state, finds everything done in between."""
    *earlier, last = STATES[name]
    for defined_at in earlier:
        journey = Journey(tables, name, tmp_path / defined_at)
        table, then = journey.to(defined_at)
        table.create_index("all_columns", COLUMNS)
        table, state = journey.to(last)
        wanted = expected_due(state, then)
        assert build(table) == wanted
        check_answers(table, state)


@pytest.mark.parametrize(("name", "stop"), [(n, s) for n, states in STATES.items() for s in states])
def test_all_base_files_can_be_built_in_every_state(
    name: str, stop: str, tables: Path, tmp_path: Path
) -> None:
    table, state = Journey(tables, name, tmp_path).to(stop)
    table.create_index("all_columns", COLUMNS)
    if is_refused(name, stop):
        check_refused(table)
        return
    assert build(table, "all") == state.base_files
    assert due(table, "all") == set()
    logged = any(each.log_files for each in table.hudi_table.snapshot().slices)
    check_answers(table, state, use_index="auto" if logged else "require")
    assert table.clean().removals == ()


@pytest.mark.parametrize("name", STATES)
def test_service_kinds_of_instants(name: str, tables: Path, tmp_path: Path) -> None:
    for stop in STATES[name]:
        table, state = Journey(tables, name, tmp_path).to(stop)
        known = {
            each.requested: table.hudi_table.service_kind(each).value
            for each in table.hudi_table.completed_instants()
        }
        assert known == {requested: state.instants[requested] for requested in state.active}


def test_every_release_writes_its_table_version(release: str, tables: Path) -> None:
    for name in STATES:
        properties = next((tables / name).glob("*/table/.hoodie/hoodie.properties")).read_text()
        (version,) = re.findall(r"hoodie\.table\.version=(\d+)", properties)
        assert int(version) == TABLE_VERSIONS[release]


def test_tables_have_the_intended_states(release: str, tables: Path) -> None:
    """Guards the tests above, which need releases to cluster, compact, archive and clean."""
    assert State(tables / "copy_on_write" / "clustered").written_by("CLUSTER")
    assert State(tables / "clustered_inline" / "clustered").written_by("CLUSTER")
    assert State(tables / "merge_on_read" / "compacted").written_by("COMPACT")
    assert State(tables / "compacted_inline" / "compacted").written_by("COMPACT")
    for name, service in (("archived", "CLUSTER"), ("compacted_inline", "COMPACT")):
        state = State(tables / name / "archived")
        old = {path for path in state.base_files if instant_of(path) not in state.active}
        assert old & state.written_by(service), "a table service's base file outlives its instant"
        cleaned = State(tables / name / STATES[name][1]).base_files - state.base_files
        assert cleaned, "the cleaner has run"
    added = State(tables / "merge_on_read" / "base_file_added")
    assert added.base_files - State(tables / "merge_on_read" / "logged_again").base_files
    paths = State(tables / "two_partition_columns" / "clustered").base_files
    assert any("/2026%2F01 02/" in path for path in paths)
    paths = State(tables / "one_partition_column" / "clustered").base_files
    assert any(path.startswith("dt=2026%2F01 02/") for path in paths)
