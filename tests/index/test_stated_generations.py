"""Entries are found by the generation that segments state, without a listing. If it is gone, the
folder is listed. A build finds manifests by a listing, and reads some layouts."""

import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from hudi_index_service.errors import EntryInvalid, StorageFailed
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import IndexType
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata import entry
from hudi_index_service.index.metadata.documents import DocumentCache, NewerFormat
from hudi_index_service.index.metadata.entry import (
    EntryListing,
    EntryMissing,
    StatedGeneration,
    forget_stated,
    present_manifest,
)
from hudi_index_service.index.metadata.manifest import Layout, Manifest, entry_folder
from hudi_index_service.storage.store import Storage
from tests.index.golden import make
from tests.index.test_summaries import base_file, manifest_of, publish

FILES = [base_file(number) for number in range(3)]


def with_entries(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """Puts an entry of generation 1 for each base file into a store; none of them is cached."""
    monkeypatch.setattr(entry, "known_manifests", DocumentCache(Manifest))
    for each in FILES:
        publish(storage, each, manifest_of(each))
    return storage


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    """A store with entries."""
    return with_entries(Storage(f"memory://{uuid.uuid4().hex}"), monkeypatch)


@pytest.fixture
def on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """The same on the local disk."""
    return with_entries(Storage(tmp_path), monkeypatch)


def stated(
    storage: Storage,
    generation: int = 1,
    files: Sequence[BaseFile] = FILES,
    segment: str = "a.segment",
) -> EntryListing:
    """A listing of no folder, in which these entries are stated; their manifests are fetched."""
    statement = StatedGeneration(generation, segment)
    folders = {entry_folder("lucene", each): statement for each in files}
    listing = EntryListing(storage, "lucene", only=[], stated=folders)
    listing.fetch(files)
    return listing


def generations(listing: EntryListing) -> list[int]:
    return [listing.find(each).manifest.generation for each in FILES]


def newer(file: BaseFile) -> Manifest:
    """The second generation of the base file's entry, with other data."""
    return manifest_of(file, name=f"data-{'2' * 20}-new.pack").model_copy(update={"generation": 2})


def test_stated_entries_take_one_request_each_and_then_none(storage: Storage) -> None:
    before = storage.io.requests
    assert generations(stated(storage)) == [1, 1, 1]
    assert storage.io.requests == before + len(FILES)
    assert generations(stated(storage)) == [1, 1, 1]
    assert storage.io.requests == before + len(FILES), "they are cached now"


def test_an_older_generation_serves_as_long_as_it_is_there(storage: Storage) -> None:
    path = publish(storage, FILES[1], newer(FILES[1]))
    assert generations(stated(storage)) == [1, 1, 1]
    storage.delete([path.replace("0002", "0001")])
    assert generations(stated(storage)) == [1, 1, 1], "a cached one too, while its data is there"


def test_the_folder_is_listed_if_the_stated_generation_is_gone(storage: Storage) -> None:
    path = publish(storage, FILES[1], newer(FILES[1]))
    storage.delete([path.replace("0002", "0001")])
    assert generations(stated(storage)) == [1, 2, 1]


def test_an_entry_that_is_gone_is_missing(storage: Storage) -> None:
    storage.delete([each.path for each in storage.files(entry_folder("lucene", FILES[1]))])
    listing = stated(storage)
    with pytest.raises(EntryMissing):
        listing.find(FILES[1])
    assert listing.find(FILES[2]).manifest.generation == 1


def test_a_damaged_generation_is_passed_over(storage: Storage) -> None:
    path = publish(storage, FILES[1], newer(FILES[1]))
    storage.replace(path, b"{}")
    assert generations(stated(storage, 2)) == [1, 1, 1], "nor was that of the others published"


def test_a_generation_under_another_number_is_passed_over(storage: Storage) -> None:
    path = publish(storage, FILES[1], newer(FILES[1]))
    storage.replace(path, manifest_of(FILES[1]).to_json())
    assert generations(stated(storage, 2)) == [1, 1, 1]


def test_only_stated_folders_are_listed_later_and_once(storage: Storage) -> None:
    publish(storage, FILES[1], newer(FILES[1]))
    listing, folder = stated(storage), entry_folder("lucene", FILES[1])
    statement = listing.state(folder)
    listing.list_stated([folder, "not/stated"])
    assert listing.find(FILES[1]).manifest.generation == 2
    assert listing.state(folder) == statement, "what is cached for it stays valid"
    before = storage.io.requests
    listing.list_stated([folder])
    assert storage.io.requests == before


def test_a_number_that_another_segment_states_is_another_generation(storage: Storage) -> None:
    """All generations were removed, and the next one got the first one's number."""
    old = stated(storage).find(FILES[1])
    rebuilt = manifest_of(FILES[1], name=f"data-{'3' * 20}-anew.pack")
    storage.delete([each.path for each in storage.files(old.folder)])
    publish(storage, FILES[1], rebuilt)
    assert stated(storage, segment="b.segment").find(FILES[1]).manifest == rebuilt


def test_an_entry_built_anew_is_found_after_its_old_data_was_missed(storage: Storage) -> None:
    listing = stated(storage)
    old = listing.find(FILES[1])
    rebuilt = manifest_of(FILES[1], name=f"data-{'3' * 20}-anew.pack")
    storage.delete([old.data_path])
    publish(storage, FILES[1], rebuilt)
    assert stated(storage).find(FILES[1]).data_path == old.data_path, "the manifest is cached"
    forget_stated(storage, old)
    assert stated(storage).find(FILES[1]).manifest == rebuilt


def test_a_store_that_fails_is_reported_by_find(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> bytes:
        raise StorageFailed(f"{path}: the store does not answer.")

    monkeypatch.setattr(storage, "read", fail)
    monkeypatch.setattr(storage, "files", fail)
    listing = stated(storage)
    with pytest.raises(StorageFailed, match="does not answer"):
        listing.find(FILES[0])


def test_an_entry_of_another_base_file_is_refused(storage: Storage) -> None:
    other = BaseFile(FILES[0].path, FILES[0].partition, FILES[0].file_id, make.INSTANT, 7)
    with pytest.raises(EntryInvalid, match="was built from"):
        stated(storage, 1, [other]).find(other)


def test_on_the_local_disk_the_data_file_is_looked_at(on_disk: Storage) -> None:
    listing = stated(on_disk)
    found = listing.find(FILES[1])
    assert found.listed == on_disk.status(found.data_path)
    assert listing.still_serves(found)
    data = Path(on_disk.uri.removeprefix("file://")) / found.data_path
    os.utime(data, (1, 1))
    assert not listing.still_serves(found), "it is opened again"
    assert not listing.misses_data
    data.write_bytes(b"")
    assert not stated(on_disk).still_serves(found)
    with pytest.raises(EntryInvalid, match="has 0 bytes"):
        stated(on_disk).find(FILES[1])
    data.unlink()
    missing = stated(on_disk)
    with pytest.raises(EntryInvalid, match="is missing"):
        missing.find(FILES[1])
    assert missing.misses_data
    assert missing.find(FILES[2]).manifest.generation == 1


def test_on_the_local_disk_an_entry_built_anew_is_found_at_once(on_disk: Storage) -> None:
    old = stated(on_disk).find(FILES[1])
    rebuilt = manifest_of(FILES[1], name=f"data-{'3' * 20}-anew.pack")
    on_disk.delete([each.path for each in on_disk.files(old.folder)])
    publish(on_disk, FILES[1], rebuilt)
    assert stated(on_disk).find(FILES[1]).manifest == rebuilt


def test_on_the_local_disk_manifests_stay_cached_when_segments_are_merged(on_disk: Storage) -> None:
    assert generations(stated(on_disk)) == [1, 1, 1]
    before = on_disk.io.bytes_read
    assert generations(stated(on_disk, segment="merged.segment")) == [1, 1, 1]
    assert on_disk.io.bytes_read == before


class Lucene(type(index_type("lucene"))):  # type: ignore[misc]
    """The index type as if it read the layouts 2 and 3."""

    version, oldest = 3, 2


KIND: IndexType = Lucene()


def of_version(version: int) -> Manifest:
    return manifest_of(FILES[1]).model_copy(update={"index_type_version": version})


def found(*manifests: Manifest, damaged: int = 0) -> Manifest | None:
    storage = Storage(f"memory://{uuid.uuid4().hex}")
    for each in manifests:
        publish(storage, FILES[1], each)
    return present_manifest(EntryListing(storage, "lucene"), FILES[1], KIND, damaged=damaged)


@pytest.mark.parametrize(
    ("version", "layout"), [(1, Layout.UNREAD), (2, Layout.READ), (3, Layout.READ)]
)
def test_a_build_finds_an_entry_that_it_may_replace(version: int, layout: Layout) -> None:
    assert of_version(version).layout(KIND) is layout
    assert found(of_version(version)) == of_version(version)


def test_a_build_does_not_replace_the_entry_of_a_newer_release() -> None:
    assert of_version(4).layout(KIND) is Layout.NEWER
    with pytest.raises(NewerFormat, match="version 4; this release writes version 3"):
        found(of_version(4))


def test_missing_damaged_and_foreign_entries_count_as_none() -> None:
    assert found() is None
    assert found(of_version(3), damaged=1) is None
    assert found(manifest_of(base_file(2)).model_copy(update={"index_type_version": 3})) is None
    second = of_version(3).model_copy(update={"generation": 2})
    assert found(of_version(3), second, damaged=1) == second
