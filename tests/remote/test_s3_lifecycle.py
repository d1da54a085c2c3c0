"""Cleaning and verifying in an object store: few requests, and no remains in store or cache."""

from pathlib import Path

from hudi_index_service import IndexedTable
from hudi_index_service.config import Settings
from hudi_index_service.index.metadata.retention import expired_entries
from hudi_index_service.index.metadata.summary import SUMMARIES_FOLDER
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.storage.store import Storage
from tests.remote.s3_server import S3Server


def index_files(table: IndexedTable, s3: S3Server) -> list[str]:
    files = Storage(table.uri, s3.options).files(".hoodie/.index/lucene")
    return sorted(file.path for file in files)


def cached(settings: Settings) -> list[Path]:
    return list((settings.cache_folder / "entries").iterdir())


def test_many_files_are_deleted_in_one_request(s3: S3Server) -> None:
    storage = Storage(f"s3://{s3.make_bucket()}/root", s3.options)
    names = [f"a/{number}" for number in range(50)]
    for name in names:
        storage.create(name, b"1")
    storage.create("a/stays", b"1")
    s3.forget()

    storage.delete([*names, "absent"])

    assert [request.split()[0] for request in s3.requests] == ["POST"]
    assert [file.path for file in storage.files()] == ["a/stays"]
    s3.forget()
    storage.delete([])
    assert s3.requests == []


def test_clean_removes_the_entry_of_a_deleted_base_file_and_its_cached_copy(
    remote: IndexedTable, settings: Settings, s3: S3Server
) -> None:
    assert remote.scan("amount = 900").count() == 1
    assert remote.clean().removals == ()
    assert len(cached(settings)) == 1, "its entry exists"
    assert len(index_files(remote, s3)) == 4
    (served,) = [s for s in remote.hudi_table.snapshot().slices if not s.log_files]
    Storage(remote.uri, s3.options).delete([served.base_file.path])  # as by Hudi's cleaner

    (expired,) = expired_entries(remote.hudi_table, settings).values()
    dry = remote.clean(dry_run=True)
    removed = {removal.path for removal in dry.removals if SUMMARIES_FOLDER not in removal.path}
    assert removed == {file.path for file in expired}
    assert len(dry.copies) == len(cached(settings)) == 1
    s3.forget()
    assert remote.clean() == dry

    # Manifests, then data files; and the segment that is replaced.
    assert len([request for request in s3.requests if request.startswith("POST")]) == 3
    assert not [request for request in s3.requests if request.startswith("DELETE")]
    assert len(index_files(remote, s3)) == 2
    assert cached(settings) == []
    assert remote.clean().removals == ()


def test_purge_leaves_no_object_and_no_cached_copy(
    remote: IndexedTable, settings: Settings, s3: S3Server
) -> None:
    assert remote.scan("amount = 900").count() == 1
    remote.drop_index("by_msg", purge=True)
    assert index_files(remote, s3) == []
    assert cached(settings) == []


def test_damaged_object_is_neither_used_nor_cached_and_is_rebuilt(
    remote: IndexedTable, settings: Settings, s3: S3Server
) -> None:
    storage = Storage(remote.uri, s3.options)
    packs = [path for path in index_files(remote, s3) if path.endswith(".pack")]
    for path in packs:
        content = storage.read(path)
        storage.replace(path, content[:-1] + bytes([content[-1] ^ 1]))

    scan = remote.scan("amount = 900")
    assert scan.count() == 1
    assert scan.statistics.count(Access.INDEX) == 0
    assert cached(settings) == []
    found = remote.verify(repair=True)

    assert {problem.path for problem in found.problems} == set(packs)
    assert found.unrepaired == ()
    assert len(index_files(remote, s3)) == 4
    assert not set(packs) & set(index_files(remote, s3))
    assert remote.verify().problems == ()


def test_damaged_copy_is_removed_from_the_cache(remote: IndexedTable, settings: Settings) -> None:
    assert remote.scan("amount = 900").count() == 1
    (copy,) = cached(settings)
    content = copy.read_bytes()
    copy.unlink()
    copy.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    assert remote.verify().problems == (), "the table's own entry is intact"
    assert cached(settings) == []
