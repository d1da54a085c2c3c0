"""How a table's indexes stand: what they cover, how far behind the timeline they are, what the
builds do, and what is kept longer than its base file."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from time import time
from typing import Any, overload

from hudi_index_service.build.record import BuildRecord, BuildRecords, BuildState
from hudi_index_service.build.retry import FailedEntry
from hudi_index_service.build.strategy import Strategy, selector
from hudi_index_service.config import Settings
from hudi_index_service.definitions import IndexDefinition
from hudi_index_service.documents import NewerFormat
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.entry import Entry, EntryListing
from hudi_index_service.index.manifest import Manifest
from hudi_index_service.index.requirements import Requirement
from hudi_index_service.index.retention import (
    expired_entries,
    retained_instants,
    stored_index_types,
)
from hudi_index_service.table.protocol import BaseFile, FileSlice, HudiTable

_BUILDS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class PartitionCoverage:
    """One index type of one index, and one partition ("" when there is but one). The counts are
    those of `IndexStatus`."""

    partition: str
    base_files: int
    indexed: int
    covered: int


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """One index type of one index, and the present snapshot.

    Attributes:
        base_files: Base files in the snapshot.
        indexed: Those with a valid entry that holds all of the index's columns.
        covered: Those of the indexed ones without log files above them: read through the index.
        index_bytes: Bytes of the indexed ones' data files, other indexes' columns included.
        shared_with: Other indexes that any of these files serve as well, by name: the bytes are
            theirs, too. `TableStatus.index_bytes` counts each file once.
        partitions: The same by partition, sorted.
        due: Base files that INCREMENTAL would build now.
        lag_instants: Completed instants on the active timeline since the oldest of these was
            written, its own included; 0 if nothing is due.
        lag_seconds: Time since that base file was written, by the store's clock; 0 likewise.
    """

    definition: IndexDefinition
    index_type: str
    base_files: int
    indexed: int
    covered: int
    index_bytes: int
    partitions: tuple[PartitionCoverage, ...] = ()
    due: int = 0
    lag_instants: int = 0
    lag_seconds: float = 0.0
    shared_with: tuple[str, ...] = ()

    def __repr__(self) -> str:
        name = f"{self.definition.name} ({self.index_type})"
        return f"<{name}: {self.covered} of {self.base_files} base files covered, {self.due} due>"

    @property
    def coverage(self) -> float:
        """The covered part of the base files, from 0 to 1; 1 for a table without any."""
        return self.covered / self.base_files if self.base_files else 1.0

    def to_dict(self) -> dict[str, Any]:
        """As `hudi-index status --output json` prints it."""
        return {
            "index": self.definition.name,
            "index_type": self.index_type,
            "columns": [column.name for column in self.definition.columns],
            "base_files": self.base_files,
            "indexed": self.indexed,
            "covered": self.covered,
            "coverage": round(self.coverage, 4),
            "index_bytes": self.index_bytes,
            "shared_with": list(self.shared_with),
            "due": self.due,
            "lag_instants": self.lag_instants,
            "lag_seconds": round(self.lag_seconds, 1),
            "partitions": [asdict(each) for each in self.partitions],
        }


@dataclass(frozen=True, slots=True)
class Outliving:
    """Entries that outlive their base file or (``retention: instant``) their instant. The next
    clean removes them; until then, values erased from the table are still in them."""

    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What is worth an alert; None for what is not looked at.

    Attributes:
        max_lag_seconds, max_lag_instants: Of any index: see `IndexStatus`.
        min_coverage: Of any index, from 0 to 1.
        max_outliving: Entries that outlive their base file.
        failed_build: Whether the last build that is over failed or died.
    """

    max_lag_seconds: float | None = None
    max_lag_instants: int | None = None
    min_coverage: float | None = None
    max_outliving: int | None = None
    failed_build: bool = False


@dataclass(frozen=True)
class TableStatus(Sequence[IndexStatus]):
    """How a table's indexes stand; as a sequence, the status of each index.

    Attributes:
        uri: The table's base path.
        at: When this was looked up, ISO 8601 in UTC.
        instant: Requested time of the snapshot's instant.
        indexes: By name; one for each index type of an index.
        builds: The last ten, newest first.
        failing: Entries that could not be built when they were tried last, and are lacking still.
        outliving: Entries that outlive their base file.
        index_bytes: Of all indexes' data files that serve the snapshot, each counted once.
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
        """The build that runs; without one, the last."""
        running = (each for each in self.builds if each.state is BuildState.RUNNING)
        return next(running, self.builds[0] if self.builds else None)

    @property
    def lag_instants(self) -> int:
        """Of the index that is furthest behind."""
        return max((each.lag_instants for each in self.indexes), default=0)

    @property
    def lag_seconds(self) -> float:
        """Of the index that is furthest behind."""
        return max((each.lag_seconds for each in self.indexes), default=0.0)

    def alerts(self, thresholds: Thresholds) -> list[str]:
        """What is beyond the thresholds, a sentence each."""
        found = []
        for each in self.indexes:
            name = f"Index {each.definition.name} ({each.index_type})"
            limit = thresholds.max_lag_seconds
            if limit is not None and each.lag_seconds > limit:
                found.append(f"{name} is {each.lag_seconds:.0f} s behind, more than {limit:g}.")
            instants = thresholds.max_lag_instants
            if instants is not None and each.lag_instants > instants:
                found.append(
                    f"{name} is {each.lag_instants} instants behind, more than {instants}."
                )
            coverage = thresholds.min_coverage
            if coverage is not None and each.coverage < coverage:
                found.append(
                    f"{name} covers {each.covered} of {each.base_files} base files, less than "
                    f"{coverage * 100:g}%."
                )
        if thresholds.max_outliving is not None and self.outliving.entries > (
            thresholds.max_outliving
        ):
            found.append(
                f"{self.outliving.entries} entries outlive their base file, more than "
                f"{thresholds.max_outliving}."
            )
        over = (each for each in self.builds if each.state is not BuildState.RUNNING)
        last = next(over, None)
        if thresholds.failed_build and last is not None:
            if last.state is BuildState.DEAD:
                found.append(f"Build {last.id} died.")
            elif last.state is BuildState.FAILED:
                found.append(f"Build {last.id} failed.")
        return found

    def to_dict(self, alerts: Sequence[str] = ()) -> dict[str, Any]:
        """As `hudi-index status --output json` prints it; `alerts` are put in."""
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
        TableFeatureUnsupported: the table cannot be read whole here.
    """
    snapshot = table.snapshot()
    types = {*stored_index_types(table.storage), *(each.index_type for each in requirements)}
    listings = {name: EntryListing(table.storage, name) for name in sorted(types)}
    coverage = _Coverage(table, snapshot.slices, listings, settings)
    asked = [coverage.of(requirement) for requirement in requirements]
    indexes = tuple(map(coverage.sharing, asked))
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
        self._wanted = selector(Strategy.INCREMENTAL, table, settings.build.on)
        self._retained = retained_instants(table, settings)
        self._now = time()
        self.lacking: set[tuple[str, str]] = set()
        """Path and index type of the entries that lack something that was asked of them so far."""
        self._data_files: dict[tuple[str, str], tuple[int, set[str]]] = {}
        """Index type and path of the data files that serve what was asked for so far → length, and
        names of the indexes that the file serves."""

    @property
    def index_bytes(self) -> int:
        """Of the data files that serve what was asked for so far, each once."""
        return sum(length for length, _ in self._data_files.values())

    def sharing(self, status: IndexStatus) -> IndexStatus:
        """The same with the indexes that share its files, once all were asked for."""
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
        counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        index_bytes = 0
        due: list[BaseFile] = []
        for file_slice in self._slices:
            base_file = file_slice.base_file
            if base_file is None:
                continue
            count = counts[base_file.partition]
            count[0] += 1
            entry: Entry | None
            try:
                entry = listing.find(base_file)
            except NewerFormat:  # another release's, which does not build it here either
                continue
            except EntryInvalid:
                entry = None
            if entry is not None and _holds_all(entry.manifest, requirement):
                length = entry.manifest.data.length
                count[1] += 1
                count[2] += not file_slice.log_files
                index_bytes += length
                key = (requirement.index_type, entry.data_path)
                _, served = self._data_files.setdefault(key, (length, set()))
                served.add(requirement.definition.name)
            elif requirement.columns:
                self.lacking.add((base_file.path, requirement.index_type))
                if self._is_due(requirement, base_file):
                    due.append(base_file)
        partitions = tuple(PartitionCoverage(name, *counts[name]) for name in sorted(counts))
        return IndexStatus(
            requirement.definition,
            requirement.index_type,
            base_files=sum(each.base_files for each in partitions),
            indexed=sum(each.indexed for each in partitions),
            covered=sum(each.covered for each in partitions),
            index_bytes=index_bytes,
            partitions=partitions,
            due=len(due),
            lag_instants=self._instants_since(due),
            lag_seconds=self._seconds_since(due),
        )

    def _is_due(self, requirement: Requirement, base_file: BaseFile) -> bool:
        kept = self._retained is None or base_file.instant in self._retained
        return kept and self._wanted(requirement.definition, base_file)

    def _instants_since(self, due: Sequence[BaseFile]) -> int:
        if not due:
            return 0
        oldest = min(file.instant for file in due)
        return sum(each.requested >= oldest for each in self._table.completed_instants())

    def _seconds_since(self, due: Sequence[BaseFile]) -> float:
        """By the time of the base file itself: instants are in their writer's time zone, which
        nobody else knows, and archived ones say no more when they were completed."""
        for base_file in sorted(due, key=lambda file: file.instant):
            try:
                written = self._table.storage.modified(base_file.path)
            except FileNotFoundError:  # cleaned since
                continue
            return max(0.0, self._now - written)
        return 0.0


def _holds_all(manifest: Manifest, requirement: Requirement) -> bool:
    return all(manifest.holds(c.name, c.type, c.fields) for c in requirement.columns)
