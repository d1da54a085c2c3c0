"""Commit metadata of completed instants: operation, files written, file groups replaced."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hudi_index_service.errors import SnapshotChanged, TableFeatureUnsupported
from hudi_index_service.hudi.completeness import FileGroup, Listing
from hudi_index_service.hudi.file_names import BaseFileName
from hudi_index_service.hudi.hudi_rs.errors import hudi_rs_errors_named
from hudi_index_service.hudi.snapshot import Instant, ServiceKind
from hudi_index_service.hudi.timeline import Timeline

_SERVICES = {"CLUSTER": ServiceKind.CLUSTERING, "COMPACT": ServiceKind.COMPACTION}


class CommitMetadata:
    """Commit metadata by instant, decoded by hudi-rs and cached: it is immutable once completed.

    Args:
        timeline: hudi-rs' timeline (``HudiTable.get_timeline()``).
        active: The same active timeline from a listing.
        earlier: The cache for an older state of the timeline, reused for instants still active.
    """

    def __init__(
        self, timeline: Any, active: Timeline, earlier: "CommitMetadata | None" = None
    ) -> None:
        self._timeline = timeline
        cached = dict(earlier._cache) if earlier else {}
        # Archived instants are dropped: a process may watch the table for years.
        self._cache: dict[str, Mapping[str, Any]] = {
            requested: cached[requested] for requested in cached if requested in active.by_requested
        }

    def of(self, instant: Instant) -> Mapping[str, Any]:
        """The instant's metadata in Hudi's JSON form.

        Raises:
            SnapshotChanged: the instant is not (or no longer) in the active timeline.
        """
        if instant.requested not in self._cache:
            self._cache[instant.requested] = self._read(instant)
        return self._cache[instant.requested]

    def service_kind(self, instant: Instant) -> ServiceKind:
        """Which table service wrote the instant, by its ``operationType``."""
        operation = str(self.of(instant).get("operationType")).upper()
        return _SERVICES.get(operation, ServiceKind.NONE)

    def extra(self, instant: Instant) -> Mapping[str, str]:
        """The metadata that the instant's writer added (``extraMetadata``)."""
        metadata = self.of(instant).get("extraMetadata") or {}
        return {str(key): str(value) for key, value in metadata.items()}

    def rows_written(self, instant: Instant) -> dict[str, int]:
        """Path of each base file that the instant wrote → its rows, from the write statistics,
        which count every row of a rewritten file."""
        return {
            stat["path"]: int(stat["numWrites"])
            for stats in (self.of(instant).get("partitionToWriteStats") or {}).values()
            for stat in stats
            if str(stat.get("path")).endswith(".parquet") and isinstance(stat.get("numWrites"), int)
        }

    def replaced(self, timeline: Timeline, pinned: str) -> dict[FileGroup, str]:
        """File groups that commits up to `pinned` replaced → the last such instant."""
        replaced: dict[FileGroup, str] = {}
        for instant in timeline.instants:
            if instant.requested <= pinned:
                replaced.update(dict.fromkeys(self._replaced_by(instant), instant.requested))
        return replaced

    def check_not_cleaned(self, timeline: Timeline, pinned: str, listing: Listing) -> None:
        """Checks that the file groups of an earlier instant still have their base files.

        Every later instant that wrote to a file group, or replaced it, shows that the group existed
        before. If its base file from then is missing, the cleaner has deleted it.

        Raises:
            TableFeatureUnsupported: a file group's files of that time are gone.
        """
        present = {
            file.group
            for file in listing.files.values()
            if isinstance(file.name, BaseFileName) and file.name.instant <= pinned
        }
        begun_later: set[FileGroup] = set()
        for instant in timeline.instants:
            if instant.requested <= pinned:
                continue
            for group, previous in self._written_by(instant):
                if previous is None or previous > pinned:
                    begun_later.add(group)
            written = (g for g, previous in self._written_by(instant) if previous is not None)
            for group in (*written, *self._replaced_by(instant)):
                if group not in present and group not in begun_later:
                    raise TableFeatureUnsupported(
                        f"Files of instant {pinned} have been cleaned: those of file group "
                        f"{group[1]} in partition '{group[0]}'.",
                        remedy="Query a later instant, or let Hudi's cleaner retain more commits.",
                    )

    def _written_by(self, instant: Instant) -> Iterator[tuple[FileGroup, str | None]]:
        """The file groups an instant wrote to, each with the instant of its previous file."""
        for partition, stats in (self.of(instant).get("partitionToWriteStats") or {}).items():
            for stat in stats:
                previous = stat.get("prevCommit")
                yield (
                    (partition, stat["fileId"]),
                    previous if previous not in (None, "", "null") else None,
                )

    def _replaced_by(self, instant: Instant) -> Iterator[FileGroup]:
        if instant.action == "replacecommit":
            metadata = self.of(instant)
            for partition, ids in (metadata.get("partitionToReplaceFileIds") or {}).items():
                for file_id in ids:
                    yield partition, file_id

    def _read(self, instant: Instant) -> Mapping[str, Any]:
        list_instants = {
            "commit": self._timeline.get_completed_commits,
            "deltacommit": self._timeline.get_completed_deltacommits,
            "replacecommit": self._timeline.get_completed_replacecommits,
        }[instant.action]
        with hudi_rs_errors_named("The timeline"):
            instants = list_instants()
        for candidate in instants:
            if candidate.timestamp == instant.requested:
                with hudi_rs_errors_named(f"Instant {instant.requested}"):
                    text = self._timeline.get_instant_metadata_in_json(candidate)
                    metadata: Mapping[str, Any] = json.loads(text)
                return metadata
        raise SnapshotChanged(f"Instant {instant.requested} is not in the active timeline.")
