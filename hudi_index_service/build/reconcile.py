"""Derives what is due from timeline, definitions and entries alone (design, rule 6)."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from hudi_index_service.build.strategy import NO_BACKFILL, Strategy, selector
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.definitions import Definitions
from hudi_index_service.index.metadata.documents import NewerFormat
from hudi_index_service.index.metadata.entry import EntryListing, present_manifest
from hudi_index_service.index.metadata.manifest import Layout, entry_folder
from hudi_index_service.index.metadata.requirements import (
    DesiredEntry,
    by_index_type,
    holds_all,
    requirements,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DueEntry:
    """An entry to be built for a base file, with its index type and columns.

    Attributes:
        columns: The columns to build, from the definitions at the time of reconciling.
        definitions: The definitions that require the entry (name → fingerprint); empty if it is
            due only because it holds columns that no definition requires.
        damaged: The highest generation known to be damaged. It and all earlier ones count as empty,
            whatever their manifests say.
    """

    base_file: BaseFile
    index_type: str
    columns: tuple[ColumnSpec, ...]
    definitions: dict[str, str]
    damaged: int = 0


def due_entries(
    table: HudiTable,
    definitions: Definitions,
    strategy: Strategy,
    *,
    base_files: Sequence[BaseFile],
    on: Collection[str] = ("clustering", "compaction"),
    indexes: Collection[str] | None = None,
    retained_instants: Collection[str] | None = None,
    damaged: Mapping[str, int] | None = None,
    backfill: timedelta = NO_BACKFILL,
) -> list[DueEntry]:
    """The entries that the strategy selects and that do not exist yet, newest instant first.

    Args:
        definitions: All definitions of the table.
        indexes: The indexes to build for; None for all. If empty, REFRESH still finds the entries
            that hold columns that no definition requires any more.
        base_files: The base files of the present snapshot, or some of them.
        on: The operations after which INCREMENTAL builds: the setting `build.on`.
        retained_instants: Under ``retention: instant``, the instants whose entries the cleaner
            keeps; None if there is no such limit.
        damaged: For repairs, the only entries to build: folder → highest damaged generation (see
            `DueEntry.damaged`).
        backfill: See `selector`.
    """
    selects = selector(strategy, table, on, backfill)
    refreshing = strategy is Strategy.REFRESH
    due: list[DueEntry] = []
    for name, group in by_index_type(requirements(definitions.live, table.schema())).items():
        targets = [each for each in group if indexes is None or each.definition.name in indexes]
        if indexes and not targets:
            continue
        listing = EntryListing(table.storage, name)
        demand = DesiredEntry(name, tuple(group), definitions.complete)
        for base_file in base_files:
            if retained_instants is not None and base_file.instant not in retained_instants:
                continue
            folder = entry_folder(name, base_file)
            if damaged is not None and folder not in damaged:
                continue
            damaged_generation = 0 if damaged is None else damaged[folder]
            applicable = [each for each in targets if selects(each.definition, base_file)]
            if not applicable and not refreshing:
                continue
            try:
                present = present_manifest(
                    listing, base_file, index_type(name), damaged=damaged_generation
                )
            except NewerFormat as newer:
                # A newer release wrote and serves it; this release never rewrites it.
                log.warning("%s This release does not rebuild it.", newer)
                continue
            if refreshing and present is not None:
                applicable = targets
            if present is not None and present.layout(index_type(name)) is Layout.UNREAD:
                present = None
            has_extra = refreshing and present is not None and demand.has_extra_columns(present)
            specs = (spec for each in applicable for spec in each.columns)
            if present is None or has_extra or not holds_all(present, specs):
                names = {
                    each.definition.name: each.definition.fingerprint(name) for each in applicable
                }
                columns = demand.content(names, present).columns
                if columns:
                    due.append(DueEntry(base_file, name, columns, names, damaged_generation))
    return sorted(due, key=lambda entry: (entry.base_file.instant, entry.base_file.path))[::-1]
