"""One task of a build: builds the entry of one base file and publishes its manifest.

The same code runs in Spark executors and in local threads. The manifest is created by put-if-absent
and nothing is visible before it exists: a killed task leaves only a data file that no manifest
names, which the cleaner removes.
"""

import logging
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from time import perf_counter, time
from typing import Any

import pyarrow as pa

from hudi_index_service.build.entry.indexing import BaseFileIndexer, Indexed, PartStaged, RowCount
from hudi_index_service.build.entry.parts import LEAST_BYTES, WHOLE, Part, Staging
from hudi_index_service.build.entry.planning_facts import FactWriter
from hudi_index_service.build.entry.proof import open_first_of_kind, readable_footer
from hudi_index_service.build.entry.worker import Scratch, prepare_worker
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.errors import BuildFailed, EntryUnusable, IndexServiceError
from hudi_index_service.hudi.files.parquet_file import footer_sha256
from hudi_index_service.index.contract import ColumnSpec, FileRange, IndexType, StoredColumn
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.files.stored_values import VALUES
from hudi_index_service.index.metadata.documents import NewerFormat, utc_now
from hudi_index_service.index.metadata.entry import (
    DATA_SUFFIX,
    EntryListing,
    manifest_path,
    present_manifest,
)
from hudi_index_service.index.metadata.manifest import (
    PARQUET_METADATA,
    BuildInfo,
    IndexedBaseFile,
    Layout,
    Manifest,
    entry_folder,
)
from hudi_index_service.index.metadata.requirements import (
    DesiredEntry,
    EntryContent,
    holds_all,
    merged,
)
from hudi_index_service.index.metadata.segments.segment import Facts, facts_of
from hudi_index_service.index.packed_file import DataFile, pack, pack_into
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)

_ATTEMPTS = 5  # lost races in a row before a task gives up; each time another builder won


class TaskStatus(Enum):
    """How a task ended."""

    BUILT = "built"
    PRESENT = "present"  #: another builder had already published the entry
    GONE = "gone"  #: Hudi cleaned the base file in the meantime
    UNWANTED = "unwanted"  #: the indexes were dropped in the meantime
    LEFT = "left"  #: the build's time was spent before the task began
    STAGED = "staged"  #: this part is done, others are not; never the final status of a base file
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class BuildTask:
    """Everything a task needs; sent to Spark executors.

    Attributes:
        schema: The table's schema, used to build definitions that changed since reconcile as they
            are now. If None, the due columns are built.
        deadline: Seconds since the epoch after which the task no longer begins; None for no limit.
        part_bytes: The minimum bytes of a part, if executors build the base file in parts.
        part: The part of the base file that this task indexes; set by executors.
        threads: The number of indexing threads, limited by the number of cores; set by executors.
        kind: The index type with the build's settings; if None, with the settings of the process
            that runs the task.
        indexed: The counter of indexed rows; None for no counting.
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
    """The outcome for one base file's entry.

    Attributes:
        skipped: Columns that the entry lacks, since only Spark reads them in this base file → why.
    """

    path: str
    index_type: str
    status: TaskStatus
    rows: int = 0
    index_bytes: int = 0
    seconds: float = 0.0
    error: str | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, status: TaskStatus, manifest: Manifest) -> "TaskOutcome":
        """The outcome for an entry that is published."""
        return cls(
            manifest.base_file.path,
            manifest.index_type,
            status,
            rows=manifest.base_file.rows,
            index_bytes=manifest.data.length,
            skipped={each.name: each.reason for each in manifest.skipped},
        )


def run_task(task: BuildTask, facts: FactWriter | None = None) -> TaskOutcome:
    """Builds and publishes one entry. Never raises: a failure goes into the build's report and does
    not affect the entries of other base files.

    Args:
        facts: Writes what is known of the base file; None to write it at once, in a segment of its
            own.
    """
    if facts is None:
        with FactWriter() as facts:
            return run_task(task, facts)
    started = perf_counter()
    outcome = TaskOutcome(task.due.base_file.path, task.due.index_type, TaskStatus.FAILED)
    try:
        if task.deadline is not None and time() > task.deadline and not _has_staged_part(task):
            return replace(outcome, status=TaskStatus.LEFT)
        prepare_worker(task.memory_mb, runs_jvm=index_type(task.due.index_type).runs_jvm)
        outcome = _EntryBuild(task, facts).run()
    except FileNotFoundError as error:
        outcome = replace(outcome, **_missing_file_fields(task, error))
    except IndexServiceError as error:
        outcome = replace(outcome, error=str(error))
    except Exception as error:  # noqa: BLE001 - native libraries may raise anything
        outcome = replace(outcome, error=f"{type(error).__name__}: {error}")
    return replace(outcome, seconds=perf_counter() - started)


def _has_staged_part(task: BuildTask) -> bool:
    """Whether another part of the same base file is staged: then this part is built too."""
    if task.part.is_whole:
        return False
    folder = entry_folder(task.due.index_type, task.due.base_file)
    return Staging(task.storage, folder, task.build_id).has_begun()


def _missing_file_fields(task: BuildTask, error: FileNotFoundError) -> dict[str, Any]:
    """Whether a missing file means that the base file was cleaned, or another failure."""
    try:
        task.storage.size(task.due.base_file.path)
    except FileNotFoundError:
        return {"status": TaskStatus.GONE}
    except IndexServiceError as unreachable:
        return {"error": str(unreachable)}
    return {"error": str(error)}


class _EntryBuild:
    def __init__(self, task: BuildTask, facts: FactWriter) -> None:
        self._task = task
        self._fact_writer = facts
        self._facts: Facts | None = None  # of the entry that was published last
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
        # Published by this task, with a column that was dropped meanwhile.
        own_manifest: Manifest | None = None
        for _ in range(_ATTEMPTS):
            listing = self._listing()
            try:
                present = self._current(listing)
            except NewerFormat:  # a newer release has built the entry meanwhile, and serves it
                return TaskOutcome(self._base_file.path, self._kind.name, TaskStatus.PRESENT)
            demand = self._demand()
            content = self._content(demand, present)
            if not content.columns:
                self._withdraw(own_manifest)
                return TaskOutcome(self._base_file.path, self._kind.name, TaskStatus.UNWANTED)
            if (
                present is not None
                and holds_all(present, content.columns)
                and not (demand is not None and demand.has_extra_columns(present))
            ):
                if present == own_manifest:  # the dropped column was defined again
                    return self._built(present)
                self._withdraw(own_manifest)
                return TaskOutcome.of(TaskStatus.PRESENT, present)
            generation = max(listing.generations(self._folder), default=0) + 1
            try:
                manifest = self._build(content, generation)
            except PartStaged:
                return TaskOutcome(self._base_file.path, self._kind.name, TaskStatus.STAGED)
            if manifest is None:
                continue
            self._withdraw(own_manifest)
            own_manifest = manifest
            if self._is_below_another(manifest):
                continue
            # A column may have been dropped during the build, before this entry was visible.
            demand = self._demand()
            if demand is None or not demand.has_extra_columns(manifest):
                return self._built(manifest)
        raise BuildFailed(
            f"{self._folder}: other builders published {_ATTEMPTS} times in a row.",
            remedy="Let one builder at a time work on the table.",
        )

    def _listing(self) -> EntryListing:
        return EntryListing(self._storage, self._kind.name, only=[self._folder])

    def _is_below_another(self, own_manifest: Manifest) -> bool:
        """Whether a higher generation serves that lacks some of this one's columns: its builder had
        published under this number before, and withdrew that."""
        listing = self._listing()
        if max(listing.generations(self._folder), default=0) <= own_manifest.generation:
            return False
        try:
            serving = self._current(listing)
        except NewerFormat:
            return False
        return serving is not None and not holds_all(serving, own_manifest.specs())

    def _demand(self) -> DesiredEntry | None:
        """The definitions' present requirements for the entry."""
        if self._task.schema is None:
            return None
        return DesiredEntry.now(self._kind.name, self._storage, self._task.schema)

    def _content(self, demand: DesiredEntry | None, present: Manifest | None) -> EntryContent:
        due = self._task.due
        if demand is not None:
            return demand.content(due.definitions, present)
        if present is None:
            return EntryContent(due.columns, due.definitions)
        # Another build required the present columns: the next generation keeps them.
        columns = merged([*present.specs(), *due.columns])
        return EntryContent(columns, {**present.definitions, **due.definitions})

    def _withdraw(self, own_manifest: Manifest | None) -> None:
        """Removes the generation that this task just published with columns that were dropped
        meanwhile: they may have been dropped for good."""
        if own_manifest is not None:
            data_path = f"{self._folder}/{own_manifest.data.name}"
            path = manifest_path(self._folder, own_manifest.generation)
            self._storage.delete([path, data_path])
            self._destroy(data_path)

    def _destroy(self, data_path: str) -> None:
        """Removes the external data of an index that is not published, or no longer. The cleaner
        removes what stays."""
        try:
            self._kind.destroy(self._storage.uri, [data_path])
        except EntryUnusable as error:
            log.warning("External data of %s is left to the cleaner: %s", data_path, error)

    def _current(self, listing: EntryListing) -> Manifest | None:
        """The manifest that serves now, if any. Raises NewerFormat if a newer release built it."""
        damaged = self._task.due.damaged
        present = present_manifest(listing, self._base_file, self._kind, damaged=damaged)
        is_unread = present is not None and present.layout(self._kind) is Layout.UNREAD
        return None if is_unread else present

    def _built(self, manifest: Manifest) -> TaskOutcome:
        """The outcome of an entry that this task published last."""
        assert self._facts is not None, "each entry that is published has facts"
        self._fact_writer.add(self._storage, self._kind.name, self._facts)
        return TaskOutcome.of(TaskStatus.BUILT, manifest)

    def _build(self, content: EntryContent, generation: int) -> Manifest | None:
        """Builds and publishes one generation. None if another builder took its number."""
        started = utc_now()
        with Scratch() as scratch:
            footer, parsed_footer = readable_footer(self._storage, self._base_file)
            indexed = self._index(content.columns, scratch)
            built = indexed.built
            data_name = f"data-{self._task.build_id}-{uuid.uuid4().hex[:12]}{DATA_SUFFIX}"
            data_path = f"{self._folder}/{data_name}"
            files = self._kind.store(built.files, self._storage.uri, data_path)
            members = {**files, **indexed.values, PARQUET_METADATA: footer}
            described, data = _packed(members, scratch, data_name)
            manifest = Manifest(
                generation=generation,
                index_type=self._kind.name,
                index_type_version=self._kind.version,
                codec=built.codec,
                base_file=IndexedBaseFile(
                    path=self._base_file.path,
                    length=self._base_file.size,
                    rows=built.rows,
                    footer_sha256=footer_sha256(
                        self._storage, self._base_file.path, self._base_file.size
                    ),
                ),
                data=described,
                columns=tuple(
                    StoredColumn.of(
                        spec,
                        built.statistics[spec.name],
                        minimum=indexed.extremes[spec.name].minimum,
                        maximum=indexed.extremes[spec.name].maximum,
                    )
                    for spec in indexed.columns
                ),
                skipped=indexed.skipped,
                definitions=dict(content.definitions),
                build=BuildInfo(
                    id=self._task.build_id,
                    started=started,
                    finished=utc_now(),
                    versions={"hudi-index-service": _own_version(), **built.versions},
                ),
            )
            try:
                open_first_of_kind(
                    self._storage.uri, self._kind, manifest, data, parsed_footer, scratch
                )
            except IndexServiceError:
                self._destroy(data_path)
                raise
            self._storage.upload(data_path, data)
        path = manifest_path(self._folder, generation)
        try:
            self._storage.create(path, manifest.to_json())
        except FileExistsError:
            self._storage.delete([data_path])
            self._destroy(data_path)
            return None
        keys = {name: known for name, each in indexed.keys.items() if (known := each.pairs())}
        self._facts = facts_of(manifest, keys)
        return manifest

    def _index(self, columns: tuple[ColumnSpec, ...], scratch: Scratch) -> Indexed:
        """The index of the whole base file. Staged parts exist only for the columns of the first
        attempt; later attempts index the whole file here."""
        part, self._part = self._part, WHOLE
        if part.is_whole:
            return self._indexer.index(columns, scratch)
        staging = Staging(self._storage, self._folder, self._task.build_id)
        return self._indexer.index_in_parts(columns, scratch, part, staging)


def _packed(
    files: Mapping[str, Path | FileRange | bytes], scratch: Scratch, name: str
) -> tuple[DataFile, bytes | Path]:
    """The files as one, in memory if all of them are."""
    if all(isinstance(each, bytes) for each in files.values()):
        content = BytesIO()
        return pack_into(files, content, name, first=VALUES), content.getvalue()
    path = scratch.folder / name
    return pack(files, path, first=VALUES), path


@cache  # reading it from the installed package takes a millisecond
def _own_version() -> str:
    return version("hudi-index-service")
