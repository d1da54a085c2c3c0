"""After `prewarm`, a query opens no entry and reads no footer and no page; what does not fit is
left out, and nothing is given up for it."""

import resource
from collections.abc import Callable, Iterator

import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.cancellation import Cancellation
from hudi_index_service.config import settings
from hudi_index_service.errors import ColumnNotFound, ConfigInvalid, QueryCancelled
from hudi_index_service.hudi.files import parquet_file
from hudi_index_service.read.base_file import file_scan, kept_pages
from hudi_index_service.read.base_file.kept_pages import forget_pages
from hudi_index_service.read.slices.reader_pool import OTHER_FILES
from tests.indexed import indexed
from tests.read.damage import truncate
from tests.same_rows import assert_same_rows

WHERE, COLUMNS = "amount BETWEEN 20 AND 60", ["id", "msg"]


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    forget_pages()
    yield
    settings.cache_clear()
    forget_pages()


@pytest.fixture(params=["btree", "lucene"])
def table(golden_index, request) -> Iterator[IndexedTable]:
    path = golden_index("hundred_base_files", ["amount"], using=request.param)
    with open_table(path) as table:
        yield table


@pytest.fixture
def cache_of(monkeypatch) -> Callable[[int], None]:
    """Begins anew with a page cache of so many bytes."""

    def begin(size: int) -> None:
        forget_pages()
        monkeypatch.setattr(kept_pages, "budget", lambda: size)
        monkeypatch.setattr("hudi_index_service.maintain.prewarm.budget", lambda: size)

    return begin


def test_the_next_query_reads_nothing_but_memory(table, recorded):
    done = table.prewarm([*COLUMNS, "amount"])
    assert (done.base_files, done.covered, done.entries, done.opened) == (100, 100, 100, 100)
    assert (done.files, done.left_out) == (100, 0)
    assert done.pages > 0 < done.bytes
    assert done.kept_bytes > 0
    assert done.instant == table.hudi_table.latest_instant()
    footers = recorded(file_scan, "own_footer", lambda storage, base_file: base_file.path)
    files = recorded(parquet_file, "open_parquet", lambda storage, path, *_: path)
    for use_index in ("require", "auto"):
        scan = table.scan(WHERE, columns=COLUMNS, use_index=use_index)
        rows = scan.to_arrow()
        assert scan.statistics.pages == scan.statistics.kept_pages
        assert scan.statistics.bytes_read == 0
        assert sum(each.opened for each in scan.statistics.slices) == 0
    assert (footers, files) == ([], [])
    assert_same_rows(rows, table.scan(WHERE, columns=COLUMNS, use_index="never").to_arrow())


def test_a_second_call_has_nothing_to_do(table):
    first = table.prewarm(COLUMNS)
    again = table.prewarm(COLUMNS)
    assert (again.entries, again.opened, again.pages, again.bytes) == (first.entries, 0, 0, 0)
    assert (again.files, again.kept_bytes) == (first.files, first.kept_bytes)


def test_without_columns_no_page_is_read(table):
    done = table.prewarm()
    assert (done.entries, done.files, done.pages, done.bytes, done.kept_bytes) == (100, 0, 0, 0, 0)
    assert str(done) == "100 entries open"
    scan = table.scan(WHERE, columns=COLUMNS, use_index="require")
    scan.to_arrow()
    assert scan.statistics.bytes_read > 0
    assert sum(each.opened for each in scan.statistics.slices) == 0


def test_partitions_are_made_ready_alone(golden_index):
    with open_table(golden_index("four_base_files", ["amount"], using="btree")) as table:
        first, second = table.partitions()
        done = table.prewarm(["id"], partitions=[first])
        assert (done.base_files, done.entries, done.files) == (2, 2, 2)
        scan = table.scan("amount >= 0", columns=["id"], use_index="require")
        scan.to_arrow()
        opened = {each.slice_name: each.opened for each in scan.statistics.slices}
        assert {each.split("/")[0]: n for each, n in opened.items()} == {first: 0, second: 1}
        assert table.prewarm(["id"], partitions=["dt=*" if "=" in first else "*"]).entries == 4
        assert table.prewarm(partitions=table.partitions(f"dt = '{second[-10:]}'")).opened == 0


def test_values_that_entries_store_are_read_in_their_place(golden, tmp_path):
    path = golden("hundred_base_files").put(tmp_path)
    stored = [Column(name=each, options={"stored": "true"}) for each in ("amount", "msg")]
    with indexed(path, stored, using="btree") as table:
        assert table.prewarm(["msg", "amount"]).left_out == 0
        scan = table.scan(WHERE, columns=["msg"], use_index="require")
        assert scan.to_arrow().num_rows > 0
        assert scan.statistics.pages == scan.statistics.kept_pages > 0
        assert all(each.stored for each in scan.statistics.slices if each.pages)


def test_pages_that_do_not_fit_are_left_out_and_hot_ones_stay(table, cache_of):
    whole = table.prewarm(COLUMNS).kept_bytes
    cache_of(whole // 2)
    hot = table.scan("amount = 5", columns=["id"], use_index="require")
    hot.to_arrow()
    done = table.prewarm(COLUMNS)
    assert 0 < done.files < 100
    assert done.files + done.files_left_out == 100
    assert done.kept_bytes <= whole // 2
    assert done.left_out == done.files_left_out
    assert f"{done.files_left_out} files left out" in str(done)
    again = table.scan("amount = 5", columns=["id"], use_index="require")
    again.to_arrow()
    assert again.statistics.bytes_read == 0


def test_entries_that_do_not_fit_are_left_out_and_open_ones_stay(golden_index, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (OTHER_FILES + 40, OTHER_FILES + 40))
    with open_table(golden_index("hundred_base_files", ["amount"], using="btree")) as table:
        table.scan("amount = 5", use_index="require").to_arrow()
        before = set(table.scan("amount = 5").planned().plan.opened)
        assert before
        done = table.prewarm(COLUMNS)
        assert 0 < done.entries <= 30
        assert done.entries + done.entries_left_out == 100
        assert before <= set(table.scan("amount = 5").planned().plan.opened)


def test_a_damaged_entry_is_told(golden, tmp_path, caplog):
    path = golden("four_base_files").put(tmp_path)
    with indexed(path, ["amount"], using="btree") as table:
        packs = sorted(path.rglob("*.pack"))
        truncate(packs[0])
        packs[1].write_bytes(b"x" * packs[1].stat().st_size)
    with open_table(path) as table:
        done = table.prewarm(["id"])
        assert (done.covered, done.entries, done.files, done.unusable) == (3, 2, 2, 1)
        assert "1 unusable entry left out" in str(done)
        assert "is not opened ahead" in caplog.text
        assert table.scan("amount >= 0").count() == table.scan().count()


def test_nothing_is_ready_without_an_index(golden, tmp_path):
    with open_table(golden("four_base_files").put(tmp_path)) as table:
        done = table.prewarm(["id"])
        assert (done.base_files, done.covered, done.entries, done.files) == (4, 0, 0, 0)
        table.create_index("i", ["amount"], using="btree")
        table.build(strategy="all").raise_for_failures()
        table.disable()
        assert table.prewarm().covered == 0
        table.enable()
        assert table.prewarm().entries == 4


def test_pages_of_a_process_that_keeps_none_are_not_read(table, monkeypatch):
    monkeypatch.setenv("HUDI_INDEX_READ__PAGE_CACHE_MB", "0")
    settings.cache_clear()
    forget_pages()
    done = table.prewarm(COLUMNS)
    assert (done.entries, done.files, done.files_left_out, done.bytes) == (100, 0, 100, 0)


def test_progress_is_told_and_it_can_be_cancelled(table):
    told: list[tuple[int, int]] = []
    table.prewarm(COLUMNS, progress=lambda *each: told.append(each))
    assert told[-1] == (100, 100)
    assert told == sorted(told)
    assert len(told) > 1
    with Cancellation() as cancellation, pytest.raises(QueryCancelled):
        table.prewarm(COLUMNS, progress=lambda *_: cancellation.cancel())
    assert table.prewarm(COLUMNS).left_out == 0


@pytest.mark.parametrize(
    ("columns", "options", "error", "words"),
    [
        (["nothing"], {}, ColumnNotFound, "nothing"),
        ("id", {}, ConfigInvalid, "not 'id'"),
        (["id", "ID"], {}, ConfigInvalid, "named twice"),
        ((), {"partitions": "2026"}, ConfigInvalid, "not '2026'"),
        ((), {"partitions": ["2031"]}, ConfigInvalid, "2031"),
    ],
)
def test_wrong_arguments_are_refused(table, columns, options, error, words):
    with pytest.raises(error, match=words) as caught:
        table.prewarm(columns, **options)
    assert caught.value.remedy
