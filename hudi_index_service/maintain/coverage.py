"""Compares a table's base files with its entries and its timeline: what indexes cover, what is due,
and how far they are behind."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import time

from hudi_index_service.build.strategy import Strategy, selector
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.hudi.snapshot import BaseFile, FileSlice
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.build_records import BuildRecords
from hudi_index_service.index.metadata.documents import NewerFormat
from hudi_index_service.index.metadata.entry import Entry, EntryListing, refuse_newer
from hudi_index_service.index.metadata.manifest import entry_folder
from hudi_index_service.index.metadata.requirements import Requirement, holds_all
from hudi_index_service.index.metadata.retention import (
    expired_entries,
    retained_instants,
    stored_index_types,
)
from hudi_index_service.maintain.status import (
    IndexStatus,
    InstantCoverage,
    Outliving,
    PartitionCoverage,
    TableStatus,
)

_BUILDS_SHOWN = 10
_INSTANTS_COUNTED = 50


def table_status(
    table: HudiTable, requirements: Sequence[Requirement], records: BuildRecords, settings: Settings
) -> TableStatus:
    """The status of a table's indexes.

    Raises:
        TableFeatureUnsupported: the table cannot be read completely here.
    """
    snapshot = table.snapshot()
    types = {*stored_index_types(table.storage), *(each.index_type for each in requirements)}
    listings = {name: EntryListing(table.storage, name) for name in sorted(types)}
    coverage = _Coverage(table, snapshot.slices, listings, settings)
    statuses = [coverage.of(requirement) for requirement in requirements]
    indexes = tuple(map(coverage.sharing, statuses))
    expired = expired_entries(table, settings, listings.values())
    return TableStatus(
        uri=table.storage.uri,
        at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        instant=snapshot.instant,
        indexes=indexes,
        builds=tuple(records.all(limit=_BUILDS_SHOWN)),
        failing=tuple(
            each
            for each in records.failed_entries()
            if (each.path, each.index_type) in coverage.lacking
        ),
        outliving=Outliving(
            len(expired), sum(file.size for files in expired.values() for file in files)
        ),
        index_bytes=coverage.index_bytes,
    )


class _Coverage:
    def __init__(
        self,
        table: HudiTable,
        slices: Sequence[FileSlice],
        listings: Mapping[str, EntryListing],
        settings: Settings,
    ) -> None:
        self._table = table
        self._slices = slices
        self._listings = listings
        self._selects = selector(Strategy.INCREMENTAL, table, settings.build.on)
        self._retained = retained_instants(table, settings)
        self._now = time()
        self._instants = table.timeline().by_requested
        self._rows: dict[str, Mapping[str, int]] = {}
        self.lacking: set[tuple[str, str]] = set()
        """Path and index type of the entries that do not meet a requirement checked so far."""
        self._data_files: dict[tuple[str, str], tuple[int, set[str]]] = {}
        """Index type and path of the data files that meet a requirement checked so far → length,
        and names of the indexes that use the file."""

    @property
    def index_bytes(self) -> int:
        """Bytes of the data files that meet the requirements checked so far, each counted once."""
        return sum(length for length, _ in self._data_files.values())

    def sharing(self, status: IndexStatus) -> IndexStatus:
        """The status with the indexes that share its files; call it after all `of` calls."""
        own = status.definition.name
        shared = {
            name
            for (index_type, _), (_, names) in self._data_files.items()
            if index_type == status.index_type and own in names
            for name in names
        }
        return replace(status, shared_with=tuple(sorted(shared - {own})))

    def of(self, requirement: Requirement) -> IndexStatus:
        """The status of one index type of one index."""
        listing = self._listings[requirement.index_type]
        kind = index_type(requirement.index_type)
        counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        by_instant: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        index_bytes = 0
        due: list[BaseFile] = []
        missing: list[BaseFile] = []  # those of the due ones that have no entry at all
        skipped: dict[str, tuple[int, str]] = {}
        unread: dict[str, int] = {}
        outdated = newer = damaged = 0
        for file_slice in self._slices:
            base_file = file_slice.base_file
            count, written = counts[base_file.partition], by_instant[base_file.instant]
            count[0] += 1
            written[0] += 1
            entry: Entry | None
            try:
                entry = listing.find(base_file)
                refuse_newer(entry.manifest, kind)
            except NewerFormat:  # a newer release's entry, which is not rebuilt here either
                newer += 1
                continue
            except EntryInvalid:
                entry = None
            not_read = None if entry is None else entry.manifest.not_read(kind)
            if not_read is not None:
                unread[not_read] = unread.get(not_read, 0) + 1
            elif entry is not None and holds_all(entry.manifest, requirement.columns):
                for spec in requirement.columns:
                    if reason := entry.manifest.skips(spec):
                        skipped[spec.name] = skipped.get(spec.name, (0, ""))[0] + 1, reason
                length = entry.manifest.data.length
                count[1] += 1
                written[1] += 1
                index_bytes += length
                key = (requirement.index_type, entry.data_path)
                _, index_names = self._data_files.setdefault(key, (length, set()))
                index_names.add(requirement.definition.name)
                continue
            if requirement.columns:
                self.lacking.add((base_file.path, requirement.index_type))
                is_retained = self._retained is None or base_file.instant in self._retained
                if is_retained and self._selects(requirement.definition, base_file):
                    due.append(base_file)
                    written[2] += 1
                    if entry is None:
                        missing.append(base_file)
                elif entry is not None:
                    outdated += 1
                elif listing.generations(entry_folder(requirement.index_type, base_file)):
                    damaged += 1
                elif self._is_empty(base_file):
                    count[1] += 1
                    written[1] += 1
        newest = sorted(by_instant, reverse=True)[:_INSTANTS_COUNTED]
        partitions = tuple(PartitionCoverage(name, *counts[name]) for name in sorted(counts))
        return IndexStatus(
            requirement.definition,
            requirement.index_type,
            base_files=sum(each.base_files for each in partitions),
            covered=sum(each.covered for each in partitions),
            index_bytes=index_bytes,
            partitions=partitions,
            due=len(due),
            lag_instants=self._instants_since(missing),
            lag_seconds=self._seconds_since(missing),
            outdated=outdated,
            newer=newer,
            skipped=skipped,
            damaged=damaged,
            unread=unread,
            instants=tuple(InstantCoverage(name, *by_instant[name]) for name in newest),
        )

    def _is_empty(self, base_file: BaseFile) -> bool:
        """Whether the commit says that the base file was written without rows."""
        if base_file.instant not in self._rows:
            instant = self._instants.get(base_file.instant)
            self._rows[base_file.instant] = (
                {} if instant is None else self._table.rows_written(instant)
            )
        return self._rows[base_file.instant].get(base_file.path) == 0

    def _instants_since(self, due: Sequence[BaseFile]) -> int:
        if not due:
            return 0
        oldest = min(file.instant for file in due)
        return sum(each.requested >= oldest for each in self._table.completed_instants())

    def _seconds_since(self, due: Sequence[BaseFile]) -> float:
        """Seconds since the oldest base file was modified. Instants do not serve: they are in their
        writer's unknown time zone, and archived ones have no completion time."""
        for base_file in sorted(due, key=lambda file: file.instant):
            try:
                written = self._table.storage.status(base_file.path).modified
            except FileNotFoundError:  # cleaned since
                continue
            return max(0.0, self._now - written)
        return 0.0
