"""Readers fetch only the blocks they need of a large remote data file: once, and verified."""

import multiprocessing
import os
import uuid
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid, StorageFailed
from hudi_index_service.index.contract import IndexReader, PackedIndex
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.files import local_copy
from hudi_index_service.index.files.local_copy import (
    BlockCopy,
    copies_but,
    discard,
    packed_index,
    readable_index,
)
from hudi_index_service.index.files.opened_file import Fetched, counted
from hudi_index_service.index.metadata.entry import Entry, EntryListing
from hudi_index_service.index.metadata.manifest import PARQUET_METADATA
from hudi_index_service.index.packed_file import DataFile, checksums, read_member
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.storage.store import Storage
from tests.index.golden import make

BLOCK = 256  # bytes; the golden entry's file has about forty such blocks
OPENING = local_copy.opening_blocks
LOOKUPS = {
    "name = 'Ada'": [0, 6],
    "name like '%uy%'": [3, 4],
    "age >= 8": [0, 3, 5, 7],
    "age = 8": [7],
    "name is null": [2],
    "price between 0.02 and 0.03": [2, 3],
}


def leaf(where: str) -> Predicate:
    return negation_normal_form(parse_predicate(where, make.ROWS.schema, time_zone="UTC"))


def smaller_blocks(change: Callable[[object, str, object], None] = setattr) -> None:
    """Lowers the thresholds, which are kilobytes and megabytes otherwise."""
    change(local_copy, "WHOLE_UP_TO", 0)
    for name in ("SMALL_MEMBER", "NEAR", "FEWEST"):
        change(local_copy, name, BLOCK)
    change(local_copy, "MOST", 4 * BLOCK)
    # Otherwise these are fetched at once, and Lucene never requests them.
    change(local_copy, "opening_blocks", lambda data: [])


@pytest.fixture(autouse=True)
def _with_smaller_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    smaller_blocks(monkeypatch.setattr)


def golden_in(storage: Storage) -> Entry:
    """The golden entry in a store, its data file divided into small blocks."""
    make.put(storage)
    entry = EntryListing(storage, "lucene").find(make.base_file(make.FOLDER))
    content = storage.read(entry.data_path)
    crc32s = tuple(zlib.crc32(content[at : at + BLOCK]) for at in range(0, len(content), BLOCK))
    encoded = DataFile.encode_crc32s(crc32s)
    data = entry.manifest.data.model_copy(update={"block_size": BLOCK, "block_crc32": encoded})
    return Entry(entry.folder, entry.manifest.model_copy(update={"data": data}))


@pytest.fixture
def remote() -> Storage:
    return Storage(f"memory://{uuid.uuid4().hex}")


@pytest.fixture
def entry(remote: Storage) -> Entry:
    return golden_in(remote)


@contextmanager
def opened(
    storage: Storage, entry: Entry, settings: Settings
) -> Iterator[tuple[IndexReader, PackedIndex, BlockCopy | None]]:
    """The entry, opened as a query opens it."""
    with readable_index(storage, entry, settings) as (index, blocks):
        columns = entry.manifest.columns
        reader = index_type("lucene").open(index, columns)
    try:
        yield reader, index, blocks
    finally:
        reader.close()
        if blocks is not None:
            blocks.close()


def copies(settings: Settings) -> list[str]:
    return sorted(path.suffix for path in (settings.cache_folder / "entries").iterdir())


def damaged(storage: Storage, entry: Entry, block: int) -> None:
    """Changes a byte of a block in the store."""
    content = bytearray(storage.read(entry.data_path))
    content[block * BLOCK] ^= 1
    storage.replace(entry.data_path, bytes(content))


@pytest.mark.parametrize("where", LOOKUPS)
def test_a_look_up_fetches_the_blocks_it_needs_once(
    remote: Storage, entry: Entry, settings: Settings, where: str
) -> None:
    cold, again, elsewhere = Fetched(), Fetched(), Fetched()
    with counted(cold), opened(remote, entry, settings) as (reader, index, _):
        assert list(reader.row_ids(leaf(where))) == LOOKUPS[where]
        with counted(again):
            assert list(reader.row_ids(leaf(where))) == LOOKUPS[where]
    with counted(elsewhere), opened(remote, entry, settings) as (reader, _, _):
        assert list(reader.row_ids(leaf(where))) == LOOKUPS[where]

    assert 0 < cold.bytes <= index.length
    assert again == elsewhere == Fetched(), "blocks already here are not fetched again"


def test_opening_reads_all_it_needs_in_one_request(
    remote: Storage, entry: Entry, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[tuple[int, int]]] = []
    read_ranges = Storage.read_ranges

    def recording(self: Storage, path: str, ranges: list[tuple[int, int]]) -> list[object]:
        calls.append(ranges)
        return read_ranges(self, path, ranges)

    monkeypatch.setattr(Storage, "read_ranges", recording)
    monkeypatch.setattr(local_copy, "opening_blocks", OPENING)
    monkeypatch.setattr(local_copy, "SMALL_MEMBER", 8 * BLOCK)
    with opened(remote, entry, settings) as (_, index, _):
        pass
    assert len(calls) == 1
    assert sum(end - start for start, end in calls[0]) <= index.length


def test_the_copy_is_readable_by_its_user_only(
    remote: Storage, entry: Entry, settings: Settings
) -> None:
    with opened(remote, entry, settings) as (_, index, _):
        assert index.path.stat().st_mode & 0o077 == 0
        assert index.path.parent.stat().st_mode & 0o777 == 0o700
        assert index.path.stat().st_size == index.length


def test_a_complete_copy_is_used_if_there_is_one(
    remote: Storage, entry: Entry, settings: Settings
) -> None:
    with packed_index(remote, entry, settings):
        pass
    with readable_index(remote, entry, settings) as (index, blocks):
        assert blocks is index.blocks is None
        assert index.path.suffix == ".pack"


def test_members_are_read_block_by_block(remote: Storage, entry: Entry, settings: Settings) -> None:
    with packed_index(remote, entry, Settings(cache_folder=settings.cache_folder / "b")) as whole:
        expected = {name: read_member(whole, name) for name in whole.members}
    with opened(remote, entry, settings) as (_, index, _):
        assert {name: read_member(index, name) for name in index.members} == expected
        assert index.path.read_bytes() == remote.read(entry.data_path)


def test_sequential_reads_fetch_ever_more_blocks_per_request(
    remote: Storage, entry: Entry, settings: Settings
) -> None:
    cold = Fetched()
    with counted(cold), readable_index(remote, entry, settings) as (index, blocks):
        assert blocks is not None
        for block in range(len(index.block_crc32)):
            blocks.fetch(block)
        blocks.close()
    assert cold.bytes == index.length, "each byte once"
    assert cold.requests == 2 + -(-(len(index.block_crc32) - 3) // 4), "1, 2, 4, 4, … blocks"


def test_concurrent_threads_fetch_a_missing_block_once(
    remote: Storage, entry: Entry, settings: Settings
) -> None:
    with readable_index(remote, entry, settings) as (index, blocks):
        assert blocks is not None
        before = remote.io.bytes_read
        with ThreadPoolExecutor(8) as threads:
            for block in range(len(index.block_crc32)):
                list(threads.map(blocks.fetch, [block] * 8))
        assert remote.io.bytes_read - before <= index.length
        assert index.path.read_bytes() == remote.read(entry.data_path)
        blocks.close()


def test_a_block_damaged_in_the_store_is_refused(
    remote: Storage, entry: Entry, settings: Settings
) -> None:
    sound = remote.read(entry.data_path)
    for block in range(len(entry.manifest.data.crc32s())):
        damaged(remote, entry, block)
    with (
        pytest.raises(EntryInvalid, match="is damaged"),
        readable_index(remote, entry, settings) as (index, _),
    ):
        read_member(index, PARQUET_METADATA)
    (copy,) = (settings.cache_folder / "entries").iterdir()
    assert not any(copy.read_bytes()), "none of its bytes are kept"

    remote.replace(entry.data_path, sound)
    with opened(remote, entry, settings) as (reader, _, _):
        assert list(reader.row_ids(leaf("name = 'Ada'"))) == [0, 6]


def test_a_block_damaged_in_the_cache_is_fetched_again(
    remote: Storage, entry: Entry, settings: Settings
) -> None:
    with opened(remote, entry, settings) as (_, index, _):
        for name in index.members:
            read_member(index, name)
    content = index.path.read_bytes()
    index.path.write_bytes(bytes(byte ^ 1 for byte in content))
    for where, rows in LOOKUPS.items():
        with opened(remote, entry, settings) as (reader, _, _):
            assert list(reader.row_ids(leaf(where))) == rows


def test_a_look_up_works_again_after_the_store_failed(
    remote: Storage, entry: Entry, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Storage, path: str, ranges: object) -> list[object]:
        raise StorageFailed("The store sleeps.")

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "read_ranges", failing)
        with (
            pytest.raises(EntryInvalid, match="The store sleeps"),
            opened(remote, entry, settings),
        ):
            pass
    with opened(remote, entry, settings) as (reader, _, _):
        assert list(reader.row_ids(leaf("name = 'Ada'"))) == [0, 6]


def test_a_closed_copy_fetches_nothing(remote: Storage, entry: Entry, settings: Settings) -> None:
    with readable_index(remote, entry, settings) as (_, blocks):
        assert blocks is not None
        blocks.close()
        blocks.close()
        with pytest.raises(EntryInvalid, match="is closed"):
            blocks.fetch(len(entry.manifest.data.crc32s()) // 2)


def test_an_entry_deleted_from_the_store_is_missing(
    remote: Storage, entry: Entry, settings: Settings
) -> None:
    remote.delete([entry.data_path])
    with pytest.raises(EntryInvalid, match="is missing"), opened(remote, entry, settings):
        pass


def test_fetched_blocks_evict_older_copies(
    remote: Storage, entry: Entry, settings: Settings
) -> None:
    folder = settings.cache_folder / "entries"
    folder.mkdir(parents=True)
    others = [folder / f"{'0' * 16}-{number}.pack" for number in range(2)]
    for number, other in enumerate(others):
        other.write_bytes(bytes(500_000))
        os.utime(other, (1 + number, 1 + number))
    full = settings.model_copy(update={"cache_max_mb": 600_000 / 2**20})

    with opened(remote, entry, full) as (reader, index, _):
        assert [other.exists() for other in others] == [False, True]
        tight = settings.model_copy(update={"cache_max_mb": 0.001})
        with opened(remote, entry, tight):
            assert index.path.exists(), "it does not evict itself to make room"
        assert list(reader.row_ids(leaf("name = 'Ada'"))) == [0, 6]


def test_an_open_copy_works_after_it_is_discarded(
    remote: Storage, entry: Entry, settings: Settings
) -> None:
    with opened(remote, entry, settings) as (reader, index, _):
        found = copies_but(remote, settings.cache_folder, keep=())
        assert [each.path for each in found] == [index.path]
        assert copies_but(remote, settings.cache_folder, keep={index.path.stem[17:]}) == []
        discard(found)
        assert copies(settings) == []
        for where, rows in LOOKUPS.items():
            assert list(reader.row_ids(leaf(where))) == rows
    assert copies(settings) == [], "nothing is recreated"


def test_a_copy_of_another_length_is_replaced(
    remote: Storage, entry: Entry, settings: Settings
) -> None:
    with opened(remote, entry, settings) as (_, index, _):
        pass
    os.truncate(index.path, 100)
    with opened(remote, entry, settings) as (reader, index, _):
        assert index.path.stat().st_size == index.length
        assert list(reader.row_ids(leaf("age = 8"))) == [7]


def look_up_repeatedly(cache: str, begun: Event) -> None:
    """Looks up entries of three tables in turn, with a cache that holds one of them, whole or by
    blocks."""
    smaller_blocks()
    storages = [Storage(f"memory://blocks-{table}") for table in range(3)]
    entries = [golden_in(storage) for storage in storages]
    room = 1.5 * entries[0].manifest.data.length / 2**20
    settings = Settings(cache_folder=Path(cache)).model_copy(update={"cache_max_mb": room})
    begun.set()
    for turn in range(12):
        table = turn * (os.getpid() % 2 + 1) % 3
        if turn % 4 == 3:
            with packed_index(storages[table], entries[table], settings) as index:
                assert checksums(index.path)[1] == entries[table].manifest.data.sha256
            continue
        with opened(storages[table], entries[table], settings) as (reader, _, _):
            for where in list(LOOKUPS)[:2]:
                assert list(reader.row_ids(leaf(where))) == LOOKUPS[where]


def test_processes_share_a_cache_that_is_too_small(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    other = context.Process(target=look_up_repeatedly, args=(cache, begun))
    other.start()
    assert begun.wait(60)
    look_up_repeatedly(cache, begun)
    other.join(60)
    assert other.exitcode == 0
    left = list((tmp_path / "cache" / "entries").iterdir())
    assert {path.suffix for path in left} <= {".blocks", ".pack"}
    assert len(left) <= 3, "one, and one more while two are opened at the same time"
