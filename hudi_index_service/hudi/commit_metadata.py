"""What the commits of completed instants say: operation, files written, file groups replaced, and
the table's schema.

Since table version 8 an instant's file is in Avro's container format, before it is JSON; both have
the same names. (Hudi's `CommitMetadataSerDeV1` and `CommitMetadataSerDeV2`.)
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import fastavro

from hudi_index_service.errors import SnapshotChanged, StorageFailed, TableFeatureUnsupported
from hudi_index_service.hudi.completeness import Listing
from hudi_index_service.hudi.snapshot import FileGroup, Instant, ServiceKind
from hudi_index_service.hudi.timeline import Timeline, timeline_folder
from hudi_index_service.storage.store import Storage

_SERVICES = {kind.value: kind for kind in ServiceKind}
_KEEP_THE_SCHEMA = ("CLUSTER", "COMPACT", "INDEX", "LOG_COMPACT")
"""Operations whose schema is that of their planning, as in Hudi's
``WriteOperationType.canUpdateSchema``."""

_AVRO = b"Obj\x01"
_AT_ONCE = 16


class CommitMetadata:
    """Commit metadata by instant, read once: it is immutable when an instant is completed.

    Args:
        storage: The files below the table's base path.
        table_version: Tells where the timeline is.
        active: The active timeline.
        earlier: The metadata known of an older state of the timeline, kept for instants that are
            still active.
    """

    def __init__(
        self,
        storage: Storage,
        table_version: int,
        active: Timeline,
        earlier: "CommitMetadata | None" = None,
    ) -> None:
        self._storage = storage
        self._folder = timeline_folder(table_version)
        self._active = active
        known = dict(earlier._known) if earlier else {}
        # Archived instants are dropped: a process may watch the table for years.
        self._known: dict[str, Mapping[str, Any]] = {
            requested: known[requested] for requested in known if requested in active.by_requested
        }

    def of(self, instant: Instant) -> Mapping[str, Any]:
        """The instant's metadata, as in Hudi's JSON form.

        Raises:
            SnapshotChanged: the instant is not (or no longer) in the active timeline.
            StorageFailed: its file is damaged.
        """
        known = self._known.get(instant.requested)
        if known is None:
            known = self._known[instant.requested] = self._read(instant)
        return known

    def fetch(self, instants: Sequence[Instant]) -> None:
        """Reads the metadata of instants that is not known yet, many at once. Raises what `of`
        raises."""
        unknown = [each for each in instants if each.requested not in self._known]
        if unknown:
            with ThreadPoolExecutor(min(_AT_ONCE, len(unknown)), "commits") as threads:
                list(threads.map(self.of, unknown))

    def service_kind(self, instant: Instant) -> ServiceKind:
        """Which table service wrote the instant, by its ``operationType``."""
        return _SERVICES.get(self._operation(instant), ServiceKind.NONE)

    def extra(self, instant: Instant) -> Mapping[str, str]:
        """The metadata that the instant's writer added (``extraMetadata``)."""
        metadata = self.of(instant).get("extraMetadata") or {}
        return {str(key): str(value) for key, value in metadata.items() if value is not None}

    def latest_schema(self) -> str | None:
        """The table's schema, in Avro's JSON without Hudi's meta columns: that of the last write.
        Where no active write holds one, that of a table service; None if none does.

        Source: Hudi's ``TableSchemaResolver.getTableAvroSchemaFromLatestCommit``.
        """
        schema = None
        for instant in reversed(self._active.instants):
            found = self.extra(instant).get("schema")
            if found and self._operation(instant) not in _KEEP_THE_SCHEMA:
                return found
            schema = schema or found
        return schema or None

    def rows_written(self, instant: Instant) -> dict[str, int]:
        """Path of each base file that the instant wrote → its rows, from the write statistics,
        which count every row of a rewritten file."""
        return {
            stat["path"]: int(stat["numWrites"])
            for stats in (self.of(instant).get("partitionToWriteStats") or {}).values()
            for stat in stats
            if str(stat.get("path")).endswith(".parquet") and isinstance(stat.get("numWrites"), int)
        }

    def replaced(self, pinned: str) -> dict[FileGroup, str]:
        """File groups that commits up to `pinned` replaced → the last such instant."""
        replaced: dict[FileGroup, str] = {}
        for instant in self._active.instants:
            if instant.requested <= pinned:
                replaced.update(dict.fromkeys(self._replaced_by(instant), instant.requested))
        return replaced

    def check_not_cleaned(self, pinned: str, listing: Listing) -> None:
        """Checks that the file groups of an earlier instant still have their base files.

        Every later instant that wrote to a file group, or replaced it, shows that the group existed
        before. If its base file from then is missing, the cleaner has deleted it.

        Raises:
            TableFeatureUnsupported: a file group's files of that time are gone.
        """
        present = {file.group for file in listing.base_files if file.instant <= pinned}
        begun_later: set[FileGroup] = set()
        for instant in self._active.instants:
            if instant.requested <= pinned:
                continue
            written = list(self._written_by(instant))
            begun_later |= {group for group, before in written if before is None or before > pinned}
            for group in (*(group for group, _ in written), *self._replaced_by(instant)):
                if group not in present and group not in begun_later:
                    raise TableFeatureUnsupported(
                        f"Files of instant {pinned} have been cleaned: those of file group "
                        f"{group[1]} in partition '{group[0]}'.",
                        remedy="Query a later instant, or let Hudi's cleaner retain more commits.",
                    )

    def _operation(self, instant: Instant) -> str:
        return str(self.of(instant).get("operationType")).upper()

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
        path = f"{self._folder}/{instant.file_name}"
        try:
            return _decoded(self._storage.read(path))
        except FileNotFoundError as error:
            raise SnapshotChanged(
                f"Instant {instant.requested} is not in the active timeline."
            ) from error
        # What fastavro raises for damaged files has no base class.
        except (AttributeError, EOFError, LookupError, TypeError, ValueError) as error:
            raise StorageFailed(
                f"{self._storage.uri}/{path} is no commit metadata: {error!r}."
            ) from error


def _decoded(data: bytes) -> Mapping[str, Any]:
    """The metadata in a completed instant's file; an empty file says nothing."""
    if not data:
        return {}
    found: Any
    if data.startswith(_AVRO):
        (found,) = fastavro.reader(BytesIO(data))
    else:
        found = json.loads(data)
    if not isinstance(found, dict):
        raise TypeError("it is no record")
    return found
