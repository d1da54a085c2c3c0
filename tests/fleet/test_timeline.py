"""The timeline of a table: services by their names, and what indexes have of each instant."""

from pathlib import Path

import pytest

from hudi_index_service import open_table
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.fleet.timeline import SeenInstant, seen_instants
from hudi_index_service.fleet.web.page.words import index_state, instant_time
from tests.golden.table import Golden


def timeline(path: Path) -> tuple[SeenInstant, ...]:
    with open_table(path) as table:
        return seen_instants(table.hudi_table, table.status().indexes)


@pytest.mark.parametrize(
    ("name", "step", "actions"),
    [
        ("undone", "clustering planned", ["clustering: planned", "commit", "commit"]),
        ("inserted_and_compacted", "compaction planned", ["compaction: planned"]),
        ("inserted_and_compacted", "compacted", ["compaction", "delta commit"]),
        ("cleaned_and_archived", "cleaned", ["clean", "commit", "clean", "commit"]),
        ("version_6", "compacted", ["compaction", "delta commit"]),
        ("two_partitions", "clustered", ["clustering", "commit"]),
        ("undone", "undone", ["restore", "clustering: planned", "clustering", "commit"]),
    ],
)
def test_services_are_told_by_their_names(
    golden: Golden, tmp_path: Path, name: str, step: str, actions: list[str]
) -> None:
    found = timeline(golden(name).put(tmp_path, step))

    words = [each.action + ("" if each.completed else ": planned") for each in found]
    assert words[: len(actions)] == actions
    assert [each.requested for each in found] == sorted(
        (each.requested for each in found), reverse=True
    )


def test_each_instant_tells_what_indexes_have_of_its_base_files(
    golden: Golden, tmp_path: Path
) -> None:
    path = golden("two_partitions").put(tmp_path, "written")
    with open_table(path) as table:
        table.create_index("by_amount", ["amount"], using="btree")
    golden("two_partitions").put(path, "clustered")
    before = [index_state(each) for each in timeline(path)]
    with open_table(path) as table:
        table.build(strategy=Strategy.ALL)
    after = [index_state(each) for each in timeline(path)]

    assert before == ["0 of 2 base files indexed, 2 due", "–"]
    assert after == ["2 base files indexed", "–"]


def test_base_files_that_no_strategy_builds_are_left_to_scans() -> None:
    instant = SeenInstant("20260301120000123", "commit", base_files=5, covered=1, due=1)

    assert index_state(instant) == "1 of 5 base files indexed, 1 due, 3 left to scans"
    assert instant_time(instant.requested) == "2026-03-01 12:00:00"
    assert instant_time("000001") == "–"
