"""Works out what is due, from timeline, definitions and entries alone (design, rule 6)."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hudi_index_service.build.strategy import Strategy, selector
from hudi_index_service.definitions import DefinitionStore
from hudi_index_service.documents import NewerFormat
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import ColumnSpec, IndexType
from hudi_index_service.index.demand import Demand, holds_all
from hudi_index_service.index.entry import EntryListing, entry_folder
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.manifest import Manifest
from hudi_index_service.index.requirements import Requirement, by_index_type
from hudi_index_service.table.protocol import BaseFile, HudiTable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DueEntry:
    """An entry to be built: for which base file, of which index type, with which columns.

    Attributes:
        columns: What it is built with, as reconcile saw the definitions.
        definitions: Those that want the entry (name → fingerprint); none where it only holds too
            much.
        damaged: The entry's generations up to this one are known to be damaged: whatever their
            manifests say, they hold nothing.
    """

    base_file: BaseFile
    index_type: str
    columns: tuple[ColumnSpec, ...]
    definitions: dict[str, str]
    damaged: int = 0


def due_entries(
    table: HudiTable,
    requirements: Sequence[Requirement],
    strategy: Strategy,
    *,
    base_files: Sequence[BaseFile],
    on: Collection[str] = ("clustering", "compaction"),
    indexes: Collection[str] | None = None,
    retained_instants: Collection[str] | None = None,
    damaged: Mapping[str, int] | None = None,
) -> list[DueEntry]:
    """The entries that the strategy wants and that do not exist yet, newest instant first.

    Args:
        requirements: Of all live definitions.
        indexes: Only what these indexes want; with none at all, REFRESH still finds the entries
            that hold what nobody asks for any more. None: what any index wants.
        base_files: The base files of the present snapshot (or a part of it).
        on: After what INCREMENTAL builds: the setting `build.on`.
        retained_instants: With ``retention: instant``, the only instants whose entries would
            survive the cleaner; None for no such limit.
        damaged: To repair: only these entries' folders, each with the highest generation that is
            damaged (see `DueEntry.damaged`).
    """
    wanted = selector(strategy, table, on)
    refreshing = strategy is Strategy.REFRESH
    complete = DefinitionStore(table.storage).read().complete
    due: list[DueEntry] = []
    for name, group in by_index_type(requirements).items():
        own = [each for each in group if indexes is None or each.definition.name in indexes]
        if indexes and not own:
            continue
        listing = EntryListing(table.storage, name)
        demand = Demand(name, tuple(group), complete)
        for base_file in base_files:
            if retained_instants is not None and base_file.instant not in retained_instants:
                continue
            folder = entry_folder(name, base_file)
            if damaged is not None and folder not in damaged:
                continue
            below = 0 if damaged is None else damaged[folder]
            asking = [each for each in own if wanted(each.definition, base_file)]
            if not asking and not refreshing:
                continue
            try:
                present = _present(listing, base_file, below)
            except NewerFormat as newer:
                # Written by a newer release, which serves it; never rewritten from here.
                log.warning("%s Not built anew by this release.", newer)
                continue
            if refreshing and present is not None:
                asking = own
            if not _is_right(present, asking, demand if refreshing else None):
                names = {each.definition.name: each.definition.fingerprint(name) for each in asking}
                columns = demand.content(names, present).columns
                if columns:
                    due.append(DueEntry(base_file, name, columns, names, below))
    return sorted(due, key=lambda entry: (entry.base_file.instant, entry.base_file.path))[::-1]


def _present(listing: EntryListing, base_file: BaseFile, damaged: int) -> Manifest | None:
    """The manifest of the base file's entry, if it has one that is not known to be damaged.
    Raises NewerFormat."""
    try:
        manifest = listing.find(base_file).manifest
    except NewerFormat:
        raise
    except EntryInvalid:
        return None
    refuse_newer(manifest, index_type(manifest.index_type))
    return manifest if manifest.generation > damaged else None


def _is_right(
    present: Manifest | None, asking: Sequence[Requirement], demand: Demand | None
) -> bool:
    """Whether an entry is there with all that is asked and, given the demand, nothing else."""
    if present is None or (demand is not None and demand.superfluous(present)):
        return False
    return holds_all(present, (spec for each in asking for spec in each.columns))


def refuse_newer(manifest: Manifest, kind: IndexType) -> None:
    """Raises NewerFormat for an entry in a layout of the index type that is newer than ours."""
    if manifest.index_type_version > kind.version:
        raise NewerFormat(
            f"The {kind.name} entry of {manifest.base_file.path} has version "
            f"{manifest.index_type_version}, this release writes {kind.version}."
        )
