"""One task of a build: the entry of one base file, from its columns to the published manifest.

The same code runs in Spark executors and in local threads. Nothing is visible before the manifest
is, and the manifest is created by put-if-absent: a killed task leaves nothing but an unnamed data
file, which the cleaner removes.
"""

import logging
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, time
from typing import Any

import hudi_index_parquet
import pyarrow as pa

from hudi_index_service.build.indexing import BaseFileIndexer, Indexed, PartStaged, manifest_column
from hudi_index_service.build.memory import prepare_worker, runs_jvm
from hudi_index_service.build.parts import LEAST_BYTES, WHOLE, Part
from hudi_index_service.build.reconcile import DueEntry, refuse_newer
from hudi_index_service.build.row_count import RowCount
from hudi_index_service.build.scratch import scratch_folder
from hudi_index_service.build.staging import Staging
from hudi_index_service.documents import NewerFormat, document_name
from hudi_index_service.errors import (
    BuildFailed,
    EntryInvalid,
    IndexServiceError,
    NativeModuleMissing,
    PermissionDenied,
    StorageFailed,
)
from hudi_index_service.index.contract import ColumnSpec, FileRange, IndexType
from hudi_index_service.index.demand import Demand, EntryContent, holds_all
from hudi_index_service.index.entry import (
    DATA_SUFFIX,
    MANIFEST_STEM,
    EntryListing,
    entry_folder,
)
from hudi_index_service.index.factory import index_type, keeps_elsewhere
from hudi_index_service.index.manifest import (
    PARQUET_METADATA,
    BuildInfo,
    DataFile,
    IndexedBaseFile,
    Manifest,
)
from hudi_index_service.index.packed_file import pack
from hudi_index_service.index.requirements import merged
from hudi_index_service.storage import Storage
from hudi_index_service.table.parquet_file import footer_sha256, row_source

log = logging.getLogger(__name__)

_ATTEMPTS = 5  # lost races in a row before a task gives up; each loss means another builder's win


class TaskStatus(Enum):
    """How a task ended."""

    BUILT = "built"
    PRESENT = "present"  #: another builder had published it already
    GONE = "gone"  #: Hudi cleaned the base file in the meantime
    UNWANTED = "unwanted"  #: its indexes were dropped in the meantime
    LEFT = "left"  #: the build's time was spent before it began
    STAGED = "staged"  #: a part is done, others are not; no base file ends with it
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class BuildTask:
    """Everything a task needs; crosses to Spark executors.

    Attributes:
        schema: The table's; with it, definitions changed since reconcile are built as they are
            now. None: the columns are built as they are due.
        deadline: Seconds since the epoch after which the task no longer begins; None: it always
            does.
        part_bytes: The least bytes of a part, if executors build the base file in parts.
        part: What of the base file this task indexes; executors decide it.
        threads: Threads that index at once, at most as many as there are cores; executors decide
            it.
        kind: The index type with the build's settings; None: with those of the process that runs
            the task.
        indexed: Counts the rows that it takes in; None: nobody wants to know.
    """

    storage: Storage
    due: DueEntry
    build_id: str
    memory_mb: int
    batch_rows: int
    schema: pa.Schema | None = None
    deadline: float | None = None
    part_bytes: int = LEAST_BYTES
    part: Part = WHOLE
    threads: int = 1
    kind: IndexType | None = None
    indexed: RowCount | None = None


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What became of one base file's entry."""

    path: str
    index_type: str
    status: TaskStatus
    rows: int = 0
    index_bytes: int = 0
    seconds: float = 0.0
    error: str | None = None


def run_task(task: BuildTask) -> TaskOutcome:
    """Builds and publishes one entry. Never raises: a failure is part of the build's report, and
    the other base files' entries are built all the same."""
    started = perf_counter()
    outcome = TaskOutcome(task.due.base_file.path, task.due.index_type, TaskStatus.FAILED)
    try:
        if task.deadline is not None and time() > task.deadline and not _begun(task):
            return replace(outcome, status=TaskStatus.LEFT)
        prepare_worker(task.memory_mb, runs_jvm=runs_jvm(task.due.index_type))
        outcome = _EntryBuild(task).run()
    except FileNotFoundError as error:
        outcome = replace(outcome, **_gone_or_failed(task, error))
    except IndexServiceError as error:
        outcome = replace(outcome, error=str(error))
    except Exception as error:  # noqa: BLE001 - native libraries raise whatever they like
        outcome = replace(outcome, error=f"{type(error).__name__}: {error}")
    return replace(outcome, seconds=perf_counter() - started)


def _begun(task: BuildTask) -> bool:
    """Whether another part of the same base file is there: then this one is finished, too."""
    if task.part.is_whole:
        return False
    folder = entry_folder(task.due.index_type, task.due.base_file)
    return Staging(task.storage, folder, task.build_id).has_begun()


def _gone_or_failed(task: BuildTask, error: FileNotFoundError) -> dict[str, Any]:
    """What a missing file means: the base file was cleaned, or something else is wrong."""
    try:
        task.storage.size(task.due.base_file.path)
    except FileNotFoundError:
        return {"status": TaskStatus.GONE}
    except IndexServiceError as unreachable:
        return {"error": str(unreachable)}
    return {"error": str(error)}


class _EntryBuild:
    def __init__(self, task: BuildTask) -> None:
        self._task = task
        self._storage = task.storage
        self._base_file = task.due.base_file
        self._kind: IndexType = task.kind or index_type(task.due.index_type)
        self._folder = entry_folder(task.due.index_type, task.due.base_file)
        self._part = task.part
        self._indexer = BaseFileIndexer(
            task.storage,
            task.due.base_file,
            self._kind,
            memory_mb=task.memory_mb,
            batch_rows=task.batch_rows,
            threads=min(task.threads, len(os.sched_getaffinity(0))),
            indexed=task.indexed,
        )

    def run(self) -> TaskOutcome:
        own: Manifest | None = None  # what this task published, with a column dropped meanwhile
        for _ in range(_ATTEMPTS):
            listing = self._listing()
            try:
                present = self._current(listing)
            except NewerFormat:  # a newer release has built it meanwhile, and will serve it
                return TaskOutcome(self._base_file.path, self._kind.name, TaskStatus.PRESENT)
            demand = self._demand()
            content = self._content(demand, present)
            if not content.columns:
                self._withdraw(own)
                return TaskOutcome(self._base_file.path, self._kind.name, TaskStatus.UNWANTED)
            if (
                present is not None
                and holds_all(present, content.columns)
                and not (demand is not None and demand.superfluous(present))
            ):
                if present == own:  # asked for again
                    return self._outcome(TaskStatus.BUILT, present)
                self._withdraw(own)
                return self._outcome(TaskStatus.PRESENT, present)
            generation = max(listing.generations(self._folder), default=0) + 1
            try:
                published = self._build(content, generation)
            except PartStaged:
                return TaskOutcome(self._base_file.path, self._kind.name, TaskStatus.STAGED)
            if published is None:
                continue
            self._withdraw(own)
            own = published
            if self._is_below_another(published):
                continue
            # Dropped while it was built: whoever dropped it looked before this was there.
            demand = self._demand()
            if demand is None or not demand.superfluous(published):
                return self._outcome(TaskStatus.BUILT, published)
        raise BuildFailed(
            f"{self._folder}: other builders published {_ATTEMPTS} times in a row.",
            remedy="Let one builder at a time work on the table.",
        )

    def _listing(self) -> EntryListing:
        return EntryListing(self._storage, self._kind.name, folder=self._folder)

    def _is_below_another(self, own: Manifest) -> bool:
        """Whether a higher generation serves that lacks something of this one: its builder took
        this number before, and has withdrawn what it published under it."""
        listing = self._listing()
        if max(listing.generations(self._folder), default=0) <= own.generation:
            return False
        try:
            serving = self._current(listing)
        except NewerFormat:
            return False
        return serving is not None and not holds_all(serving, _specs(own))

    def _demand(self) -> Demand | None:
        """What is asked of the entry now."""
        if self._task.schema is None:
            return None
        return Demand.now(self._kind.name, self._storage, self._task.schema)

    def _content(self, demand: Demand | None, present: Manifest | None) -> EntryContent:
        due = self._task.due
        if demand is not None:
            return demand.content(due.definitions, present)
        if present is None:
            return EntryContent(due.columns, due.definitions)
        # Whoever published this wanted its columns: the next generation keeps them.
        columns = merged([*_specs(present), *due.columns])
        return EntryContent(columns, {**present.definitions, **due.definitions})

    def _withdraw(self, own: Manifest | None) -> None:
        """Removes what this task published moments ago with columns that were dropped meanwhile:
        they may have been dropped for good."""
        if own is not None:
            manifest = document_name(MANIFEST_STEM, own.generation)
            paths = [f"{self._folder}/{name}" for name in (manifest, own.data.name)]
            self._storage.delete(paths)
            self._destroy(paths[1])

    def _destroy(self, data_path: str) -> None:
        """Removes what is kept elsewhere of an index that is not, or no more, published. What stays
        is the cleaner's."""
        if not keeps_elsewhere(self._kind):
            return
        try:
            self._kind.destroy(self._storage.uri, [data_path])
        except (NativeModuleMissing, PermissionDenied, StorageFailed) as error:
            log.warning("What was stored of %s is left to the cleaner: %s", data_path, error)

    def _current(self, listing: EntryListing) -> Manifest | None:
        """The manifest that serves now, if any. Raises NewerFormat: there is nothing to do."""
        try:
            manifest = listing.find(self._base_file).manifest
        except NewerFormat:
            raise
        except EntryInvalid:
            return None
        refuse_newer(manifest, self._kind)
        return manifest if manifest.generation > self._task.due.damaged else None

    def _outcome(self, status: TaskStatus, manifest: Manifest) -> TaskOutcome:
        return TaskOutcome(
            self._base_file.path,
            manifest.index_type,
            status,
            rows=manifest.base_file.rows,
            index_bytes=manifest.data.length,
        )

    def _build(self, content: EntryContent, generation: int) -> Manifest | None:
        """Builds and publishes one generation; None when another builder took its number."""
        started = _now()
        with scratch_folder() as work:
            indexed = self._indexed(content.columns, work)
            built = indexed.built
            footer = hudi_index_parquet.stripped_footer(
                row_source(self._storage, self._base_file.path), size=self._base_file.size
            )
            data_name = f"data-{self._task.build_id}-{uuid.uuid4().hex[:12]}{DATA_SUFFIX}"
            data_path = f"{self._folder}/{data_name}"
            files: Mapping[str, Path | FileRange | bytes] = built.files
            if keeps_elsewhere(self._kind):
                files = self._kind.store(built.files, self._storage.uri, data_path)
            packed = pack({**files, PARQUET_METADATA: footer}, work / data_name)
            manifest = Manifest(
                generation=generation,
                index_type=self._kind.name,
                index_type_version=self._kind.version,
                base_file=IndexedBaseFile(
                    path=self._base_file.path,
                    length=self._base_file.size,
                    rows=built.rows,
                    footer_sha256=footer_sha256(
                        self._storage, self._base_file.path, self._base_file.size
                    ),
                ),
                data=DataFile.of(data_name, packed),
                columns=tuple(
                    manifest_column(spec, built.statistics[spec.name], indexed.extremes[spec.name])
                    for spec in content.columns
                ),
                definitions=dict(content.definitions),
                build=BuildInfo(
                    id=self._task.build_id,
                    started=started,
                    finished=_now(),
                    versions={
                        "hudi-index-service": version("hudi-index-service"),
                        **built.versions,
                    },
                ),
            )
            self._storage.upload(data_path, work / data_name)
        path = f"{self._folder}/{document_name(MANIFEST_STEM, generation)}"
        try:
            self._storage.create(path, manifest.to_json())
        except FileExistsError:
            self._storage.delete([data_path])
            self._destroy(data_path)
            return None
        return manifest

    def _indexed(self, columns: tuple[ColumnSpec, ...], work: Path) -> Indexed:
        """The index of the whole base file. Its parts are there for the columns that were asked
        for first; what another builder's win adds is indexed here, all of it."""
        part, self._part = self._part, WHOLE
        if part.is_whole:
            return self._indexer.index(columns, work)
        staging = Staging(self._storage, self._folder, self._task.build_id)
        return self._indexer.index_in_parts(columns, work, part, staging)


def _specs(manifest: Manifest) -> list[ColumnSpec]:
    return [ColumnSpec(c.name, c.arrow_type(), c.fields) for c in manifest.columns]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
