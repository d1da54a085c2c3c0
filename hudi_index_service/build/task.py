"""One task of a build: the entry of one base file, from its columns to the published manifest.

The same code runs in Spark executors and in local threads. Nothing is visible before the manifest
is, and the manifest is created by put-if-absent: a killed task leaves nothing but an unnamed data
file, which the cleaner removes.
"""

import tempfile
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import hudi_index_parquet
import pyarrow as pa

from hudi_index_service.build.extremes import Extremes
from hudi_index_service.build.reconcile import DueEntry, holds_all, refuse_newer
from hudi_index_service.documents import NewerFormat, document_name
from hudi_index_service.errors import BuildFailed, EntryInvalid, IndexServiceError
from hudi_index_service.index.contract import BuiltIndex, ColumnSpec, IndexType
from hudi_index_service.index.entry import (
    DATA_SUFFIX,
    MANIFEST_STEM,
    EntryListing,
    entry_folder,
)
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.manifest import (
    PARQUET_METADATA,
    BuildInfo,
    DataFile,
    IndexedBaseFile,
    Manifest,
    ManifestColumn,
    Member,
)
from hudi_index_service.index.packed_file import BLOCK_SIZE, PackedFile, pack
from hudi_index_service.index.requirements import merged
from hudi_index_service.storage import Storage
from hudi_index_service.table.base_file import (
    footer_sha256,
    open_parquet,
    read_columns,
    refuse_legacy_calendar,
    row_source,
)

_ATTEMPTS = 5  # lost races in a row before a task gives up; each loss means another builder's win


class TaskStatus(Enum):
    """How a task ended."""

    BUILT = "built"
    PRESENT = "present"  #: another builder had published it already
    GONE = "gone"  #: Hudi cleaned the base file in the meantime
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class BuildTask:
    """Everything a task needs; crosses to Spark executors."""

    storage: Storage
    due: DueEntry
    build_id: str
    memory_mb: int
    batch_rows: int


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
        outcome = _EntryBuild(task).run()
    except FileNotFoundError as error:
        outcome = replace(outcome, **_gone_or_failed(task, error))
    except IndexServiceError as error:
        outcome = replace(outcome, error=str(error))
    except Exception as error:  # noqa: BLE001 - native libraries raise whatever they like
        outcome = replace(outcome, error=f"{type(error).__name__}: {error}")
    return replace(outcome, seconds=perf_counter() - started)


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
        self._kind: IndexType = index_type(task.due.index_type)
        self._folder = entry_folder(task.due.index_type, task.due.base_file)

    def run(self) -> TaskOutcome:
        columns = self._task.due.columns
        for _ in range(_ATTEMPTS):
            listing = EntryListing(self._storage, self._task.due.index_type)
            try:
                manifest = self._current(listing)
            except NewerFormat:  # a newer release has built it meanwhile, and will serve it
                return TaskOutcome(self._base_file.path, self._kind.name, TaskStatus.PRESENT)
            definitions = self._task.due.definitions
            if manifest is not None and holds_all(manifest, columns):
                return self._outcome(TaskStatus.PRESENT, manifest)
            if manifest is not None:
                # Whoever published this wanted its columns: the next generation keeps them.
                columns = merged([*_specs(manifest), *columns])
                definitions = {**manifest.definitions, **definitions}
            generation = max(listing.generations(self._folder), default=0) + 1
            published = self._build(columns, definitions, generation)
            if published is not None:
                return self._outcome(TaskStatus.BUILT, published)
        raise BuildFailed(
            f"{self._folder}: other builders published {_ATTEMPTS} times in a row.",
            remedy="Let one builder at a time work on the table.",
        )

    def _current(self, listing: EntryListing) -> Manifest | None:
        """The manifest that serves now, if any. Raises NewerFormat: there is nothing to do."""
        try:
            manifest = listing.find(self._base_file).manifest
        except NewerFormat:
            raise
        except EntryInvalid:
            return None
        refuse_newer(manifest, self._kind)
        return manifest

    def _outcome(self, status: TaskStatus, manifest: Manifest) -> TaskOutcome:
        return TaskOutcome(
            self._base_file.path,
            manifest.index_type,
            status,
            rows=manifest.base_file.rows,
            index_bytes=manifest.data.length,
        )

    def _build(
        self, columns: tuple[ColumnSpec, ...], definitions: dict[str, str], generation: int
    ) -> Manifest | None:
        """Builds and publishes one generation; None when another builder took its number."""
        started = _now()
        with tempfile.TemporaryDirectory(prefix="hudi-index-") as scratch:
            work = Path(scratch)
            built, extremes = self._index(columns, work)
            footer = hudi_index_parquet.stripped_footer(
                row_source(self._storage, self._base_file.path), size=self._base_file.size
            )
            data_name = f"data-{self._task.build_id}-{uuid.uuid4().hex[:12]}{DATA_SUFFIX}"
            packed = pack({**built.files, PARQUET_METADATA: footer}, work / data_name)
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
                data=_data_file(data_name, packed),
                columns=tuple(_column(spec, built, extremes) for spec in columns),
                definitions=definitions,
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
            data_path = f"{self._folder}/{data_name}"
            self._storage.upload(data_path, work / data_name)
        path = f"{self._folder}/{document_name(MANIFEST_STEM, generation)}"
        try:
            self._storage.create(path, manifest.to_json())
        except FileExistsError:
            self._storage.delete([data_path])
            return None
        return manifest

    def _index(
        self, columns: tuple[ColumnSpec, ...], work: Path
    ) -> tuple[BuiltIndex, dict[str, Extremes]]:
        folder = work / "index"
        folder.mkdir()
        schema = pa.schema([(spec.name, spec.type) for spec in columns])
        extremes = {spec.name: Extremes() for spec in columns}
        path = self._base_file.path
        with open_parquet(self._storage, path) as file:
            # All columns: rows found by the index are read without the footer that would tell.
            refuse_legacy_calendar(file.metadata, source=path)
            builder = self._kind.builder(columns, folder, memory_mb=self._task.memory_mb)
            try:
                for batch in read_columns(
                    file, schema, batch_rows=self._task.batch_rows, source=path
                ):
                    builder.add(batch)
                    for name, extreme in extremes.items():
                        extreme.add(batch.column(name))
                return builder.finish(), extremes
            except BaseException:
                builder.abort()
                raise


def _specs(manifest: Manifest) -> list[ColumnSpec]:
    return [ColumnSpec(c.name, c.arrow_type(), c.fields) for c in manifest.columns]


def _column(spec: ColumnSpec, built: BuiltIndex, extremes: dict[str, Extremes]) -> ManifestColumn:
    statistics = built.statistics[spec.name]
    return ManifestColumn(
        name=spec.name,
        type=str(spec.type),
        fields=spec.fields,
        null_count=statistics.null_count,
        distinct=statistics.distinct,
        truncated=statistics.truncated,
        minimum=extremes[spec.name].minimum,
        maximum=extremes[spec.name].maximum,
    )


def _data_file(name: str, packed: PackedFile) -> DataFile:
    return DataFile(
        name=name,
        length=packed.length,
        block_size=BLOCK_SIZE,
        block_crc32=DataFile.encode_crc32s(packed.block_crc32),
        sha256=packed.sha256,
        members=tuple(
            Member(name=member, offset=offset, length=length)
            for member, (offset, length) in packed.members.items()
        ),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
