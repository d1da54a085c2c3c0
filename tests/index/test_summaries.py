"""Summaries save requests for manifests and never add to what the listing shows."""

import uuid

import pytest

from hudi_index_service.build.entry.planning_facts import summarize
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.metadata import entry, summary
from hudi_index_service.index.metadata.documents import DocumentCache
from hudi_index_service.index.metadata.entry import Entry, EntryListing, EntryMissing
from hudi_index_service.index.metadata.manifest import Manifest, entry_folder
from hudi_index_service.index.metadata.summary import SUMMARIES_FOLDER, SummaryStore
from hudi_index_service.storage.store import Storage
from tests.index.golden import make

FILES = 3


def base_file(number: int, instant: str = make.INSTANT) -> BaseFile:
    path = f"p{number}/f-0_0-1-0_{instant}.parquet"
    return BaseFile(path, f"p{number}", "f-0", instant, 1000 + number)


def manifest_of(file: BaseFile, **data: object) -> Manifest:
    """The golden entry's manifest, adapted to another base file."""
    (path,) = make.FOLDER.rglob("manifest-0001.json")
    golden = Manifest.from_json(path.read_bytes(), source=str(path))
    named = golden.base_file.model_copy(update={"path": file.path, "length": file.size})
    held = golden.data.model_copy(update=data)
    return golden.model_copy(update={"base_file": named, "data": held})


def publish(storage: Storage, file: BaseFile, manifest: Manifest) -> str:
    folder = entry_folder("lucene", file)
    storage.replace(f"{folder}/{manifest.data.name}", bytes(manifest.data.length))
    path = f"{folder}/manifest-{manifest.generation:04}.json"
    storage.replace(path, manifest.to_json())
    return path


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    """A store with entries of three base files of one instant, none of them cached."""
    monkeypatch.setattr(entry, "known_manifests", DocumentCache(Manifest))
    storage = Storage(f"memory://{uuid.uuid4().hex}")
    for number in range(FILES):
        publish(storage, base_file(number), manifest_of(base_file(number)))
    return storage


@pytest.fixture
def summarized(storage: Storage) -> Storage:
    """The same, with a summary."""
    summarize(storage, "lucene", {make.INSTANT})
    return storage


def entries_and_requests(storage: Storage, *numbers: int) -> tuple[list[Entry], int]:
    """The entries of these base files, and the number of requests to find them."""
    files = [base_file(number) for number in numbers or range(FILES)]
    listing = EntryListing(storage, "lucene")
    before = storage.io.requests
    listing.fetch(files)
    requests = storage.io.requests - before
    entries = [listing.find(file) for file in files]
    assert storage.io.requests == before + requests, "find needs no more than fetch read"
    assert [each.manifest.base_file.path for each in entries] == [file.path for file in files]
    return entries, requests


def summaries(storage: Storage) -> list[str]:
    return [
        file.path.removeprefix(f"{SUMMARIES_FOLDER}/") for file in storage.files(SUMMARIES_FOLDER)
    ]


def test_one_summary_gives_all_manifests_of_an_instant(summarized: Storage) -> None:
    assert summaries(summarized) == [f"lucene/{make.INSTANT}-0001.json"]
    entries, requests = entries_and_requests(summarized)
    assert requests == 2, "a listing, and the summary"
    assert [each.manifest for each in entries] == [manifest_of(base_file(n)) for n in range(FILES)]
    assert entries_and_requests(summarized)[1] == 0, "they are cached now"


def test_without_summaries_each_manifest_is_read(storage: Storage) -> None:
    assert entries_and_requests(storage)[1] == 1 + FILES


def test_one_manifest_is_read_without_a_summary(summarized: Storage) -> None:
    assert entries_and_requests(summarized, 1)[1] == 1


def test_a_large_summary_is_not_read_for_few_manifests(
    summarized: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "BYTES_A_REQUEST", 0)
    assert entries_and_requests(summarized, 0, 2)[1] == 1 + 2


def test_a_summary_does_not_bring_back_a_deleted_entry(summarized: Storage) -> None:
    folder = entry_folder("lucene", base_file(1))
    summarized.delete([file.path for file in summarized.files(folder)])
    listing = EntryListing(summarized, "lucene")
    listing.fetch(base_file(number) for number in range(FILES))
    with pytest.raises(EntryMissing):
        listing.find(base_file(1))
    assert listing.find(base_file(2)).manifest.base_file.path == base_file(2).path


@pytest.mark.parametrize("generation", [1, 2], ids=["replaced", "later"])
def test_another_entry_than_the_summarys_is_read_from_its_manifest(
    summarized: Storage, generation: int
) -> None:
    old = manifest_of(base_file(1))
    other = manifest_of(base_file(1), name=old.data.name[:-6] + "0.pack")
    other = other.model_copy(update={"generation": generation})
    if generation == 1:
        summarized.delete([f"{entry_folder('lucene', base_file(1))}/{old.data.name}"])
    path = publish(summarized, base_file(1), other)
    assert len(summarized.read(path)) == len(old.to_json())

    entries, requests = entries_and_requests(summarized)

    assert entries[1].manifest == other
    assert requests == 2 + 1


def test_a_manifest_of_another_length_is_read_directly(summarized: Storage) -> None:
    path = f"{entry_folder('lucene', base_file(0))}/manifest-0001.json"
    summarized.replace(path, summarized.read(path)[:-10])
    listing = EntryListing(summarized, "lucene")
    listing.fetch(base_file(number) for number in range(FILES))
    with pytest.raises(EntryInvalid, match="is not JSON"):
        listing.find(base_file(0))


@pytest.mark.parametrize("number", ["0001", "0002"])
def test_a_damaged_summary_is_ignored(summarized: Storage, number: str) -> None:
    summarized.replace(f"{SUMMARIES_FOLDER}/lucene/{make.INSTANT}-{number}.json", b"{}")
    assert entries_and_requests(summarized)[1] == 2 + FILES


def test_manifests_in_a_summary_are_checked(summarized: Storage) -> None:
    store = SummaryStore(summarized, "lucene")
    (newest,) = store.listed()[make.INSTANT].values()
    manifests = dict(store.read(make.INSTANT, newest).manifests)
    path = next(iter(manifests))
    manifests[path] = manifests[path].replace('"null_count": 1', '"null_count": 0')
    store.add(make.INSTANT, manifests, newest=1)

    entries, requests = entries_and_requests(summarized)

    assert requests == 2 + 1
    assert entries[0].manifest == manifest_of(base_file(0))


def test_the_newest_summary_is_used(summarized: Storage) -> None:
    SummaryStore(summarized, "lucene").add(make.INSTANT, {}, newest=1)
    assert entries_and_requests(summarized)[1] == 2 + FILES
    summarize(summarized, "lucene", {make.INSTANT})
    assert len(summaries(summarized)) == 3


def test_instants_without_a_summary_get_one(storage: Storage) -> None:
    for instant in ("20260102", "20260103"):
        for number in range(int(instant[-1]) - 1):
            file = base_file(number, instant)
            publish(storage, file, manifest_of(file))
    summarize(storage, "lucene", {"20260102"})
    assert summaries(storage) == [f"lucene/{i}-0001.json" for i in (make.INSTANT, "20260103")]
    summarize(storage, "lucene", {"20260103"})
    assert len(summaries(storage)) == 3, "the other instant has no new entry"


def test_a_summary_is_limited_in_bytes(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(manifest_of(base_file(0)).to_json())
    monkeypatch.setattr("hudi_index_service.index.metadata.summary.MOST_BYTES", 2 * size)
    summarize(storage, "lucene", {make.INSTANT})
    assert entries_and_requests(storage)[1] == 2 + 1
