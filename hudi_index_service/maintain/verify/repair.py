"""Rebuilds damaged entries: removes what segments state of them, publishes a new generation, then
removes the damaged ones."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hudi_index_service.build.entry.task import TaskStatus
from hudi_index_service.build.executor import Executor
from hudi_index_service.build.record import BuildRecords
from hudi_index_service.build.run import run_build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.hudi.protocol import BaseFile, HudiTable
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.requirements import Requirement
from hudi_index_service.index.metadata.segments.store import SegmentStore
from hudi_index_service.storage.store import StoredFile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Damaged:
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


def repair(
    table: HudiTable,
    requirements: Sequence[Requirement],
    settings: Settings,
    executor: Executor,
    damaged: Sequence[Damaged],
) -> set[tuple[str, str]]:
    """Rebuilds the entries, with the columns of the live definitions.

    Returns:
        Index type and base file's path of each rebuilt entry.

    Raises:
        BuildInProgress, PermissionDenied, BuildFailed: see `run_build`.
        PermissionDenied, StorageFailed: segments cannot be read or written.
    """
    _forget(table, damaged)
    build = run_build(
        table,
        requirements,
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


def _forget(table: HudiTable, entries: Sequence[Damaged]) -> None:
    """Removes what segments state of the base files: an entry of other rows states the values of
    these rows, and a query would still be sent to the generation that is about to be removed. The
    rebuild states the new entries."""
    for name in {each.index_type for each in entries}:
        paths = {each.base_file.path for each in entries if each.index_type == name}
        SegmentStore(table.storage, name).forget(_is_not_in(paths), lambda column: True)


def _is_not_in(paths: set[str]) -> Callable[[str], bool]:
    return lambda path: path not in paths


def _remove(table: HudiTable, settings: Settings, entries: Sequence[Damaged]) -> None:
    """Removes the damaged entries' files, except those that a living build may still publish."""
    records = BuildRecords(table.storage, stale_seconds=settings.build.stale_seconds)
    living = tuple(f"data-{build}-" for build in records.living())
    published: set[str] = set()
    for name in {each.index_type for each in entries}:
        listing = EntryListing(table.storage, name)
        for each in entries:
            if each.index_type == name:
                with suppress(EntryInvalid):  # cleaned by another process since the rebuild
                    manifest = listing.newest_valid(each.folder)
                    published.add(f"{each.folder}/{manifest.data.name}")
    paths = [
        file.path
        for each in entries
        for file in each.files
        if file.path not in published and not file.path.rsplit("/", 1)[1].startswith(living)
    ]
    # Manifests first, so that an entry disappears before its data.
    table.storage.delete(sorted(paths, key=lambda path: not path.endswith(".json")))
