"""Queries that ask what indexes cover: for the covered rows alone, and for an answer only if the
table is covered up to an instant."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.cancellation import Cancellation
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.errors import (
    ConfigInvalid,
    IndexRequired,
    NotCovered,
    QueryCancelled,
)
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read import freshness
from tests.golden.predicates import PREDICATES
from tests.indexed import indexed
from tests.read.damage import delete_entry
from tests.same_rows import assert_same_rows

WHERE = "amount > 100"


def note(table: pa.Table) -> dict[str, int] | None:
    """What a table's metadata say was left out."""
    found = (table.schema.metadata or {}).get(b"hudi_index.fast")
    return None if found is None else json.loads(found)


@pytest.fixture
def half(awkward):
    """A table with a partition, p1, of which no file has an entry."""
    return awkward("half covered")


def covered_part(rows: pa.Table) -> pa.Table:
    """The rows of the other partitions."""
    return rows.filter(pc.not_equal(rows["part"], "p1"))


@pytest.mark.parametrize("where", PREDICATES)
def test_fast_gives_the_rows_of_covered_slices(half, where):
    wanted = covered_part(half.table.scan(where, use_index="never").to_arrow())
    try:
        scan = half.table.scan(where, fast=True)
        rows = scan.to_arrow()
    except IndexRequired:
        plan = half.table.scan(where).explain().plan
        assert all(each.access is not Access.INDEX for each in plan.slices)
        return
    assert_same_rows(rows.replace_schema_metadata(), wanted)
    assert note(rows) == {"files_left_out": scan.left_out}
    assert scan.count() == wanted.num_rows
    assert scan.exists() is bool(wanted.num_rows)
    batches = list(scan.to_batches())
    assert sum(each.num_rows for each in batches) == wanted.num_rows
    contradicts = half.table.scan(where).explain().slices_by_access()["skip"] == 3
    assert scan.left_out == (0 if contradicts else 1)


def test_no_other_query_leaves_anything_out(half):
    everything = half.table.scan(WHERE)
    assert_same_rows(everything.to_arrow(), half.table.scan(WHERE, use_index="never").to_arrow())
    assert everything.left_out is None
    assert note(everything.to_arrow()) is None
    assert "fast" not in str(everything.explain())
    assert "left_out" not in everything.explain().to_dict()["files"]
    required = half.table.scan(f"part <> 'p1' AND {WHERE}", use_index="require")
    assert_same_rows(required.to_arrow(), covered_part(everything.to_arrow()))


@pytest.mark.parametrize("limit", [0, 1, None])
@pytest.mark.parametrize("where", [WHERE, "amount = 123456789"])
def test_a_stream_says_it_without_any_row(half, where, limit):
    schema, batches = half.table.scan(where, fast=True, limit=limit).stream()
    table = pa.Table.from_batches(batches, schema)
    assert note(table) == {"files_left_out": 1}
    assert pa.table(half.table.scan(where, fast=True, limit=limit)).schema == schema


def test_explain_says_how_many_slices_are_left_out(half):
    explained = half.table.scan(WHERE, fast=True).explain(analyze=True)
    assert "fast     1 slice left out" in str(explained)
    assert "[not_covered]" in str(explained)
    files = explained.to_dict()["files"]
    assert (files["left_out"], files["uncovered"]) == (1, 1)


def test_a_covered_slice_counts_even_if_a_scan_is_cheaper(half):
    """The same rows are left out whatever the settings that only choose how to read."""
    settings = Settings(read=ReadSettings(min_table_mb=10_000))
    with open_table(half.path, settings=settings) as table:
        scan = table.scan(WHERE, fast=True)
        assert_same_rows(
            scan.to_arrow().replace_schema_metadata(),
            covered_part(table.scan(WHERE).to_arrow()),
        )
        assert {each.access for each in scan.statistics.slices} == {Access.SCAN, Access.SKIP}


def test_slices_that_cannot_match_are_not_left_out(half):
    scan = half.table.scan(f"part <> 'p1' AND {WHERE}", fast=True)
    assert scan.count() == half.table.scan(f"part <> 'p1' AND {WHERE}").count()
    assert scan.left_out == 0


def test_files_of_an_older_form_of_the_index_are_left_out(golden, tmp_path):
    """An entry without the predicate's column does not cover it."""
    messages = golden("four_base_files")
    with indexed(messages.put(tmp_path), ["id"], name="first", using="btree") as table:
        table.alter_index("first", add=["amount"])
        refused = table.scan("amount >= 0", fast=True)
        with pytest.raises(IndexRequired, match="no index narrows"):
            refused.to_arrow()
        partition = table.partitions()[0]
        table.build(strategy="refresh", partitions=[partition]).raise_for_failures()
        scan = table.scan("amount >= 0", fast=True)
        rows = table.scan("amount >= 0").to_arrow()
        some = scan.to_arrow()
        covered = [each.covered for each in table.status()]
        assert scan.left_out == 4 - covered[0] > 0
        assert 0 < some.num_rows < rows.num_rows
        assert set(some["id"].to_pylist()) < set(rows["id"].to_pylist())


@pytest.mark.parametrize("where", PREDICATES[::6])
def test_log_files_count_with_their_slice(awkward, tmp_path, where):
    """A slice whose base file is covered gives its rows merged, a slice without an entry none."""
    state = awkward("with logs, partitioned")
    path = shutil.copytree(state.path, tmp_path / "t")
    with open_table(path) as table:
        table.build(strategy="all").raise_for_failures()
        every_row = table.scan("amount IS NULL OR amount > 0", use_index="require")
        for each in every_row.planned().plan.slices:
            if each.file_slice.partition == "p0":
                delete_entry(path / each.entries[0].entry.data_path)
    with open_table(path) as table:
        slices = table.scan("amount > 0").planned().plan.slices
        assert {each.file_slice.partition for each in slices if each.file_slice.log_files} == {"p2"}
        wanted = state.answer(where)
        covered = pc.not_equal(wanted["_hoodie_partition_path"], "p0")
        scan = table.scan(where, fast=True)
        try:
            rows = scan.to_arrow()
        except IndexRequired:
            assert not any(each.entries for each in table.scan(where).planned().plan.slices)
            return
        assert_same_rows(rows.replace_schema_metadata(), wanted.filter(covered))
        assert scan.count() == rows.num_rows


def test_a_fast_search_scores_covered_rows_alone(golden, tmp_path):
    texts = golden("searched_texts")
    column = Column(name="msg", options={"analyzer": "standard", "ranked": "true"})
    with indexed(texts.put(tmp_path / "one", "one base file"), [column]) as table:
        wanted = table.search("msg", "new car", k=1000)
        assert note(wanted) is None
    with open_table(texts.put(tmp_path / "two", "two base files")) as table:
        table.create_index("i", [column])
        first = min(each.instant for each in table.hudi_table.snapshot().base_files())
        table.build(strategy="all", instant=first).raise_for_failures()
        fast = table.search("msg", "new car", k=1000, fast=True)
        assert note(fast) == {"files_left_out": 1}
        assert_same_rows(fast.select(["id", "_score"]), wanted.select(["id", "_score"]))
        assert table.search("msg", "new car", k=1000).num_rows > fast.num_rows > 0
        counted = table.scan("match_any(msg, 'new car')", fast=True)
        assert (counted.count(), counted.left_out) == (fast.num_rows, 1)
        assert (
            table.search("msg", "new car", k=1000, only_if_covered_to=first).num_rows
            > fast.num_rows
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fast": True, "use_index": "never"}, "never"),
        ({"fast": 1}, "fast=1"),
        ({"fast": "yes"}, "fast='yes'"),
        ({"wait": 1}, "nothing to wait for"),
        ({"only_if_covered_to": "2026-01-01", "wait": -1}, "wait=-1"),
        ({"only_if_covered_to": "2026-01-01", "wait": 1e9}, "wait=1000000000"),
        ({"only_if_covered_to": "2026-01-01", "wait": float("nan")}, "wait=nan"),
        ({"only_if_covered_to": "2026-01-01", "wait": "5"}, "wait='5'"),
        ({"only_if_covered_to": "yesterday"}, "only_if_covered_to='yesterday'"),
        ({"only_if_covered_to": "2026-01-01", "use_index": "never"}, "never"),
        ({"only_if_covered_to": "2026-01-02", "as_of": "2026-01-01"}, "before"),
    ],
)
def test_wrong_options_are_refused(half, options, words):
    with pytest.raises(ConfigInvalid, match=words) as caught:
        half.table.scan(WHERE, **options)
    assert caught.value.remedy


@pytest.mark.parametrize("where", [None, "part = 'p2'", "part IS NOT NULL AND 1 = 1"])
@pytest.mark.parametrize("options", [{"fast": True}, {"only_if_covered_to": "2001-01-01"}])
def test_a_query_that_no_index_serves_is_refused(half, where, options):
    with pytest.raises(IndexRequired, match="No index can serve") as caught:
        half.table.scan(where, **options).count()
    assert "without fast" in caught.value.remedy


def test_a_table_without_an_index_covers_nothing(golden, tmp_path):
    with open_table(golden("four_base_files").put(tmp_path)) as table:
        for name in (None, "by_id"):
            if name is not None:
                table.create_index(name, ["id"])
            with pytest.raises(IndexRequired, match="none has a column of the condition"):
                table.scan("amount >= 0", fast=True).count()
        scan = table.scan("id > ''", fast=True)  # it is not built yet
        assert (scan.count(), scan.left_out) == (0, 4)


def test_switched_off_indexes_cover_nothing(half, tmp_path):
    with open_table(shutil.copytree(half.path, tmp_path / "t")) as table:
        table.disable()
        with pytest.raises(IndexRequired, match="switches its indexes off"):
            table.scan(WHERE, fast=True).to_arrow()
    with (
        open_table(half.path, settings=Settings(read=ReadSettings(enabled=False))) as table,
        pytest.raises(IndexRequired, match=r"read\.enabled"),
    ):
        table.scan(WHERE, fast=True).to_arrow()


def test_frames_of_other_libraries_have_the_covered_rows(half):
    scan = half.table.scan(WHERE, columns=["id"], fast=True)
    frame = scan.to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == scan.count() == len(scan.to_pandas())
    assert scan.left_out == 1


def test_spark_gets_no_fast_frame(half):
    with pytest.raises(ConfigInvalid, match="cannot say what fast has left out"):
        half.table.scan(WHERE, fast=True).to_spark(object())


# --- only if covered -------------------------------------------------------------------------


@pytest.fixture
def instants(half) -> list[str]:
    """Those that wrote the base files: the last one's have no entry."""
    written = {each.instant for each in half.table.hudi_table.snapshot().base_files()}
    assert len(written) == 2
    return sorted(written)


def test_a_table_is_covered_to_an_instant_or_says_to_which(half, instants):
    covered, uncovered = instants
    wanted = half.table.scan(WHERE, use_index="never").to_arrow()
    assert_same_rows(half.table.scan(WHERE, only_if_covered_to=covered).to_arrow(), wanted)
    refused = half.table.scan(WHERE, only_if_covered_to=uncovered)
    for answer in (refused.to_arrow, refused.count, refused.exists, refused.explain):
        with pytest.raises(NotCovered, match=f"up to instant {covered}") as caught:
            answer()
        assert uncovered in caught.value.message
        assert caught.value.code == "NOT_COVERED"


def test_fast_may_ask_for_an_instant(half, instants):
    fast = half.table.scan(WHERE, fast=True, only_if_covered_to=instants[0])
    assert fast.count() == half.table.scan(WHERE, fast=True).count()
    with pytest.raises(NotCovered):
        half.table.scan(WHERE, fast=True, only_if_covered_to=instants[1]).count()


def test_no_row_is_an_answer_too(half, instants):
    with pytest.raises(NotCovered):
        half.table.scan(WHERE, limit=0, only_if_covered_to=instants[1]).stream()
    assert not list(half.table.scan(WHERE, limit=0, only_if_covered_to=instants[0]).to_batches())


def test_base_files_that_cannot_match_need_no_entry(half, instants):
    where = f"part <> 'p1' AND {WHERE}"
    assert half.table.scan(where, only_if_covered_to=instants[1]).count() > 0


def test_an_instant_that_is_still_to_come_is_not_covered(half, instants):
    with pytest.raises(NotCovered, match="no completed instant 20991231") as caught:
        half.table.scan(WHERE, only_if_covered_to="2099-12-31").count()
    assert instants[1] in caught.value.message


def test_an_instant_that_is_still_written_is_not_covered(half, instants, tmp_path):
    """A later one may have completed before it."""
    path = shutil.copytree(half.path, tmp_path / "t")
    pending = f"{int(instants[1]) - 1}"
    (path / f".hoodie/timeline/{pending}.commit.requested").write_bytes(b"")
    with open_table(path) as table:
        table.build(strategy="all").raise_for_failures()
        assert table.scan(WHERE, only_if_covered_to=instants[1]).count() > 0
        with pytest.raises(NotCovered, match="no completed instant"):
            table.scan(WHERE, only_if_covered_to=pending).count()


@pytest.fixture
def own(half, tmp_path) -> Iterator[IndexedTable]:
    with open_table(shutil.copytree(half.path, tmp_path / "own")) as table:
        yield table


def test_a_query_waits_for_the_build(own, instants, monkeypatch):
    refused, built = Event(), []
    error = freshness.NotCovered

    class Told(error):
        def __init__(self, *args, **named):
            super().__init__(*args, **named)
            refused.set()

    monkeypatch.setattr("hudi_index_service.optimizer.rules.NotCovered", Told)

    def build() -> None:
        assert refused.wait(30)
        with open_table(Path(own.uri.removeprefix("file://"))) as other:
            built.append(other.build(strategy="all").raise_for_failures())

    builder = Thread(target=build)
    builder.start()
    counted = own.scan(WHERE, only_if_covered_to=instants[1], wait=60).count()
    builder.join()
    assert built
    assert counted == own.scan(WHERE, use_index="never").count()


def test_who_waits_too_long_is_told_and_can_be_cancelled(own, instants):
    scan = own.scan(WHERE, only_if_covered_to=instants[1], wait=0.3)
    with pytest.raises(NotCovered):
        scan.count()
    waiting = own.scan(WHERE, only_if_covered_to=instants[1], wait=3600)
    with Cancellation(seconds=0.3), pytest.raises(QueryCancelled):
        waiting.count()
    with pytest.raises(NotCovered):
        own.search("msg", "car", only_if_covered_to="2099-01-01")
