"""The active timeline, parsed from the names in its folder; commit metadata is read once per
instant and dropped with it."""

from typing import Any

from hudi_index_service.hudi import Instant
from hudi_index_service.hudi.hudi_rs.commit_metadata import CommitMetadata
from hudi_index_service.hudi.timeline import Timeline, parse_timeline

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


class KnownInstant:
    def __init__(self, timestamp: str) -> None:
        self.timestamp = timestamp


class HudiRsTimeline:
    """hudi-rs' timeline, recording the metadata read."""

    def __init__(self, *requested: str) -> None:
        self._requested = requested
        self.read: list[str] = []

    def get_completed_commits(self) -> list[KnownInstant]:
        return [KnownInstant(each) for each in self._requested]

    get_completed_deltacommits = get_completed_replacecommits = get_completed_commits

    def get_instant_metadata_in_json(self, instant: Any) -> str:
        self.read.append(instant.timestamp)
        return '{"operationType": "UPSERT"}'


def active(*requested: str) -> Timeline:
    return parse_timeline(f"{each}_{each}9.commit" for each in requested)


def test_metadata_of_archived_instants_is_dropped() -> None:
    known = CommitMetadata(HudiRsTimeline("1", "2"), active("1", "2"))
    for requested in ("1", "2"):
        known.of(Instant(requested, "commit"))
    for number in range(3, 50):
        timeline = HudiRsTimeline(str(number - 1), str(number))
        known = CommitMetadata(timeline, active(str(number - 1), str(number)), known)
        assert known.of(Instant(str(number - 1), "commit"))["operationType"] == "UPSERT"
        assert timeline.read == [], "already read, and still active"
        known.of(Instant(str(number), "commit"))
        assert timeline.read == [str(number)]
    again = HudiRsTimeline("3")
    CommitMetadata(again, active("3"), known).of(Instant("3", "commit"))
    assert again.read == ["3"], "dropped when it was archived"
