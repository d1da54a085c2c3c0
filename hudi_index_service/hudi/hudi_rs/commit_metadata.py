"""What the commits of completed instants say: operation, files written, file groups replaced, and
the table's schema."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from hudi_index_service.errors import SnapshotChanged, StorageFailed, TableFeatureUnsupported
from hudi_index_service.hudi.avro_schema import (
    UnknownAvroType,
    arrow_schema,
    unreadable_column,
)
from hudi_index_service.hudi.completeness import FileGroup, Listing
from hudi_index_service.hudi.hudi_rs import hudi_rs_errors_named
from hudi_index_service.hudi.snapshot import BaseFileName, Instant, ServiceKind
from hudi_index_service.hudi.timeline import Timeline

_SERVICES = {"CLUSTER": ServiceKind.CLUSTERING, "COMPACT": ServiceKind.COMPACTION}
_META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


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
        self._active = active
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
        present = {
            file.group
            for file in listing.files.values()
            if isinstance(file.name, BaseFileName) and file.name.instant <= pinned
        }
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


def latest_schema(
    table: Any, uri: str, *, populated: bool, has_base_files: bool = True
) -> tuple[pa.Schema, str | None]:
    """The latest schema, and the column that hudi-rs cannot read, if any.

    Args:
        table: hudi-rs' table.
        populated: Whether it has Hudi's meta columns.
        has_base_files: Whether hudi-rs can read its base files.

    Raises:
        StorageFailed: the schema cannot be read.
        TableFeatureUnsupported: a type is unknown, or the schema is only in a base file that
            hudi-rs cannot read.
    """
    suffix = "_with_meta_fields" if populated else ""
    try:
        with hudi_rs_errors_named(f"The schema of {uri}"):
            avro = getattr(table, f"get_schema_in_avro_str{suffix}")()
    except StorageFailed as error:
        if "no create schema" in error.message:
            return pa.schema([]), None
        if "No schema found in the commit metadata" not in error.message:
            raise
        if not has_base_files:
            raise TableFeatureUnsupported(
                f"{uri}: the latest commit does not hold the table's schema, and hudi-rs cannot "
                "read it from a base file in HDFS."
            ) from error
        # hudi-rs then reads it from a base file of that commit.
        with hudi_rs_errors_named(f"The schema of {uri}"):
            schema = getattr(table, f"get_schema{suffix}")()
        _refuse_fixed_bytes(schema, uri)
        return pa.schema([each.with_nullable(True) for each in schema]), None
    return _known_schema(avro, uri), unreadable_column(avro)


def _refuse_fixed_bytes(schema: pa.Schema, uri: str) -> None:
    for column in schema:
        if pa.types.is_fixed_size_binary(column.type):
            raise TableFeatureUnsupported(
                f"Only base files hold the schema of {uri}, and they do not tell whether column "
                f"{column.name} holds vectors."
            )


def schema_of_instant(
    requested: str, avro: str | None, latest: pa.Schema, *, uri: str, by_hudi_rs: bool
) -> pa.Schema:
    """The schema of an earlier instant, as Hudi uses it for time travel.

    Args:
        requested: The instant's requested time.
        avro: The schema in its commit metadata, without Hudi's meta columns.
        latest: The table's latest schema, which shows whether there are meta columns.
        by_hudi_rs: Whether hudi-rs reads rows of that instant.

    Raises:
        TableFeatureUnsupported: the instant holds no schema, or it cannot be read here.
    """
    if not avro:
        raise TableFeatureUnsupported(f"Instant {requested} does not hold the table's schema.")
    reason = unreadable_column(avro) if by_hudi_rs else None
    if reason is not None:
        raise TableFeatureUnsupported(f"hudi-rs cannot read instant {requested}: {reason}.")
    fields = [each for each in latest if each.name in _META_COLUMNS]
    meta_names = {each.name for each in fields}
    return pa.schema(
        [*fields, *(each for each in _known_schema(avro, uri) if each.name not in meta_names)]
    )


def _known_schema(avro: str, uri: str) -> pa.Schema:
    try:
        return arrow_schema(avro)
    except UnknownAvroType as error:
        raise TableFeatureUnsupported(
            f"The schema of {uri} has an unknown type: {error}."
        ) from error
