"""Manifests and definitions as stored documents: immutable, checksummed, versioned, untrusted."""

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service.errors import (
    EntryInvalid,
    IndexDefinitionInvalid,
    IndexNotFound,
)
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.metadata.build_records import BUILDS_FOLDER, BuildRecords
from hudi_index_service.index.metadata.definitions import (
    DEFINITIONS_FOLDER,
    Column,
    DefinitionStore,
    IndexDefinition,
    SeenTimeline,
)
from hudi_index_service.index.metadata.documents import (
    FORMAT_MAJOR,
    FORMAT_MINOR,
    Document,
    DocumentCache,
    NewerFormat,
    checksum_of,
    document_name,
    numbers_of,
)
from hudi_index_service.index.metadata.entry import EntryListing, EntryMissing
from hudi_index_service.index.metadata.manifest import Manifest, entry_folder
from hudi_index_service.index.metadata.summary import Summary
from hudi_index_service.storage.store import Storage
from tests.index.golden import make

MANIFEST = next(make.FOLDER.rglob("manifest-0001.json"))
SEEN = SeenTimeline(start="1", instants=("1", "2"))


def changed(document: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The document after a change, with a matching checksum: as an attacker or another release
    would write it."""
    body = json.loads(document)
    body.pop("checksum")
    change(body)
    return json.dumps({**body, "checksum": checksum_of(body)}).encode()


def read(document: bytes) -> Manifest:
    return Manifest.from_json(document, source="here.json")


def test_a_manifest_survives_the_round_trip() -> None:
    manifest = read(MANIFEST.read_bytes())
    assert read(manifest.to_json()) == manifest
    written, golden = json.loads(manifest.to_json()), json.loads(MANIFEST.read_bytes())
    assert written.pop("format") > golden.pop("format") == [1, 0]
    assert written.pop("checksum") != golden.pop("checksum")  # it covers the format as well
    assert written == golden


@pytest.mark.parametrize("least", ["a", "\ud800 is no text"])
def test_a_manifest_is_pickled_for_tasks(least: str) -> None:
    manifest = read(changed(MANIFEST.read_bytes(), lambda b: b["columns"][0].update(minimum=least)))
    again = pickle.loads(pickle.dumps(manifest))  # noqa: S301 - made here
    assert again == manifest
    assert again.columns[0].minimum == least


def test_every_flipped_character_is_detected() -> None:
    content = MANIFEST.read_bytes()
    for at in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[at] ^= 1
        try:
            read_again = read(bytes(damaged))
        except EntryInvalid:
            continue
        assert read_again == read(content)  # white space between two values


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"1", b"\xff\xfe", b"[" * 100_000, b'{"format": 1}',
        b'{"format": [1]}', b'{"format": ["1", "0"]}', b'{"format": [-1, 0]}',
        b'{"format": [1, 0]}', b'{"format": [1, 0], "checksum": NaN}', MANIFEST.read_bytes()[:-40],
        b"9" * 10_000,
    ],
)  # fmt: skip
def test_malformed_documents_are_refused(content: bytes) -> None:
    with pytest.raises(EntryInvalid, match=r"here\.json"):
        read(content)


def test_a_newer_major_format_is_recognized_whatever_its_fields() -> None:
    newer = json.dumps({"format": [FORMAT_MAJOR + 1, 0], "anything": []}).encode()
    with pytest.raises(NewerFormat, match=r"here\.json has format 2; this release reads 1"):
        read(newer)


def test_a_newer_minor_format_may_add_fields_anywhere() -> None:
    def extend(body: dict[str, Any]) -> None:
        body["format"] = [FORMAT_MAJOR, FORMAT_MINOR + 1]
        body["added"] = {"a": 1}
        for part in (body["data"], body["base_file"], body["build"], *body["columns"]):
            part["added"] = "x"

    assert read(changed(MANIFEST.read_bytes(), extend)) == read(MANIFEST.read_bytes())


def test_unknown_fields_in_this_minor_format_are_refused() -> None:
    with pytest.raises(EntryInvalid, match="not a valid manifest"):
        read(changed(MANIFEST.read_bytes(), lambda body: body.update(added=1)))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["base_file"].update(path="../x.parquet"),
        lambda body: body["base_file"].update(path="a/../../x.parquet"),
        lambda body: body["base_file"].update(path="/etc/passwd"),
        lambda body: body["base_file"].update(path=""),
        lambda body: body["base_file"].update(path="a\0b"),
        lambda body: body["data"].update(name="a/b"),
        lambda body: body["data"].update(name=".."),
        lambda body: body["data"].update(name="a\\b"),
        lambda body: body["data"]["members"][0].update(name="../segments_1"),
        lambda body: body["data"]["members"][0].update(offset=-1),
        lambda body: body["data"].update(block_size=0),
        lambda body: body["data"].update(block_size=2**40),
        lambda body: body["data"].update(block_crc32="§"),
        lambda body: body["data"].update(block_crc32="AAA="),
        lambda body: body.update(generation=0),
        lambda body: body.update(kind="definition"),
        lambda body: body.update(columns=None),
        lambda body: body.pop("data"),
    ],
)
def test_manifests_with_invalid_values_are_refused(
    change: Callable[[dict[str, Any]], object],
) -> None:
    with pytest.raises(EntryInvalid, match=r"here\.json is no"):
        read(changed(MANIFEST.read_bytes(), change))


def test_the_error_is_one_line_without_the_invalid_value() -> None:
    content = changed(MANIFEST.read_bytes(), lambda body: body["data"].update(name="secret/x"))
    with pytest.raises(EntryInvalid) as raised:
        read(content)
    message = raised.value.message
    assert message.endswith("is not a valid manifest: data.name: must be a plain file name.")


def test_document_names_contain_their_numbers() -> None:
    assert document_name("manifest", 7) == "manifest-0007.json"
    assert document_name("manifest", 12_345) == "manifest-12345.json"
    names = ["a-0002.json", "a-0010.json", "b-0003.json", "a-b-0004.json", "a-1.json", "a-0005.jso"]
    names.append("a-00011.json")  # a zero too many
    assert numbers_of("a", names) == [10, 2]
    assert numbers_of("a-b", names) == [4]


# --- entries ---------------------------------------------------------------------------------


BASE_FILE = BaseFile("p/f_0-1-0_1.parquet", "p", "f", "1", 100)
DATA = b"data"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path)


def publish(storage: Storage, generation: int, change: Callable[[dict[str, Any]], object]) -> str:
    """Writes a manifest and the data file that it names."""

    def adapt(body: dict[str, Any]) -> None:
        body["generation"] = generation
        body["base_file"].update(path=BASE_FILE.path, length=BASE_FILE.size)
        body["data"].update(name=f"data-{generation}.pack", length=len(DATA))
        change(body)

    folder = entry_folder("lucene", BASE_FILE)
    document = changed(MANIFEST.read_bytes(), adapt)
    storage.create(f"{folder}/data-{generation}.pack", DATA)
    storage.create(f"{folder}/{document_name('manifest', generation)}", document)
    return folder


def unchanged(body: dict[str, Any]) -> None:
    """Makes no change."""


def find(storage: Storage) -> int:
    return EntryListing(storage, "lucene").find(BASE_FILE).manifest.generation


def test_an_entry_that_was_never_built_is_missing(storage: Storage) -> None:
    with pytest.raises(EntryMissing, match="has no lucene entry"):
        find(storage)


def test_the_highest_valid_generation_is_used(storage: Storage) -> None:
    publish(storage, 1, unchanged)
    publish(storage, 2, unchanged)
    assert find(storage) == 2
    publish(storage, 3, lambda body: body["data"].update(name="../x"))
    assert find(storage) == 2


def test_a_manifest_is_fetched_once_per_process(storage: Storage) -> None:
    folder = publish(storage, 1, unchanged)
    before = storage.io.requests
    assert [find(storage), find(storage), find(storage)] == [1, 1, 1]
    assert storage.io.requests - before == 3 + 1, "three listings, one manifest"

    publish(storage, 2, unchanged)
    assert find(storage) == 2
    EntryListing(storage, "lucene", fresh=True).newest_valid(folder)
    before = storage.io.requests
    EntryListing(storage, "lucene", fresh=True).newest_valid(folder)
    assert storage.io.requests - before == 2, "verification reads it again"


def test_a_definition_is_fetched_once_per_process(storage: Storage) -> None:
    definitions = DefinitionStore(storage)
    definitions.create("i", ("lucene",), [Column(name="a")], SEEN)
    definitions.live()
    before = storage.io.requests
    for _ in range(3):
        assert [each.name for each in DefinitionStore(storage).live()] == ["i"]
    assert storage.io.requests - before == 3, "listings alone"

    DefinitionStore(storage).drop("i")
    assert definitions.live() == ()


def test_the_document_cache_evicts_the_least_recently_used(storage: Storage) -> None:
    document = MANIFEST.read_bytes()
    cache = DocumentCache(Manifest, most_bytes=2 * len(document))
    fetched: list[str] = []

    def get(key: str) -> None:
        cache.get(key, lambda: fetched.append(key) or document, source=key)  # type: ignore[func-returns-value]

    for key in "aabacab":
        get(key)

    assert fetched == ["a", "b", "c", "b"]


def test_the_cache_holds_all_manifests_of_a_listing(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = DocumentCache(Manifest)
    monkeypatch.setattr("hudi_index_service.index.metadata.entry.known_manifests", known)
    base_files = [replace(BASE_FILE, file_id=f"f{number}") for number in range(3)]
    source = Path(publish(storage, 1, unchanged))
    for base_file in base_files:
        for file in storage.files(str(source)):
            folder = entry_folder("lucene", base_file)
            storage.create(f"{folder}/{Path(file.path).name}", storage.read(file.path))

    def walk() -> int:
        before = storage.io.requests
        listing = EntryListing(storage, "lucene")
        for base_file in base_files:
            assert listing.newest_valid(entry_folder("lucene", base_file)).generation == 1
        return storage.io.requests - before

    assert [walk(), walk()] == [1 + 3, 1]


def test_the_document_cache_is_limited_in_bytes() -> None:
    document = MANIFEST.read_bytes()
    cache = DocumentCache(Manifest, most_bytes=2 * len(document))
    fetched: list[str] = []
    for key in "abcbca":
        cache.get(key, lambda: fetched.append(key) or document, source=key)  # type: ignore[func-returns-value]  # noqa: B023
    assert fetched == ["a", "b", "c", "a"]


def test_a_generation_with_missing_or_short_data_is_not_used(storage: Storage) -> None:
    folder = publish(storage, 1, unchanged)
    publish(storage, 2, unchanged)
    storage.delete([f"{folder}/data-2.pack"])
    assert find(storage) == 1
    storage.replace(f"{folder}/data-1.pack", DATA[1:])
    with pytest.raises(EntryInvalid, match=r"data-2\.pack is missing"):
        find(storage)


def test_a_newer_format_on_top_stops_the_search(storage: Storage) -> None:
    publish(storage, 1, unchanged)
    publish(storage, 2, lambda body: body.update(format=[FORMAT_MAJOR + 1, 0]))
    with pytest.raises(NewerFormat):
        find(storage)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda body: body["base_file"].update(path="p/g_0-1-0_1.parquet"), "not from p/f_0"),
        (lambda body: body["base_file"].update(length=99), r"\(99 bytes\), not"),
        (lambda body: body.update(generation=9), "contains generation 9"),
        (lambda body: body.update(index_type="btree"), "of index type btree"),
    ],
)
def test_an_entry_of_another_base_file_or_type_is_refused(
    storage: Storage, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    publish(storage, 1, change)
    with pytest.raises(EntryInvalid, match=message):
        find(storage)


def test_partitions_with_equal_file_ids_have_separate_entries() -> None:
    other = BaseFile("q/f_0-1-0_1.parquet", "q", "f", "1", 100)
    assert entry_folder("lucene", other) != entry_folder("lucene", BASE_FILE)


# --- definitions -----------------------------------------------------------------------------


@pytest.fixture
def definitions(storage: Storage) -> DefinitionStore:
    return DefinitionStore(storage)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "a/b", "../a", "ä", "a" * 129, "a\n"])
def test_invalid_index_names_are_refused(definitions: DefinitionStore, name: str) -> None:
    with pytest.raises(IndexDefinitionInvalid, match="cannot name an index"):
        definitions.create(name, ("lucene",), [Column(name="a")], SEEN)


def test_names_with_a_common_prefix_are_kept_apart(definitions: DefinitionStore) -> None:
    short = definitions.create("a", ("lucene",), [Column(name="x")], SEEN)
    longer = definitions.create("a_0001", ("lucene",), [Column(name="x")], SEEN)
    definitions.drop("a")
    assert definitions.live() == (longer,)
    assert short.name == "a"


def test_the_fingerprint_covers_type_columns_and_options(definitions: DefinitionStore) -> None:
    first = definitions.create("a", ("lucene",), [Column(name="x")], SEEN)
    same = definitions.create("b", ("lucene",), [Column(name="x")], SEEN)
    other = definitions.create("c", ("lucene",), [Column(name="x", options={"a": "b"})], SEEN)
    assert first.fingerprint("lucene") == same.fingerprint("lucene") != other.fingerprint("lucene")


def stored(definitions: DefinitionStore, storage: Storage) -> bytes:
    definitions.create("i", ("lucene",), [Column(name="a")], SEEN)
    return storage.read(f"{DEFINITIONS_FOLDER}/i-0001.json")


@pytest.mark.parametrize(
    "second",
    [
        lambda document: document[:-20],
        lambda document: b"",
        lambda document: changed(document, lambda body: body.update(format=[2, 0])),
        lambda document: changed(document, lambda body: body.update(name="j", version=2)),
        lambda document: changed(document, lambda body: body.update(name="../j", version=2)),
        lambda document: document,
    ],
    ids=["cut", "empty", "newer", "other name", "bad name", "other number"],
)
def test_an_unreadable_version_disables_an_index_until_it_is_recreated(
    definitions: DefinitionStore, storage: Storage, second: Callable[[bytes], bytes]
) -> None:
    document = stored(definitions, storage)
    # It might have said that the index is dropped.
    storage.create(f"{DEFINITIONS_FOLDER}/i-0002.json", second(document))

    assert definitions.live() == ()
    with pytest.raises(IndexNotFound):
        definitions.drop("i")
    again = definitions.create("i", ("lucene",), [Column(name="b")], SEEN)
    assert again.version == 3
    assert definitions.live() == (again,)


def test_a_newer_minor_format_may_add_fields_to_definitions(
    definitions: DefinitionStore, storage: Storage
) -> None:
    def extend(body: dict[str, Any]) -> None:
        body["format"] = [FORMAT_MAJOR, FORMAT_MINOR + 1]
        body["added"] = 1
        body["columns"][0]["added"] = 1
        body["seen"]["added"] = 1

    newer = changed(stored(definitions, storage), extend)
    assert IndexDefinition.from_json(newer, source="i") == definitions.get("i")


def test_files_that_are_not_definitions_are_ignored(
    definitions: DefinitionStore, storage: Storage
) -> None:
    for name in ("notes.txt", "1a-0001.json", "i.json", "i-0001.json.tmp"):
        storage.create(f"{DEFINITIONS_FOLDER}/{name}", b"{}")
    assert definitions.live() == ()


DEEP = b"[" * 100_000


@pytest.mark.parametrize("name", ["started.json", "heartbeat", "finished.json", "cancel.json"])
def test_deeply_nested_build_record_is_damaged(name: str, tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.create(f"{BUILDS_FOLDER}/000001/started.json", b"{}")
    storage.replace(f"{BUILDS_FOLDER}/000001/{name}", DEEP)
    records = BuildRecords(storage, stale_seconds=60)
    assert [each.number for each in records.all()] == [1]
    assert records.failed_entries() == []


@pytest.mark.parametrize("kind", [IndexDefinition, Manifest, Summary])
@pytest.mark.parametrize("depth", [10, 300, 990, 100_000])
def test_deeply_nested_document_is_damaged(kind: type[Document], depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    with pytest.raises(EntryInvalid):
        kind.from_json(b'{"format": [1, 0], "x": %s}' % nested, source="it")
    with pytest.raises(EntryInvalid):
        kind.from_json(DEEP, source="it")
