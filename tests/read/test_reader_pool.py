"""Open entries are kept within a budget, and only while the table has them."""

import os
import resource
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.lucene.reader import LuceneReader
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.read.slices.many_entries import few_rows
from hudi_index_service.read.slices.reader_pool import OTHER_FILES, OpenEntry, ReaderPool
from hudi_index_service.storage.store import Storage
from tests.index.golden import make
from tests.read.damage import CHANGES, overwrite, truncate

IS_ADA = parse_predicate("name = 'Ada'", make.ROWS.schema, time_zone="UTC")


@pytest.fixture
def storage(tmp_path) -> Storage:
    """A copy of the golden entry's table."""
    return Storage(shutil.copytree(make.FOLDER, tmp_path / "table"))


def serving(storage: Storage, columns: Sequence[str] = ("name",)) -> ServingEntry:
    """The golden entry, with some of its columns."""
    entry = EntryListing(storage, "lucene").find(make.base_file(Path(storage.uri)))
    held = {column.name: column for column in entry.manifest.columns}
    return ServingEntry(entry, index_type("lucene"), tuple(held[name] for name in columns))


def opened(pool: ReaderPool, entry: ServingEntry) -> OpenEntry:
    """What the pool leases: the same object as long as it stays open."""
    with pool.lease(entry) as found:
        return found


def is_closed(found: OpenEntry) -> bool:
    """Whether its reader has released the file."""
    assert isinstance(found.reader, LuceneReader)
    return found.reader._reader is None


def test_an_entry_stays_open_until_no_listing_shows_it(storage):
    pool, entry = ReaderPool(storage, Settings()), serving(storage)
    listing = EntryListing(storage, "lucene")
    first = opened(pool, entry)
    pool.keep(listing)
    assert opened(pool, entry) is first
    storage.delete([entry.entry.data_path])
    with pool.lease(entry) as used:
        pool.keep(EntryListing(storage, "lucene"))
        assert list(used.reader.row_ids(IS_ADA)) == [0, 6], "a leased entry can still be read"
        assert not is_closed(used)
    assert used is first
    assert is_closed(used)


def test_entries_whose_data_file_was_deleted_are_closed(storage):
    pool, entry = ReaderPool(storage, Settings()), serving(storage)
    first = opened(pool, entry)
    pool.close_deleted()
    assert opened(pool, entry) is first
    storage.delete([entry.entry.data_path])
    with pool.lease(entry) as used:
        pool.close_deleted()
        assert not is_closed(used)
    assert is_closed(first)
    assert pool.open_paths == frozenset()


def test_entries_that_are_held_are_closed_afterwards(storage):
    pool, entry = ReaderPool(storage, Settings()), serving(storage)
    first = opened(pool, entry)
    with pool.held() as held, pool.held() as again:
        assert held.get(entry) is again.get(entry) is first
        assert held.version == again.version
        pool.close()
        assert not is_closed(first)
        assert held.get(entry) is None
    assert is_closed(first)
    with pool.held() as later:
        assert later.version != held.version


def test_an_entry_that_calls_to_many_ask_is_not_closed_first(storage):
    first, second, third = (serving(storage, names) for names in (["name"], ["age"], ["score"]))
    pool = ReaderPool(storage, Settings(), capacity=2)
    asked, other = opened(pool, first), opened(pool, second)
    (answer,) = few_rows(IS_ADA, [first], pool)
    assert answer.entry is asked
    opened(pool, third)
    assert opened(pool, first) is asked
    assert is_closed(other)


def test_entries_with_different_columns_are_opened_separately(storage):
    pool = ReaderPool(storage, Settings())
    assert opened(pool, serving(storage, ["age", "name"])) is not opened(pool, serving(storage))
    assert opened(pool, serving(storage)) is opened(pool, serving(storage))


def test_the_budget_counts_entries_and_bytes(storage):
    subsets = [serving(storage, names) for names in (["name"], ["age"], ["score"])]
    two = ReaderPool(storage, Settings(), capacity=2)
    first, _, third = (opened(two, each) for each in subsets)
    assert opened(two, subsets[2]) is third
    assert opened(two, subsets[0]) is not first, "least recently used"

    roomy = ReaderPool(storage, Settings())
    assert [opened(roomy, each) for each in subsets] == [opened(roomy, each) for each in subsets]
    tight = ReaderPool(storage, Settings(read=ReadSettings(open_mb=1)))
    tight._most_bytes = 2 * subsets[0].entry.manifest.data.length
    first, second, third = (opened(tight, each) for each in subsets)
    assert [opened(tight, each) for each in subsets[1:]] == [second, third]
    assert opened(tight, subsets[0]) is not first


def test_a_quarter_of_the_files_that_the_process_may_open_is_left_to_others(storage, monkeypatch):
    subsets = [serving(storage, names) for names in (["name"], ["age"], ["score"])]
    pool = ReaderPool(storage, Settings())
    # The limit is stated, not set: other tests of this process may keep more files open.
    monkeypatch.setattr(resource, "getrlimit", lambda _: (OTHER_FILES + 3, OTHER_FILES + 3))
    first, second, third = (opened(pool, each) for each in subsets)
    assert [opened(pool, each) for each in subsets[1:]] == [second, third]
    assert is_closed(first)


def test_an_entry_leased_when_the_pool_closes_is_closed_on_return(storage):
    pool, entry = ReaderPool(storage, Settings()), serving(storage)
    with pool.lease(entry) as used:
        pool.close()
        assert list(used.reader.row_ids(IS_ADA)) == [0, 6]
    assert is_closed(used)
    assert not is_closed(opened(pool, entry))


def test_an_overwritten_data_file_is_reopened(storage):
    pool, entry = ReaderPool(storage, Settings()), serving(storage)
    first = opened(pool, entry)
    assert opened(pool, serving(storage)) is first
    overwrite(Path(storage.uri, entry.entry.data_path))
    with pytest.raises(EntryInvalid, match="is damaged"):
        opened(pool, serving(storage))
    assert is_closed(first)


@pytest.mark.parametrize("change", CHANGES)
def test_results_found_while_the_data_file_changed_are_discarded(storage, change):
    pool, entry = ReaderPool(storage, Settings()), serving(storage)
    first = opened(pool, entry)

    def use():
        with pool.lease(entry) as used:
            assert list(used.reader.row_ids(IS_ADA)) == [0, 6]
            change(Path(storage.uri, entry.entry.data_path))

    with pytest.raises(EntryInvalid, match="was changed while it was open"):
        use()
    assert is_closed(first)
    assert pool.open_paths == frozenset()


def test_an_entry_stays_open_while_others_read_its_data_file(storage):
    pool, entry = ReaderPool(storage, Settings()), serving(storage)
    first = opened(pool, entry)
    assert Path(storage.uri, entry.entry.data_path).read_bytes()
    assert opened(pool, entry) is first


def test_a_truncated_local_copy_is_fetched_again(storage, tmp_path):
    remote = Storage(f"memory://{tmp_path}")
    for file in storage.files():
        remote.create(file.path, storage.read(file.path))
    settings = Settings(cache_folder=tmp_path / "cache")
    pool, entry = ReaderPool(remote, settings), serving(storage)
    opened(pool, entry)
    (copy,) = (tmp_path / "cache/entries").glob("*.pack")
    os.utime(copy)  # as another process does when it opens the file
    assert pool.open_paths
    opened(pool, entry)
    truncate(copy)
    with pytest.raises(EntryInvalid):
        opened(pool, entry)
    with pool.lease(entry) as used:
        assert list(used.reader.row_ids(IS_ADA)) == [0, 6]


def test_an_entry_stays_open_when_another_one_beside_it_is_damaged(storage):
    pool, entry = ReaderPool(storage, Settings()), serving(storage)
    before = opened(pool, entry)
    with pytest.raises(EntryInvalid, match="another entry"), pool.lease(entry):
        raise EntryInvalid("This is about another entry.")
    assert opened(pool, entry) is before
