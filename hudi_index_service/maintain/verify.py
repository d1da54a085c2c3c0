"""Verifies entries, and rebuilds damaged ones: an entry's bytes must be those that were written,
pass their index type's own check, and match the base file.
"""

import logging
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import ceil

from hudi_index_service.build.entry.task import TaskStatus
from hudi_index_service.build.entry.worker import Scratch
from hudi_index_service.build.executor import Executor
from hudi_index_service.build.run import run_build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid, EntryInvalid
from hudi_index_service.hudi.files.parquet_file import footer_sha256
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.contract import IndexType, PackedIndex
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.files.local_copy import damaged_copies, discard, packed_index
from hudi_index_service.index.metadata.build_records import BuildRecords
from hudi_index_service.index.metadata.definitions import Definitions
from hudi_index_service.index.metadata.documents import NewerFormat
from hudi_index_service.index.metadata.entry import Entry, EntryListing, manifest_path, refuse_newer
from hudi_index_service.index.metadata.manifest import entry_folder
from hudi_index_service.index.metadata.requirements import by_index_type, indexed, requirements
from hudi_index_service.index.metadata.segments.store import SegmentStore
from hudi_index_service.index.packed_file import checksums
from hudi_index_service.maintain import DEFAULT_SAMPLE
from hudi_index_service.maintain.row_sample import RowSample
from hudi_index_service.storage.store import Storage, StoredFile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of an entry. Queries scan its base file, or read more of its rows than necessary. If
    an undamaged index contradicts its base file, they may miss rows.

    Attributes:
        index_type: Name of the index type.
        base_file: Path of the entry's base file.
        path: The faulty file, relative to the table.
        reason: Readable description, without values of the table.
        repaired: Whether the entry was rebuilt and the damaged one removed.
    """

    index_type: str
    base_file: str
    path: str
    reason: str
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification.

    Attributes:
        entries: Number of entries checked.
        rows: Number of rows whose values were looked up.
        problems: Faults, by base file.
        skipped: Base files whose entries a newer release wrote, which this one cannot check.
    """

    entries: int
    rows: int
    problems: tuple[Problem, ...]
    skipped: tuple[str, ...] = ()

    @property
    def unrepaired(self) -> tuple[Problem, ...]:
        """The problems that remain."""
        return tuple(problem for problem in self.problems if not problem.repaired)


@dataclass(frozen=True, slots=True)
class _Damaged:
    """A damaged entry.

    Attributes:
        generation: The highest generation in its folder; all generations up to it are removed.
        files: The files in its folder at the time of the check.
    """

    index_type: str
    base_file: BaseFile
    folder: str
    generation: int
    files: tuple[StoredFile, ...]


def verify(
    table: HudiTable,
    definitions: Definitions,
    settings: Settings,
    *,
    sample: int = DEFAULT_SAMPLE,
    fraction: float = 1.0,
    executor: Executor | None = None,
) -> Verification:
    """Checks the entries of the present snapshot; a base file without an entry is no problem.

    Args:
        definitions: Those of the table, which set the index types to check and the columns that a
            repair builds.
        sample: Number of rows of each base file to look up; 0 for none.
        fraction: The share of the base files whose entries are checked, from 0 to 1; they are
            chosen at random, one at least.
        executor: Rebuilds damaged entries; None leaves them as they are.

    Raises:
        TableFeatureUnsupported: the table cannot be read completely here.
        NativeModuleMissing: the native module of an index type is not installed.
        ConfigInvalid: `sample` is negative, or `fraction` not from 0 to 1.
        BuildInProgress, PermissionDenied, BuildFailed: of the repair.
    """
    if sample < 0:
        raise ConfigInvalid(f"sample={sample} is negative.", remedy="Use 0 or more.")
    if not 0 <= fraction <= 1:
        raise ConfigInvalid(
            f"fraction={fraction} is no share.", remedy="Use a number from 0 to 1, such as 0.01."
        )
    if not table.storage.is_local:
        # Copies in this user's cache; each can be fetched again.
        copies = damaged_copies(table.storage, settings.cache_folder)
        for copy in copies:
            log.warning("Removing the damaged copy %s.", copy.path)
        discard(copies)
    run = _Pass(table, settings, sample)
    base_files = table.snapshot().base_files()
    if fraction < 1:
        number = max(1, ceil(len(base_files) * fraction))
        base_files = tuple(random.sample(base_files, min(number, len(base_files))))
    for name in by_index_type(requirements(definitions.live, table.schema())):
        listing = EntryListing(table.storage, name, fresh=True)
        for base_file in base_files:
            run.entry(listing, base_file)
    # An entry may have been superseded or removed during its check.
    changed = [
        each for each in run.damaged if set(table.storage.files(each.folder)) != set(each.files)
    ]
    if changed:
        run.forget(changed)
        for each in changed:
            run.entry(EntryListing(table.storage, each.index_type, fresh=True), each.base_file)
    if executor is not None and run.damaged:
        repaired = _repair(table, definitions, settings, executor, run.damaged)
        run.problems = [
            replace(problem, repaired=(problem.index_type, problem.base_file) in repaired)
            for problem in run.problems
        ]
    return Verification(len(run.checked), run.rows, tuple(run.problems), tuple(sorted(run.skipped)))


class _Pass:
    """One pass over a table's entries, with its results so far."""

    def __init__(self, table: HudiTable, settings: Settings, sample: int) -> None:
        self._storage = table.storage
        self._schema = table.schema()
        self._settings = settings
        self._sample = sample
        self.checked: set[str] = set()
        self.rows = 0
        self.problems: list[Problem] = []
        self.damaged: list[_Damaged] = []
        self.skipped: set[str] = set()

    def entry(self, listing: EntryListing, base_file: BaseFile) -> None:
        """Checks one entry, if there is one."""
        folder = entry_folder(listing.index_type, base_file)
        generations = listing.generations(folder)
        if not generations:  # no entry was built, or one is about to be published
            return
        try:
            faults = list(self._faults(listing, base_file))
        except NewerFormat as newer:
            log.info("%s Not verified.", newer)
            self.skipped.add(base_file.path)
            return
        except FileNotFoundError:  # Hudi has cleaned the base file
            return
        self.checked.add(folder)
        if faults:
            log.info("%s: %s", folder, "; ".join(reason for _, reason in faults))
            files = tuple(listing.files(folder))
            self.damaged.append(
                _Damaged(listing.index_type, base_file, folder, generations[0], files)
            )
            self.problems += [
                Problem(listing.index_type, base_file.path, path, reason) for path, reason in faults
            ]

    def _faults(self, listing: EntryListing, base_file: BaseFile) -> Iterator[tuple[str, str]]:
        """Path and reason of each problem of an entry."""
        folder = entry_folder(listing.index_type, base_file)
        newest = manifest_path(folder, listing.generations(folder)[0])
        try:
            entry = listing.find(base_file)
        except NewerFormat:
            raise
        except EntryInvalid as error:
            yield newest, error.message.removeprefix(f"{newest} ")
            return
        for number in listing.generations(folder):
            if number == entry.manifest.generation:
                break
            path = manifest_path(folder, number)
            yield path, f"it is damaged; generation {entry.manifest.generation} serves."
        for reason in self._problems(entry, base_file):
            yield entry.data_path, reason

    def _problems(self, entry: Entry, base_file: BaseFile) -> Iterator[str]:
        """The problems of an entry's data, by itself, its base file's footer, and a sample of the
        rows; skips a step if one that it depends on failed.

        Raises:
            NewerFormat: a newer release of the index type wrote the entry.
            FileNotFoundError: the base file is gone.
            NativeModuleMissing: the native module of the index type is not installed.
        """
        kind = index_type(entry.manifest.index_type).configured(self._settings)
        refuse_newer(entry.manifest, kind)
        kind.check_runtime()
        if (unread := entry.manifest.not_read(kind)) is not None:
            yield f"it has {unread}."
            return
        try:
            with _as_stored(self._storage, entry, self._settings) as index:
                if damage := _damage(entry, index):
                    yield damage
                else:
                    yield from self._content_problems(entry, base_file, kind, index)
        except EntryInvalid as error:
            yield error.message

    def _content_problems(
        self, entry: Entry, base_file: BaseFile, kind: IndexType, index: PackedIndex
    ) -> Iterator[str]:
        columns = entry.manifest.columns
        wrong = list(kind.verify(index, indexed(columns)))
        yield from wrong
        footer = footer_sha256(self._storage, base_file.path, base_file.size)
        if footer != entry.manifest.base_file.footer_sha256:
            yield f"the footer of {base_file.path} is not the one it was built from."
        elif not wrong and self._sample:
            sample = RowSample(self._storage, base_file, index, self._schema, columns, self._sample)
            self.rows += len(sample.positions)
            yield from sample.compare(kind)

    def forget(self, entries: Sequence[_Damaged]) -> None:
        """Discards the results for these entries."""
        keys = {(each.index_type, each.base_file.path) for each in entries}
        self.damaged = [each for each in self.damaged if each not in entries]
        self.problems = [p for p in self.problems if (p.index_type, p.base_file) not in keys]
        self.checked -= {each.folder for each in entries}


def _damage(entry: Entry, index: PackedIndex) -> str | None:
    """What the checksums show; None if the bytes are those that were written."""
    crc32s, sha256 = checksums(index.path)
    damaged = [
        str(number)
        for number, (actual, expected) in enumerate(zip(crc32s, index.block_crc32, strict=True))
        if actual != expected
    ]
    if damaged:
        numbers = ", ".join(damaged[:10]) + (", …" if len(damaged) > 10 else "")
        return f"blocks are damaged: {numbers} of {len(crc32s)}, {index.block_size} bytes each."
    return None if sha256 == entry.manifest.data.sha256 else "its SHA-256 is not the manifest's."


@contextmanager
def _as_stored(storage: Storage, entry: Entry, settings: Settings) -> Iterator[PackedIndex]:
    """Yields the data file as the store has it now, never an older copy from the user's cache."""
    with Scratch() as scratch:
        if not storage.is_local:
            settings = settings.model_copy(update={"cache_folder": scratch.folder})
        with packed_index(storage, entry, settings) as index:
            yield index


def _repair(
    table: HudiTable,
    definitions: Definitions,
    settings: Settings,
    executor: Executor,
    damaged: Sequence[_Damaged],
) -> set[tuple[str, str]]:
    """Rebuilds the entries, with the columns of the live definitions.

    Returns:
        Index type and base file's path of each rebuilt entry.

    Raises:
        BuildInProgress, PermissionDenied, BuildFailed: see `run_build`.
        PermissionDenied, StorageFailed: segments cannot be read or written.
    """
    # Segments may state values of other rows of these base files, and would still send queries to
    # the generation that is about to be removed. The rebuild states the new entries.
    for name in {each.index_type for each in damaged}:
        paths = {each.base_file.path for each in damaged if each.index_type == name}
        SegmentStore(table.storage, name).forget_files(paths)
    build = run_build(
        table,
        definitions,
        strategy=Strategy.ALL,
        executor=executor,
        settings=settings,
        damaged={each.folder: each.generation for each in damaged},
    )
    for failure in build.failed:
        log.error("%s: %s", failure.path, failure.error)
    rebuilt = {
        (outcome.index_type, outcome.path)
        for outcome in build.outcomes
        if outcome.status in (TaskStatus.BUILT, TaskStatus.PRESENT)
    }
    repaired = [each for each in damaged if (each.index_type, each.base_file.path) in rebuilt]
    _remove(table, settings, repaired)
    return rebuilt


def _remove(table: HudiTable, settings: Settings, entries: Sequence[_Damaged]) -> None:
    """Removes the damaged entries' files, except those that a living build may still publish."""
    records = BuildRecords(table.storage, stale_seconds=settings.build.stale_seconds)
    living = tuple(f"data-{build}-" for build in records.living())
    published: set[str] = set()
    for each in entries:
        listing = EntryListing(table.storage, each.index_type, only=[each.folder])
        with suppress(EntryInvalid):  # cleaned by another process since the rebuild
            published.add(f"{each.folder}/{listing.newest_valid(each.folder).data.name}")
    paths = [
        file.path
        for each in entries
        for file in each.files
        if file.path not in published and not file.path.rsplit("/", 1)[1].startswith(living)
    ]
    # Manifests first, so that an entry disappears before its data.
    table.storage.delete(sorted(paths, key=lambda path: not path.endswith(".json")))
