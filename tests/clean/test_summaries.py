"""Summaries of instants are removed with their manifests, since their statistics are data."""

from pathlib import Path

from hudi_index_service import IndexedTable
from tests.clean.conftest import Open


def summaries(table: IndexedTable) -> list[Path]:
    return sorted(Path(table.uri, ".hoodie/.index/_service/instants").rglob("*.json"))


def test_a_fresh_table_has_nothing_to_clean(open_copy: Open) -> None:
    """Its summary is kept as long as its manifests."""
    table = open_copy("fresh", summary=True, grace_seconds=0)
    (summary,) = summaries(table)
    cleaning = table.clean()
    assert (cleaning.removals, cleaning.bytes, cleaning.folders) == ((), 0, 0)
    assert summaries(table) == [summary]


def test_a_summary_is_removed_with_the_first_of_its_manifests(open_copy: Open) -> None:
    """Nothing may remain of one base file of its instant; the other still exists."""
    table = open_copy("cleaned", summary=True)
    (summary,) = summaries(table)
    cleaning = table.clean()
    reasons = {Path(table.uri, each.path): each.reason for each in cleaning.removals}
    assert reasons[summary] == "it contains manifests that are removed"
    assert summaries(table) == []
    assert not summary.parent.exists(), "and no empty folder remains"


def test_a_superseded_or_damaged_summary_is_removed_at_once(open_copy: Open) -> None:
    table = open_copy("fresh", summary=True, grace_seconds=3600)
    (first,) = summaries(table)
    table.create_index("late", ["amount"])
    assert len(table.build(strategy="all").raise_for_failures().built) == 2
    first, second = summaries(table)

    (removal,) = table.clean().removals
    assert removal.path == str(first.relative_to(table.uri))
    assert removal.reason == "a newer summary serves"
    second.write_bytes(second.read_bytes()[:100])
    (removal,) = table.clean().removals
    assert removal.path == str(second.relative_to(table.uri))
    assert removal.reason == "it is damaged"
    assert summaries(table) == []
    assert table.scan("amount = 30", use_index="require").count() == 1
