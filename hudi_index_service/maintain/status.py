"""The status of a table's indexes: coverage, lag behind the timeline, builds, and entries that
outlive their base file. What it means: alerts, what builds leave as it is, and what to do about
it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, overload

from hudi_index_service.index.metadata.build_records import BuildRecord, BuildState, FailedEntry
from hudi_index_service.index.metadata.definitions import IndexDefinition
from hudi_index_service.index.metadata.requirements import names_by_use
from hudi_index_service.row_formats import html_table
from hudi_index_service.wording import counted


@dataclass(frozen=True, slots=True)
class PartitionCoverage:
    """The counts of `IndexStatus` for one partition ("" if the table is not partitioned)."""

    partition: str
    base_files: int
    covered: int


@dataclass(frozen=True, slots=True)
class InstantCoverage:
    """The counts of `IndexStatus` for the base files that one instant wrote.

    Attributes:
        instant: Its requested time.
    """

    instant: str
    base_files: int
    covered: int
    due: int


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
        outdated: Number of base files whose entry is of an earlier form of the definition, so that
            it serves what still matches, or is one of `unread`. INCREMENTAL leaves them as they
            are, REFRESH builds them.
        newer: Number of base files whose entry is of a newer release, which no build changes here.
        skipped: Columns that some entries lack, since only Spark reads them in that base file → the
            number of these base files, and the reason for one of them.
        damaged: Number of base files whose entry is damaged or not about them, so that they are
            scanned, and which INCREMENTAL does not build.
        unread: What this release does not read of an entry, such as "the older version 1" → the
            number of base files that have such an entry. They are scanned, and are among those that
            are due or outdated.
        instants: The counts by instant, for the last ones that wrote base files of the snapshot,
            newest first.
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
    unread: Mapping[str, int] = field(default_factory=dict)
    instants: tuple[InstantCoverage, ...] = ()

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
            "unread": [
                {"reason": reason, "base_files": number} for reason, number in self.unread.items()
            ],
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
        are = "is" if status.outdated == 1 else "are"
        return (
            f" {counted(status.outdated, 'entry')} {are} not up to date: "
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


def idle_reason(status: TableStatus) -> str | None:
    """Why builds of the strategy incremental have nothing to do on the table as it is, although no
    base file is indexed, with the remedy; None if they have, or if some are, or there are none."""
    if all(each.base_files and each.left == each.base_files for each in status):
        return coverage_hints(status)[0]
    return None


def coverage_hints(status: TableStatus) -> list[str]:
    """The base files that incremental builds will not cover, and how to cover them."""
    if not status:
        return [
            f"The table has no index: `hudi-index create {status.uri} NAME COLUMN...` defines one."
        ]
    hints = []
    if older := _files_of(status, lambda each: each.left):
        hints.append(
            f"Not indexed and not due: {older}. They were written before the index was "
            f"defined, or not by clustering or compaction: `hudi-index build {status.uri} "
            "--strategy all` indexes them."
        )
    if outdated := _files_of(status, lambda each: each.outdated):
        names = sorted({each.definition.name for each in status if each.outdated})
        hints.append(
            f"Not up to date: {outdated}. Their entries are of an earlier form of the index, and "
            "serve what still matches, or this release does not read them: "
            + ", ".join(f"`hudi-index refresh {status.uri} {name}`" for name in names)
            + " updates them."
        )
    for each in status:
        for reason, number in each.unread.items():
            hints.append(
                f"Not read, so scanned: the entries of {number} of {each.base_files} base files "
                f"for {each.definition.name} ({each.index_type}). They have {reason}. `hudi-index "
                f"refresh {status.uri} {each.definition.name}` builds them anew."
            )
        for column, (number, reason) in each.skipped.items():
            hints.append(
                f"Not indexed: column {column} in {number} of {each.base_files} base files for "
                f"{each.definition.name} ({each.index_type}). {reason} Rewritten base files, as "
                "by clustering, hold it as the table does."
            )
    if damaged := _files_of(status, lambda each: each.damaged):
        hints.append(
            f"Damaged, so scanned: the entries of {damaged}. `hudi-index verify {status.uri} "
            "--repair` rebuilds them."
        )
    if newer := _files_of(status, lambda each: each.newer):
        hints.append(
            f"Of a newer release: the entries of {newer}. Upgrade this installation to use them."
        )
    return hints


def _files_of(status: TableStatus, number: Callable[[IndexStatus], int]) -> str:
    """The indexes with a number of base files other than 0, as text."""
    return ", ".join(
        f"{number(each)} of {each.base_files} base files for {each.definition.name} "
        f"({each.index_type})"
        for each in status
        if number(each)
    )
