"""The cost of a build before it runs: from a sample that is built for real, or from past builds."""

import shutil
import tempfile
from math import sqrt
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service import Column, IndexedTable
from hudi_index_service.build import sample
from hudi_index_service.build.estimate import Estimate
from hudi_index_service.build.sample import Rate
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from tests.edited_tables import make_unreadable
from tests.indexed import OwnTable

ROWS = 10_000


@pytest.fixture
def table(own_table: OwnTable) -> IndexedTable:
    """10,000 rows in one base file: unique names, a thousand cities, long texts; no index."""
    return own_table("names_of_cities")


def estimated(table: IndexedTable) -> Estimate:
    cost = table.build(strategy="all", dry_run=True).estimate
    assert cost is not None
    return cost


@pytest.mark.parametrize("using", ["lucene", "btree"])
def test_a_sample_tells_the_size_and_time_of_each_column(
    using: str, table: IndexedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.create_index("by_name", ["name", "amount", "city"], using=using)
    before = sorted(Path(table.uri).rglob("*"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    cost = estimated(table)

    assert (cost.files, cost.sampled_rows, cost.builds) == (1, ROWS, ())
    assert {each.column for each in cost.columns} == {"name", "amount", "city"}
    assert all(each.seconds > 0 and each.index_type == using for each in cost.columns)
    assert sum(each.index_bytes for each in cost.columns) == pytest.approx(cost.index_bytes, abs=2)
    assert cost.seconds is not None
    assert cost.warnings == ()
    # Nothing is left behind.
    assert sorted(Path(table.uri).rglob("*")) == before
    assert not list(temporary.iterdir())

    built = table.build(strategy="all").built[0]
    assert cost.index_bytes == pytest.approx(built.index_bytes, rel=0.2)


def test_composite_keys_and_stored_values_are_sampled_as_they_are_built(
    table: IndexedTable,
) -> None:
    key = [Column(name=each, options={"key": "composite"}) for each in ("city", "amount")]
    table.create_index("by_city", [*key, "name"], include=["text"], using="btree")

    cost = estimated(table)

    assert {each.column for each in cost.columns} == {"amount, city", "name", "text"}
    built = table.build(strategy="all").built[0]
    assert cost.index_bytes == pytest.approx(built.index_bytes, rel=0.2)
    (text,) = (each for each in cost.columns if each.column == "text")
    assert text.index_bytes > 0


def test_a_large_index_could_do_without_stored_values(table: IndexedTable) -> None:
    table.create_index("covering", ["text"], include=["city", "name", "ts"])
    cost = estimated(table)

    assert cost.is_large
    (text,) = (each for each in cost.smaller if each.column == "text")
    assert text.smaller_bytes < text.index_bytes
    assert all(each.options.get("stored") != "only" for each in cost.smaller)


def test_pieces_of_a_large_base_file_tell_the_spread(
    table: IndexedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "ROWS", 1_000)
    table.create_index("by_name", ["name"])

    cost = estimated(table)

    assert cost.sampled_rows == 4_000
    assert cost.index_bytes_error is not None
    assert cost.seconds_error is not None
    assert cost.index_bytes is not None
    assert 0 < cost.index_bytes_error < cost.index_bytes


def test_reading_is_timed_by_what_a_build_would_decode() -> None:
    groups = (range(0, 100), range(100, 250), range(250, 300))
    base_file = BaseFile("a.parquet", "", "a", "1", 3_000)
    piece = sample.Piece(base_file, range(120, 260), groups)

    assert piece.decoded_rows(200, whole_groups=False) == 100
    assert piece.decoded_rows(260, whole_groups=False) == 160
    assert piece.decoded_rows(200, whole_groups=True) == 150
    assert piece.decoded_rows(260, whole_groups=True) == 200


def test_files_of_all_sizes_are_sampled(own_table: OwnTable) -> None:
    table = own_table("hundred_base_files", ["amount"], using="btree", build=False)

    cost = estimated(table)

    assert (cost.files, cost.sampled_rows) == (100, 8)
    assert len(cost.entries) == 100
    assert sum(size for _, size in cost.entries) == pytest.approx(cost.index_bytes, rel=0.01)


def test_a_large_index_is_named_with_what_makes_it_smaller(own_table: OwnTable) -> None:
    analyzed = Column(name="name", options={"analyzer": "standard"})
    columns = ["id", analyzed, "text", "amount", "_hoodie_commit_seqno"]
    table = own_table("names_in_small_pages", columns, build=False)

    cost = estimated(table)

    assert cost.size_ratio is not None
    assert cost.size_ratio > 0.5
    assert cost.warnings[0] == (
        f"The index will take {cost.size_ratio:.0%} of the space of its base files."
    )
    (name,) = (each for each in cost.smaller if each.column == "name")
    assert name.smaller_bytes < name.index_bytes
    assert str(name) == (
        f"name takes about {name.index_bytes:,} bytes (lucene); in an index of type btree it "
        f"would take about {name.smaller_bytes:,}, but would not answer full-text search and "
        "patterns that begin with %."
    )
    assert cost.to_dict()["warnings"] == cost.warnings


def test_words_instead_of_whole_values_are_smaller() -> None:
    column = ColumnSpec("name", pa.string(), ("keyword", "text:english"))
    options = index_type("lucene").smaller_options(column)
    assert options is not None
    assert options.options == {"analyzer": "english", "keyword": "false"}
    numbers = ColumnSpec("amount", pa.int64(), ("number",))
    assert index_type("lucene").smaller_options(numbers) is None
    assert index_type("btree").smaller_options(column) is None


def test_an_estimate_says_why_it_knows_nothing(table: IndexedTable) -> None:
    table.create_index("by_name", ["name"])
    (base_file,) = Path(table.uri).glob("*.parquet")
    make_unreadable(base_file)

    cost = estimated(table)

    assert (cost.seconds, cost.index_bytes, cost.columns) == (None, None, ())
    assert cost.unknown is not None
    assert "is not a readable Parquet file" in cost.unknown


def test_past_builds_go_before_a_sample(table: IndexedTable) -> None:
    table.create_index("by_name", ["name"])
    built = table.build(strategy="all").built[0]
    shutil.rmtree(Path(table.uri, ".hoodie/.index/lucene"))

    cost = estimated(table)
    assert (cost.builds, cost.sampled_rows, cost.columns) == (("000001",), 0, ())
    assert cost.index_bytes == built.index_bytes

    table.alter_index("by_name", options={"name": {"analyzer": "standard"}})
    with_words = estimated(table)
    assert (with_words.builds, with_words.sampled_rows) == ((), ROWS)
    assert with_words.index_bytes is not None
    assert with_words.index_bytes > 1.2 * built.index_bytes


def test_the_error_of_a_rate_follows_from_how_measurements_differ() -> None:
    assert Rate.of([100, 200], [10, 20]) == Rate(0.1, 0.0)
    assert Rate.of([100], [10]) == Rate(0.1, None)
    assert Rate.of([], []) == Rate(0.0, None)

    rate = Rate.of([100, 100], [10, 30])
    assert rate.mean == 0.2
    assert rate.error == pytest.approx(2 * sqrt((100 + 100) * 2) / 200)

    assert Rate.sum([Rate(1, 0.25), Rate(2, 0.5)]) == Rate(3, 0.75)
    assert Rate.sum([Rate(1, 0.25), Rate(2, None)]) == Rate(3, None)
