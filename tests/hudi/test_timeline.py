"""The active timeline, parsed from the names in its folder; commit metadata is read once per
instant and dropped with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service.errors import StorageFailed
from hudi_index_service.hudi import Instant
from hudi_index_service.hudi.commit_metadata import CommitMetadata
from hudi_index_service.hudi.timeline import parse_timeline
from hudi_index_service.storage.store import Storage

VERSION_9 = [
    "101.commit.requested",
    "101.inflight",
    "101_105.commit",
    ".101_105.commit.crc",
    "110.deltacommit.requested",
    "110.deltacommit.inflight",
    "110_119.deltacommit",
    "120.clustering.requested",
    "120.clustering.inflight",
    "120_125.replacecommit",
    "130_131.clean",
    "140.compaction.requested",
    "150.deltacommit.requested",
    "150.deltacommit.inflight",
    "160.commit.requested",
    "160.inflight",
]


def test_completed_and_pending_instants():
    timeline = parse_timeline(VERSION_9)
    assert timeline.instants == (
        Instant("101", "commit", "105"),
        Instant("110", "deltacommit", "119"),
        Instant("120", "replacecommit", "125"),
    )
    assert timeline.pending == {"140": "compaction", "150": "deltacommit", "160": "commit"}
    assert (timeline.start, timeline.latest) == ("101", "120")


def test_version_6_names_have_no_completion_time():
    timeline = parse_timeline(
        ["101.commit.requested", "101.inflight", "101.commit", "hoodie.properties", "102.inflight"]
    )
    assert timeline.instants == (Instant("101", "commit", None),)
    assert timeline.pending == {"102": "commit"}


def test_is_committed():
    timeline = parse_timeline([*VERSION_9, "090.commit.requested", "090.inflight"])
    assert timeline.is_committed("110")
    assert timeline.is_committed("095"), "archived"
    assert not timeline.is_committed("090"), "older than the rest, but still in flight"
    assert not timeline.is_committed("115"), "rolled back"
    assert not timeline.is_committed("150")
    assert not parse_timeline([]).is_committed("150")


def test_savepoint_does_not_move_the_start_back():
    # Archiving beyond savepoints leaves the savepointed instant behind, and a gap after it.
    timeline = parse_timeline(["050_051.commit", "050_052.savepoint", *VERSION_9])
    assert timeline.start == "101"
    assert timeline.is_committed("077")


def test_version_changes_with_the_listing():
    version = parse_timeline(VERSION_9).version
    assert parse_timeline(reversed(VERSION_9)).version == version
    assert parse_timeline([*VERSION_9, "170.commit.requested"]).version != version
    assert parse_timeline(VERSION_9[:-1]).version != version
    assert parse_timeline([*VERSION_9, "notes.txt"]).version == version


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """A table's folder, with a timeline."""
    (tmp_path / ".hoodie" / "timeline").mkdir(parents=True)
    return Storage(tmp_path)


def commit(storage: Storage, requested: str, action: str = "commit", **metadata: Any) -> str:
    """Completes an instant; returns its file's name."""
    name = f"{requested}_{requested}9.{action}"
    storage.create(f".hoodie/timeline/{name}", json.dumps(metadata).encode())
    return name


def test_metadata_of_archived_instants_is_dropped(storage: Storage) -> None:
    def known_of(*names: str, earlier: CommitMetadata | None = None) -> CommitMetadata:
        return CommitMetadata(storage, 8, parse_timeline(names), earlier)

    names = [commit(storage, str(number), operationType="UPSERT") for number in range(1, 50)]
    known = known_of(*names[:2])
    for requested in ("1", "2"):
        known.of(Instant(requested, "commit", f"{requested}9"))
    for number in range(3, 50):
        known = known_of(*names[number - 2 : number], earlier=known)
        before = storage.io.requests
        earlier = Instant(str(number - 1), "commit", f"{number - 1}9")
        assert known.of(earlier)["operationType"] == "UPSERT"
        assert storage.io.requests == before, "already read, and still active"
        known.of(Instant(str(number), "commit", f"{number}9"))
        assert storage.io.requests == before + 1
    known_of(names[2], earlier=known).of(Instant("3", "commit", "39"))
    assert storage.io.requests == before + 2, "dropped when it was archived"


def test_the_schema_is_that_of_the_last_write(storage: Storage) -> None:
    def schema() -> str | None:
        names = storage.names_in(".hoodie/timeline")
        return CommitMetadata(storage, 8, parse_timeline(names)).latest_schema()

    assert schema() is None
    commit(storage, "1", "replacecommit", operationType="CLUSTER", extraMetadata={"schema": "c"})
    assert schema() == "c", "the writes before it were archived"
    commit(storage, "2", operationType="UPSERT", extraMetadata={"schema": "first"})
    commit(storage, "3", operationType="INSERT", extraMetadata={"schema": "second"})
    commit(storage, "4", "replacecommit", operationType="CLUSTER", extraMetadata={"schema": "c"})
    commit(storage, "5", operationType="DELETE_PARTITION", extraMetadata={"schema": ""})
    commit(storage, "6", operationType="DELETE", extraMetadata=None)
    assert schema() == "second"


@pytest.mark.parametrize("content", [b"{", b"[]", b"Obj\x01", b"Obj\x01\x02\x16avro"])
def test_a_damaged_commit_is_named(storage: Storage, content: bytes) -> None:
    storage.create(".hoodie/timeline/1_2.commit", content)
    known = CommitMetadata(storage, 8, parse_timeline(["1_2.commit"]))
    with pytest.raises(StorageFailed, match=r"timeline/1_2\.commit is no commit metadata"):
        known.of(Instant("1", "commit", "2"))


def test_an_empty_commit_says_nothing(storage: Storage) -> None:
    storage.create(".hoodie/timeline/1_2.commit", b"")
    known = CommitMetadata(storage, 8, parse_timeline(["1_2.commit"]))
    assert known.rows_written(Instant("1", "commit", "2")) == {}
