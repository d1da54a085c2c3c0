"""How many requests a query sends to a remote store, and how many of them depend on the response to
another, for a table of a hundred base files."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.hudi import Instant, opened_table, table
from hudi_index_service.hudi.commit_metadata import CommitMetadata
from hudi_index_service.hudi.completeness import Listing, list_data_files
from hudi_index_service.hudi.properties import read_properties_file
from hudi_index_service.index.metadata import entry
from hudi_index_service.index.metadata.documents import DocumentCache
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.index_folder import IndexFolder, IndexFolderReader
from hudi_index_service.storage.store import Storage
from tests.indexed import GoldenIndex, indexed
from tests.remote.conftest import Copies
from tests.remote.s3_server import S3Server

FILES = 100
# Requests of a cold query that do not grow with the number of files: properties, timeline, commit
# metadata, definitions, listings of up to a thousand files each, the schema.
FIXED = 20


@pytest.fixture(scope="module")
def hundred(golden_index: GoldenIndex, s3: S3Server) -> str:
    """An indexed table in a bucket, with a hundred partitions of one base file each. The amounts
    differ in each file; the messages are the same in all."""
    return s3.put(golden_index("hundred_base_files", ["amount", "msg"], name="by_amount"))


@pytest.fixture
def cold(
    hundred: str, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[IndexedTable]:
    """The table with nothing cached."""
    monkeypatch.setattr(entry, "known_manifests", DocumentCache(Manifest))
    settings = Settings(cache_folder=tmp_path / "cache", read=ReadSettings(parallelism=16))
    s3.forget()
    with open_table(hundred, storage_options=s3.options, settings=settings) as table:
        yield table


@pytest.fixture
def far_away(s3: S3Server) -> Iterator[None]:
    """Each response of the store takes 50 ms, so that requests in parallel are one round."""
    s3.latency = 0.05
    yield
    s3.latency = 0.0


def requests_by_kind(s3: S3Server) -> Counter[str]:
    """The number of requests by kind of file."""
    kinds = {
        "/manifest-": "manifest",
        "/_service/instants/": "summary",
        ".pack": "data",
        ".parquet": "base file",
    }
    return Counter(
        next((kind for sign, kind in kinds.items() if sign in request), "other")
        for request in s3.requests
    )


@pytest.mark.usefixtures("far_away")
def test_cold_query_for_one_value_opens_one_file(cold: IndexedTable, s3: S3Server) -> None:
    scan = cold.scan("amount = 55", columns=["amount"])
    assert scan.to_arrow().column("amount").to_pylist() == [55]

    requests = requests_by_kind(s3)
    instants, opened = 1, 1
    assert len(s3.requests) <= FIXED + instants + 2 * opened
    assert (requests["summary"], requests["manifest"]) == (0, 1), "segments exclude all others"
    assert (requests["data"], requests["base file"]) == (1, 1), "only one file is opened"
    assert scan.statistics.index_requests == 1
    assert scan.statistics.index_bytes == sum(s3.sent[r] for r in s3.requests if ".pack" in r)
    assert scan.statistics.bytes_read == sum(s3.sent[r] for r in s3.requests if ".parquet" in r)
    assert {r.split("/")[4] for r in s3.requests if ".parquet" in r} == {"p027"}
    assert requests["other"] <= FIXED
    timeline = [each for each in s3.listed if each.endswith("/.hoodie/timeline/")]
    assert len(timeline) == 2, "before and after the files are listed"
    assert s3.rounds < FILES / 2
    plan = scan.explain().plan
    assert (plan.count(Access.INDEX), plan.count(Access.SKIP)) == (1, FILES - 1)
    assert {each.rule for each in plan.slices if each.access is Access.SKIP} == {
        "excluded_by_statistics"
    }
    assert "statistics rule the predicate out" in str(scan.explain())


@pytest.mark.usefixtures("far_away")
def test_cold_query_that_opens_every_file(cold: IndexedTable, s3: S3Server) -> None:
    assert cold.scan("msg <> 'Buying car 0'").count() == FILES

    requests = requests_by_kind(s3)
    assert (requests["summary"], requests["manifest"], requests["data"]) == (1, 0, FILES)
    assert requests["base file"] == 0, "the index alone answers"
    assert requests["other"] <= FIXED
    assert s3.rounds < FILES / 3, "many entries are opened at once"


@pytest.mark.usefixtures("far_away")
def test_a_prewarmed_table_sends_no_request_for_its_indexes(
    cold: IndexedTable, s3: S3Server
) -> None:
    ready = cold.prewarm(["id"])
    assert (ready.entries, ready.opened, ready.files_left_out) == (FILES, FILES, FILES)
    assert s3.rounds < FILES / 3, "many entries are opened at once"
    s3.forget()
    scan = cold.scan("amount > 50", columns=["id"], use_index="require")
    rows = scan.to_arrow()
    assert rows.num_rows > 0
    requests = requests_by_kind(s3)
    assert (requests["manifest"], requests["data"], requests["summary"]) == (0, 0, 0)
    assert (scan.statistics.index_requests, sum(x.opened for x in scan.statistics.slices)) == (0, 0)


def test_skipped_partitions_send_no_requests(cold: IndexedTable, s3: S3Server) -> None:
    scan = cold.scan("part = 'p010' AND amount = 20", columns=["id"])
    assert sorted(scan.to_arrow().column("id").to_pylist()) == ["20"]

    requests = requests_by_kind(s3)
    assert (requests["summary"], requests["manifest"], requests["data"]) == (0, 1, 1)
    assert requests["other"] <= FIXED
    assert "the partition's path rules the predicate out" in str(scan.explain())


@pytest.mark.usefixtures("far_away")
def test_warm_query_lists_three_folders_concurrently(cold: IndexedTable, s3: S3Server) -> None:
    scan = cold.scan("amount = 55", columns=["id"])
    assert scan.count() == 1
    s3.forget()
    assert scan.count() == cold.scan("amount = 56").count() == 1
    assert requests_by_kind(s3) == {"other": 6, "manifest": 1, "data": 1}, "for the second file"
    s3.forget()
    assert scan.count() == 1
    assert len(s3.requests) == len(s3.listed) == 3
    assert s3.rounds <= 4


def entries(uri: str, s3: S3Server) -> list[str]:
    """The files of the table's entries."""
    files = Storage(uri, s3.options).files(".hoodie/.index/lucene")
    return [each.path for each in files]


def test_entry_that_only_a_segment_knows_costs_a_scan(
    cold: IndexedTable, hundred: str, s3: S3Server
) -> None:
    storage = Storage(hundred, s3.options)
    (slice_plan,) = (
        each for each in cold.scan("amount = 55").planned().plan.slices if each.entries
    )
    folder = slice_plan.entries[0].entry.folder
    kept = {path: storage.read(path) for path in entries(hundred, s3) if path.startswith(folder)}
    assert len(kept) == 2
    storage.delete(list(kept))
    try:
        with open_table(hundred, storage_options=s3.options) as fresh:
            scan = fresh.scan("amount = 55", columns=["amount"])
            assert scan.to_arrow().column("amount").to_pylist() == [55]
            assert scan.statistics.count(Access.SCAN) == 1
    finally:
        for path, content in kept.items():
            storage.create(path, content)


def test_entry_built_anew_is_found_by_an_open_table(
    copies: Copies, s3: S3Server, settings: Settings
) -> None:
    table = indexed(copies.uri, ["amount"], storage_options=s3.options, settings=settings)
    scan = table.scan("amount = 900", columns=["amount"], query_type="read_optimized")
    assert scan.to_arrow().num_rows == 1
    before = set(entries(copies.uri, s3))
    with open_table(copies.uri, storage_options=s3.options) as other:
        other.drop_index("i", purge=True)
        indexed(other, ["amount", "msg"])
    assert before.isdisjoint(path for path in entries(copies.uri, s3) if path.endswith(".pack"))
    assert scan.to_arrow().num_rows == 1
    assert (scan.statistics.count(Access.INDEX), scan.statistics.count(Access.SCAN)) == (1, 0)
    (entry,) = (e for each in scan.planned().plan.slices for e in each.entries)
    assert entry.entry.data_path not in before
    assert entry.names == ("amount", "msg")


def test_entries_that_lack_a_column_are_listed_once_and_at_once(
    cold: IndexedTable, hundred: str, s3: S3Server
) -> None:
    """A column was added to the index and is not built yet."""
    cold.alter_index("by_amount", add=["id"])
    try:
        scan = cold.scan("id = '55' AND part < 'p016'", columns=["id"])
        assert scan.count() == 0
        assert scan.statistics.count(Access.SCAN) == 16
        s3.forget()
        assert scan.count() == 0
        folders = [each for each in s3.listed if "/.hoodie/.index/lucene/" in each]
        assert folders == []
    finally:
        cold.alter_index("by_amount", drop=["id"])


def test_small_base_file_is_read_whole_in_one_request(cold: IndexedTable, s3: S3Server) -> None:
    scan = cold.scan("part = 'p010' AND amount < 1000", columns=["id"], use_index="never")
    assert sorted(scan.to_arrow().column("id").to_pylist()) == ["20", "21"]
    assert [r.split()[0] for r in s3.requests if ".parquet" in r] == ["GET"]


def test_files_and_index_are_listed_while_properties_and_commits_are_read(
    cold: IndexedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, index = Event(), Event()
    fetched, looked = CommitMetadata.fetch, IndexFolderReader.look

    def list_files(storage: Storage, *, partitioned: bool) -> Listing:
        files.set()
        return list_data_files(storage, partitioned=partitioned)

    def look(self: IndexFolderReader) -> IndexFolder:
        index.set()
        return looked(self)

    def read(storage: Storage) -> bytes:
        assert files.wait(60), "the files are not being listed"
        return read_properties_file(storage)

    def fetch(self: CommitMetadata, instants: Sequence[Instant]) -> None:
        assert files.wait(60), "the files are not being listed"
        assert index.wait(60), "the index folder is not being read"
        fetched(self, instants)

    monkeypatch.setattr(opened_table, "list_data_files", list_files)
    monkeypatch.setattr(table, "read_properties_file", read)
    monkeypatch.setattr(IndexFolderReader, "look", look)
    monkeypatch.setattr(CommitMetadata, "fetch", fetch)

    assert cold.scan("amount = 55").count() == 1


def test_index_folder_read_in_advance_serves_one_plan(cold: IndexedTable, s3: S3Server) -> None:
    def definitions_listed() -> int:
        return sum("/definitions" in prefix for prefix in s3.listed)

    scan = cold.scan("amount = 55")
    assert scan.count() == 1
    assert definitions_listed() == 1
    assert scan.count() == 1
    assert definitions_listed() == 2, "a later plan looks again"
