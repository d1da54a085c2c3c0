"""Verifying entries: is what an entry holds what was written, what Lucene takes for sound, and what
the base file says? And rebuilding those that are not.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hudi_index_service.build.executor import Executor
from hudi_index_service.config import Settings
from hudi_index_service.documents import NewerFormat, document_name
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.entry import MANIFEST_STEM, EntryListing, entry_folder
from hudi_index_service.index.local_copy import damaged_copies, discard
from hudi_index_service.index.requirements import Requirement, by_index_type
from hudi_index_service.storage import Storage
from hudi_index_service.table.protocol import BaseFile, HudiTable
from hudi_index_service.verify.entry_check import EntryCheck
from hudi_index_service.verify.repair import Damaged, repair

log = logging.getLogger(__name__)

DEFAULT_SAMPLE = 20
"""Rows of each base file whose values are looked up."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with an entry. Queries scan its base file, or read more rows of it
    than need be; where an index that is whole says something else than its base file, they may
    miss rows.

    Attributes:
        index_type: Name of the index type.
        base_file: Path of the base file whose entry it is.
        path: The file that is wrong, relative to the table.
        reason: What is wrong with it, for people; without values of the table.
        repaired: Whether the entry was rebuilt, and the damaged one removed.
    """

    index_type: str
    base_file: str
    path: str
    reason: str
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found.

    Attributes:
        entries: Entries checked.
        rows: Rows whose values were looked up.
        problems: What is wrong, by base file.
        skipped: Base files whose entries were written by a newer release: they are its to judge.
    """

    entries: int
    rows: int
    problems: tuple[Problem, ...]
    skipped: tuple[str, ...] = ()

    @property
    def unrepaired(self) -> tuple[Problem, ...]:
        """The problems that are still there."""
        return tuple(problem for problem in self.problems if not problem.repaired)


def verify(
    table: HudiTable,
    requirements: Sequence[Requirement],
    settings: Settings,
    *,
    sample: int = DEFAULT_SAMPLE,
    executor: Executor | None = None,
) -> Verification:
    """Checks the entries of the present snapshot; base files without one are not wrong.

    Args:
        requirements: Of the live definitions: their index types are looked at, and what they ask
            for is what a repair builds.
        sample: How many rows of each base file to look up; 0 for none.
        executor: Builds what is damaged anew; None leaves it as it is.

    Raises:
        TableFeatureUnsupported: the table cannot be read whole here.
        NativeModuleMissing: what an index type runs on is not installed.
        BuildInProgress, PermissionDenied, BuildFailed: of the repair.
    """
    _discard_damaged_copies(table.storage, settings)
    found = _Pass(table, settings, sample)
    for name in by_index_type(requirements):
        found.over(name)
    # An entry may have been superseded, or removed, while it was looked at.
    again = [each for each in found.damaged if _has_changed(table.storage, each)]
    if again:
        found.forget(again)
        for each in again:
            found.entry(EntryListing(table.storage, each.index_type, fresh=True), each.base_file)
    if executor is not None and found.damaged:
        mended = repair(table, requirements, settings, executor, found.damaged)
        found.problems = [
            replace(problem, repaired=(problem.index_type, problem.base_file) in mended)
            for problem in found.problems
        ]
    return Verification(
        len(found.checked), found.rows, tuple(found.problems), tuple(sorted(found.skipped))
    )


def _discard_damaged_copies(storage: Storage, settings: Settings) -> None:
    """Copies in this user's cache: each is named by its content, and can be fetched again."""
    if not storage.is_local:
        damaged = damaged_copies(storage, settings.cache_folder)
        for copy in damaged:
            log.warning("%s is damaged, and goes.", copy.path)
        discard(damaged)


class _Pass:
    """One pass over a table's entries, and what it has found so far."""

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
        if not generations:  # none was built, or one is about to be published
            return
        try:
            wrong = list(self._wrong(listing, base_file))
        except NewerFormat as newer:
            log.info("%s Not verified.", newer)
            self.skipped.add(base_file.path)
            return
        except FileNotFoundError:  # Hudi has just cleaned the base file
            return
        self.checked.add(folder)
        if wrong:
            log.warning("%s: %s", folder, "; ".join(reason for _, reason in wrong))
            files = tuple(listing.files(folder))
            self.damaged.append(
                Damaged(listing.index_type, base_file, folder, generations[0], files)
            )
            self.problems += [
                Problem(listing.index_type, base_file.path, path, reason) for path, reason in wrong
            ]

    def _wrong(self, listing: EntryListing, base_file: BaseFile) -> Iterator[tuple[str, str]]:
        """Path and reason of everything that is wrong with an entry."""
        folder = entry_folder(listing.index_type, base_file)
        newest = f"{folder}/{document_name(MANIFEST_STEM, listing.generations(folder)[0])}"
        try:
            entry = listing.find(base_file)
        except NewerFormat:
            raise
        except EntryInvalid as error:
            yield newest, error.message
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
        """Drops what was found of these entries."""
        gone = {(each.index_type, each.base_file.path) for each in entries}
        self.damaged = [each for each in self.damaged if each not in entries]
        self.problems = [p for p in self.problems if (p.index_type, p.base_file) not in gone]
        self.checked -= {each.folder for each in entries}


def _has_changed(storage: Storage, damaged: Damaged) -> bool:
    return set(storage.files(damaged.folder)) != set(damaged.files)
