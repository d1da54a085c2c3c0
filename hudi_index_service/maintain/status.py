"""The status of a table's indexes: coverage, lag behind the timeline, builds, and entries that
outlive their base file."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from time import time
from typing import Any, overload

from hudi_index_service.build.record import BuildRecord, BuildRecords, BuildState
from hudi_index_service.build.retry import FailedEntry
from hudi_index_service.build.strategy import Strategy, selector
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.hudi.protocol import BaseFile, FileSlice, HudiTable
from hudi_index_service.index.metadata.column_fields import names_by_use
from hudi_index_service.index.metadata.definitions import IndexDefinition
from hudi_index_service.index.metadata.demand import holds_all
from hudi_index_service.index.metadata.documents import NewerFormat
from hudi_index_service.index.metadata.entry import Entry, EntryListing
from hudi_index_service.index.metadata.folders import entry_folder
from hudi_index_service.index.metadata.requirements import Requirement
from hudi_index_service.index.metadata.retention import (
    expired_entries,
    retained_instants,
    stored_index_types,
)
from hudi_index_service.row_formats import html_table
from hudi_index_service.wording import counted

_BUILDS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class PartitionCoverage:
    """The counts of `IndexStatus` for one partition ("" if the table is not partitioned)."""

    partition: str
    base_files: int
    covered: int


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The status of one index type of one index, for the present snapshot.

    Attributes:
        base_files: Number of base files in the snapshot.
        covered: Number of those with a valid entry that has all of the index's columns: queries
            read them through the index. A base file that was written without rows needs no entry.
            Columns that only Spark reads in a base file are not missing there; see `skipped`.
        index_bytes: Bytes of their entries' data files, including other indexes' columns.
        shared_with: Names of other indexes that share any of these data files. The bytes count for
            them too; `TableStatus.index_bytes` counts each file once.
        partitions: The same by partition, sorted.
        due: Number of base files that INCREMENTAL would build now.
        lag_instants: Completed instants on the active timeline since the oldest due base file
            without any entry was written, including its own; 0 if there is none.
        lag_seconds: Time since that base file was written, by the store's clock; 0 if there is
            none.
        outdated: Number of base files whose entry is of an earlier form of the definition: it
            serves what still matches. INCREMENTAL leaves them as they are, REFRESH builds them.
        newer: Number of base files whose entry is of a newer release, which no build changes here.
        skipped: Columns that some entries lack, since only Spark reads them in that base file → the
            number of these base files, and the reason for one of them.
        damaged: Number of base files whose entry is damaged or not about them, so that they are
            scanned, and which INCREMENTAL does not build.
    """

    definition: IndexDefinition
    index_type: str
    base_files: int
    covered: int
    index_bytes: int
    partitions: tuple[PartitionCoverage, ...] = ()
    due: int = 0
    lag_instants: int = 0
    lag_seconds: float = 0.0
    shared_with: tuple[str, ...] = ()
    outdated: int = 0
    newer: int = 0
    skipped: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    damaged: int = 0

    def __repr__(self) -> str:
        name = f"{self.definition.name} ({self.index_type})"
        return f"<{name}: {self.covered} of {self.base_files} base files covered, {self.due} due>"

    @property
    def coverage(self) -> float:
        """The covered fraction of the base files, from 0 to 1; 1 for a table without any."""
        return self.covered / self.base_files if self.base_files else 1.0

    @property
    def left(self) -> int:
        """The number of base files without an entry that INCREMENTAL does not build either."""
        others = self.due + self.outdated + self.newer + self.damaged
        return self.base_files - self.covered - others

    def to_dict(self) -> dict[str, Any]:
        """As `hudi-index status --output json` prints it."""
        of_indexed, of_stored = names_by_use(self.definition)
        return {
            "index": self.definition.name,
            "index_type": self.index_type,
            "columns": of_indexed,
            "base_files": self.base_files,
            "covered": self.covered,
            "coverage": round(self.coverage, 4),
            "index_bytes": self.index_bytes,
            "shared_with": list(self.shared_with),
            "due": self.due,
            "lag_instants": self.lag_instants,
            "lag_seconds": round(self.lag_seconds, 1),
            "partitions": [asdict(each) for each in self.partitions],
            "outdated": self.outdated,
            "newer": self.newer,
            "skipped": [
                {"column": name, "base_files": number, "reason": reason}
                for name, (number, reason) in self.skipped.items()
            ],
            "stored": of_stored,
            "damaged": self.damaged,
        }


@dataclass(frozen=True, slots=True)
class Outliving:
    """Entries that outlive their base file or (``retention: instant``) their instant. They contain
    values erased from the table until the next clean removes them."""

    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits beyond which alerts are raised; None for no limit.

    Attributes:
        max_lag_seconds, max_lag_instants: Maximum lag of any index; see `IndexStatus`.
        min_coverage: Minimum coverage of any index, from 0 to 1.
        max_outliving: Maximum number of entries that outlive their base file.
        failed_build: Whether to alert if the last finished build failed or died.
    """

    max_lag_seconds: float | None = None
    max_lag_instants: int | None = None
    min_coverage: float | None = None
    max_outliving: int | None = None
    failed_build: bool = False


@dataclass(frozen=True)
class TableStatus(Sequence[IndexStatus]):
    """The status of a table's indexes; as a sequence, the status of each index.

    Attributes:
        uri: The table's base path.
        at: Time of this status, ISO 8601 in UTC.
        instant: Requested time of the snapshot's instant.
        indexes: Statuses by name; one for each index type of an index.
        builds: The last ten builds, newest first.
        failing: Entries whose last build attempt failed and that are still missing.
        outliving: Entries that outlive their base file.
        index_bytes: Bytes of all indexes' data files for the snapshot, each counted once.
    """

    uri: str
    at: str
    instant: str
    indexes: tuple[IndexStatus, ...]
    builds: tuple[BuildRecord, ...]
    failing: tuple[FailedEntry, ...]
    outliving: Outliving
    index_bytes: int = 0

    def __repr__(self) -> str:
        indexes = ", ".join(map(repr, self.indexes)) or "no index"
        build = "" if self.build is None else f", build {self.build.id} {self.build.state}"
        return f"<TableStatus of {self.uri}: {indexes}{build}>"

    def _repr_html_(self) -> str:
        """The indexes as a table, for a notebook."""
        build = "no build" if self.build is None else f"build {self.build.id} {self.build.state}"
        names = ("index", "type", "columns", "covered", "base files", "due", "bytes")
        rows = (
            (
                each.definition.name,
                each.index_type,
                names_by_use(each.definition)[0],
                f"{each.coverage:.1%}",
                each.base_files,
                each.due,
                each.index_bytes,
            )
            for each in self.indexes
        )
        return html_table(names, rows, caption=f"{self.uri}, {build}")

    @overload
    def __getitem__(self, index: int) -> IndexStatus: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[IndexStatus]: ...

    def __getitem__(self, index: int | slice) -> IndexStatus | Sequence[IndexStatus]:
        return self.indexes[index]

    def __len__(self) -> int:
        return len(self.indexes)

    def __iter__(self) -> Iterator[IndexStatus]:
        return iter(self.indexes)

    @property
    def build(self) -> BuildRecord | None:
        """The running build; if there is none, the last."""
        running = (each for each in self.builds if each.state is BuildState.RUNNING)
        return next(running, self.builds[0] if self.builds else None)

    @property
    def lag_instants(self) -> int:
        """The lag of the index that is furthest behind, in instants."""
        return max((each.lag_instants for each in self.indexes), default=0)

    @property
    def lag_seconds(self) -> float:
        """The lag of the index that is furthest behind, in seconds."""
        return max((each.lag_seconds for each in self.indexes), default=0.0)

    def alerts(self, thresholds: Thresholds) -> list[str]:
        """One sentence for each exceeded threshold."""
        alerts = []
        for each in self.indexes:
            name = f"Index {each.definition.name} ({each.index_type})"
            limit = thresholds.max_lag_seconds
            if limit is not None and each.lag_seconds > limit:
                alerts.append(f"{name} is {each.lag_seconds:.0f} s behind, more than {limit:g}.")
            instants = thresholds.max_lag_instants
            if instants is not None and each.lag_instants > instants:
                alerts.append(
                    f"{name} is {counted(each.lag_instants, 'instant')} behind, more than "
                    f"{instants}."
                )
            coverage = thresholds.min_coverage
            if coverage is not None and each.coverage < coverage:
                alerts.append(
                    f"{name} covers {each.covered} of {each.base_files} base files, less than "
                    f"{coverage * 100:g}%.{self._outdated(each)}"
                )
        if thresholds.max_outliving is not None and self.outliving.entries > (
            thresholds.max_outliving
        ):
            alerts.append(
                f"Entries that outlive their base file: {self.outliving.entries:,}, more than "
                f"{thresholds.max_outliving}."
            )
        finished = (each for each in self.builds if each.state is not BuildState.RUNNING)
        last = next(finished, None)
        if thresholds.failed_build and last is not None:
            if last.state is BuildState.DEAD:
                alerts.append(f"Build {last.id} died.")
            elif last.state is BuildState.FAILED:
                alerts.append(f"Build {last.id} failed.")
        return alerts

    def _outdated(self, status: IndexStatus) -> str:
        if not status.outdated:
            return ""
        serve = "serves" if status.outdated == 1 else "serve"
        return (
            f" {counted(status.outdated, 'entry')} of an earlier form of the index still {serve}: "
            f"`hudi-index refresh {self.uri} {status.definition.name}` updates them."
        )

    def to_dict(self, alerts: Sequence[str] = ()) -> dict[str, Any]:
        """As `hudi-index status --output json` prints it, including `alerts`."""
        return {
            "table": self.uri,
            "at": self.at,
            "instant": self.instant,
            "lag_instants": self.lag_instants,
            "lag_seconds": round(self.lag_seconds, 1),
            "outliving": asdict(self.outliving),
            "index_bytes": self.index_bytes,
            "indexes": [each.to_dict() for each in self.indexes],
            "build": None if self.build is None else self.build.to_dict(),
            "builds": [each.to_dict() for each in self.builds],
            "failing": [each.to_dict() for each in self.failing],
            "alerts": list(alerts),
        }


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
        outliving=Outliving(len(expired), sum(each.bytes for each in expired)),
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
        self._instants = {each.requested: each for each in table.completed_instants()}
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
        counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        index_bytes = 0
        due: list[BaseFile] = []
        missing: list[BaseFile] = []  # those of the due ones that have no entry at all
        skipped: dict[str, tuple[int, str]] = {}
        outdated = newer = damaged = 0
        for file_slice in self._slices:
            base_file = file_slice.base_file
            if base_file is None:
                continue
            count = counts[base_file.partition]
            count[0] += 1
            entry: Entry | None
            try:
                entry = listing.find(base_file)
            except NewerFormat:  # a newer release's entry, which is not rebuilt here either
                newer += 1
                continue
            except EntryInvalid:
                entry = None
            if entry is not None and holds_all(entry.manifest, requirement.columns):
                for spec in requirement.columns:
                    if reason := entry.manifest.skips(spec):
                        skipped[spec.name] = skipped.get(spec.name, (0, ""))[0] + 1, reason
                length = entry.manifest.data.length
                count[1] += 1
                index_bytes += length
                key = (requirement.index_type, entry.data_path)
                _, index_names = self._data_files.setdefault(key, (length, set()))
                index_names.add(requirement.definition.name)
            elif requirement.columns:
                self.lacking.add((base_file.path, requirement.index_type))
                if self._is_due(requirement, base_file):
                    due.append(base_file)
                    if entry is None:
                        missing.append(base_file)
                elif entry is not None:
                    outdated += 1
                elif listing.generations(entry_folder(requirement.index_type, base_file)):
                    damaged += 1
                elif self._is_empty(base_file):
                    count[1] += 1
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
        )

    def _is_empty(self, base_file: BaseFile) -> bool:
        """Whether the commit says that the base file was written without rows."""
        if base_file.instant not in self._rows:
            instant = self._instants.get(base_file.instant)
            self._rows[base_file.instant] = (
                {} if instant is None else self._table.rows_written(instant)
            )
        return self._rows[base_file.instant].get(base_file.path) == 0

    def _is_due(self, requirement: Requirement, base_file: BaseFile) -> bool:
        is_retained = self._retained is None or base_file.instant in self._retained
        return is_retained and self._selects(requirement.definition, base_file)

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
                written = self._table.storage.modified(base_file.path)
            except FileNotFoundError:  # cleaned since
                continue
            return max(0.0, self._now - written)
        return 0.0
