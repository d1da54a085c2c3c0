"""Verifies entries, and rebuilds damaged ones: an entry's bytes must be those that were written,
pass Lucene's check, and match the base file.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hudi_index_service.build.executor import Executor
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid, EntryInvalid
from hudi_index_service.hudi.protocol import BaseFile, HudiTable
from hudi_index_service.index.files.local_copy import damaged_copies, discard
from hudi_index_service.index.metadata.documents import NewerFormat, document_name
from hudi_index_service.index.metadata.entry import MANIFEST_STEM, EntryListing
from hudi_index_service.index.metadata.folders import entry_folder
from hudi_index_service.index.metadata.requirements import Requirement, by_index_type
from hudi_index_service.maintain import DEFAULT_SAMPLE
from hudi_index_service.maintain.verify.entry_check import EntryCheck
from hudi_index_service.maintain.verify.repair import Damaged, repair
from hudi_index_service.storage.store import Storage

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


def verify(
    table: HudiTable,
    requirements: Sequence[Requirement],
    settings: Settings,
    *,
    sample: int = DEFAULT_SAMPLE,
    executor: Executor | None = None,
) -> Verification:
    """Checks the entries of the present snapshot; a base file without an entry is no problem.

    Args:
        requirements: Requirements of the live definitions, which set the index types to check and
            the columns that a repair builds.
        sample: Number of rows of each base file to look up; 0 for none.
        executor: Rebuilds damaged entries; None leaves them as they are.

    Raises:
        TableFeatureUnsupported: the table cannot be read completely here.
        NativeModuleMissing: the native module of an index type is not installed.
        ConfigInvalid: `sample` is negative.
        BuildInProgress, PermissionDenied, BuildFailed: of the repair.
    """
    if sample < 0:
        raise ConfigInvalid(f"sample={sample} is negative.", remedy="Use 0 or more.")
    _discard_damaged_copies(table.storage, settings)
    run = _Pass(table, settings, sample)
    for name in by_index_type(requirements):
        run.over(name)
    # An entry may have been superseded or removed during its check.
    changed = [each for each in run.damaged if _has_changed(table.storage, each)]
    if changed:
        run.forget(changed)
        for each in changed:
            run.entry(EntryListing(table.storage, each.index_type, fresh=True), each.base_file)
    if executor is not None and run.damaged:
        repaired = repair(table, requirements, settings, executor, run.damaged)
        run.problems = [
            replace(problem, repaired=(problem.index_type, problem.base_file) in repaired)
            for problem in run.problems
        ]
    return Verification(len(run.checked), run.rows, tuple(run.problems), tuple(sorted(run.skipped)))


def _discard_damaged_copies(storage: Storage, settings: Settings) -> None:
    """Discards damaged copies in this user's cache. Each is named by a digest of its content and
    can be fetched again."""
    if not storage.is_local:
        damaged = damaged_copies(storage, settings.cache_folder)
        for copy in damaged:
            log.warning("Removing the damaged copy %s.", copy.path)
        discard(damaged)


class _Pass:
    """One pass over a table's entries, with its results so far."""

    def __init__(self, table: HudiTable, settings: Settings, sample: int) -> None:
        self._storage = table.storage
        self._base_files = table.snapshot().base_files()
        self._check = EntryCheck(table, settings, sample)
        self.checked: set[str] = set()
        self.rows = 0
        self.problems: list[Problem] = []
        self.damaged: list[Damaged] = []
        self.skipped: set[str] = set()

    def over(self, index_type: str) -> None:
        """Checks all entries of an index type."""
        listing = EntryListing(self._storage, index_type, fresh=True)
        for base_file in self._base_files:
            self.entry(listing, base_file)

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
                Damaged(listing.index_type, base_file, folder, generations[0], files)
            )
            self.problems += [
                Problem(listing.index_type, base_file.path, path, reason) for path, reason in faults
            ]

    def _faults(self, listing: EntryListing, base_file: BaseFile) -> Iterator[tuple[str, str]]:
        """Path and reason of each problem of an entry."""
        folder = entry_folder(listing.index_type, base_file)
        newest = f"{folder}/{document_name(MANIFEST_STEM, listing.generations(folder)[0])}"
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
            path = f"{folder}/{document_name(MANIFEST_STEM, number)}"
            yield path, f"it is damaged; generation {entry.manifest.generation} serves."
        outcome = self._check.check(entry, base_file)
        self.rows += outcome.rows
        yield from outcome.wrong

    def forget(self, entries: Sequence[Damaged]) -> None:
        """Discards the results for these entries."""
        keys = {(each.index_type, each.base_file.path) for each in entries}
        self.damaged = [each for each in self.damaged if each not in entries]
        self.problems = [p for p in self.problems if (p.index_type, p.base_file) not in keys]
        self.checked -= {each.folder for each in entries}


def _has_changed(storage: Storage, damaged: Damaged) -> bool:
    return set(storage.files(damaged.folder)) != set(damaged.files)
