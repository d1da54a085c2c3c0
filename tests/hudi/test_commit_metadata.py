"""Commit metadata is read once per instant and dropped with it."""

from typing import Any

from hudi_index_service.hudi.hudi_rs.commit_metadata import CommitMetadata
from hudi_index_service.hudi.snapshot import Instant
from hudi_index_service.hudi.timeline import Timeline, parse_timeline


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
