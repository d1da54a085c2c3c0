"""Rebuilding damaged entries: a new generation first, then the damaged ones go."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from hudi_index_service.build.executor import Executor
from hudi_index_service.build.record import BuildRecords
from hudi_index_service.build.run import run_build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.build.task import TaskStatus
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.entry import EntryListing
from hudi_index_service.index.requirements import Requirement
from hudi_index_service.storage import StoredFile
from hudi_index_service.table.protocol import BaseFile, HudiTable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Damaged:
    """An entry that is damaged.

    Attributes:
        generation: The highest number in its folder: everything up to it is to go.
        files: The files in its folder when it was looked at.
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
    """Builds the entries anew, with the columns that live definitions ask for.

    Returns:
        Index type and base file's path of those that were rebuilt.

    Raises:
        BuildInProgress, PermissionDenied, BuildFailed: see `run_build`.
    """
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
    done = {
        (outcome.index_type, outcome.path)
        for outcome in build.outcomes
        if outcome.status in (TaskStatus.BUILT, TaskStatus.PRESENT)
    }
    mended = [each for each in damaged if (each.index_type, each.base_file.path) in done]
    _remove(table, settings, mended)
    return done


def _remove(table: HudiTable, settings: Settings, entries: Sequence[Damaged]) -> None:
    """Removes what was in the entries' folders, but what a living build may yet publish."""
    records = BuildRecords(table.storage, stale_seconds=settings.build.stale_seconds)
    living = tuple(f"data-{build}-" for build in records.living())
    published: set[str] = set()
    for name in {each.index_type for each in entries}:
        listing = EntryListing(table.storage, name)
        for each in entries:
            if each.index_type == name:
                with suppress(EntryInvalid):  # cleaned by somebody else since it was rebuilt
                    manifest = listing.newest_valid(each.folder)
                    published.add(f"{each.folder}/{manifest.data.name}")
    paths = [
        file.path
        for each in entries
        for file in each.files
        if file.path not in published and not file.path.rsplit("/", 1)[1].startswith(living)
    ]
    # Manifests first: an entry is gone before its data is.
    table.storage.delete(sorted(paths, key=lambda path: not path.endswith(".json")))
