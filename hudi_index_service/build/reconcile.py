"""Works out what is due, from timeline, definitions and entries alone (design, rule 6)."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hudi_index_service.build.strategy import Strategy, selector
from hudi_index_service.documents import NewerFormat
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import ColumnSpec, IndexType
from hudi_index_service.index.entry import EntryListing
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.manifest import Manifest
from hudi_index_service.index.requirements import Requirement, by_index_type, merged
from hudi_index_service.table.protocol import BaseFile, HudiTable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DueEntry:
    """An entry to be built: for which base file, of which index type, with which columns."""

    base_file: BaseFile
    index_type: str
    columns: tuple[ColumnSpec, ...]
    definitions: dict[str, str]


def due_entries(
    table: HudiTable,
    requirements: Sequence[Requirement],
    strategy: Strategy,
    *,
    base_files: Sequence[BaseFile],
    retained_instants: Collection[str] | None = None,
) -> list[DueEntry]:
    """The entries that the strategy wants and that do not exist yet, newest instant first.

    Args:
        base_files: The base files of the present snapshot (or a part of it).
        retained_instants: With ``retention: instant``, the only instants whose entries would
            survive the cleaner; None for no such limit.
    """
    wanted = selector(strategy, table)
    due: list[DueEntry] = []
    for name, group in by_index_type(requirements).items():
        listing = EntryListing(table.storage, name)
        for base_file in base_files:
            if retained_instants is not None and base_file.instant not in retained_instants:
                continue
            asking = [each for each in group if wanted(each.definition, base_file)]
            columns = merged(spec for each in asking for spec in each.columns)
            if columns and not _is_held(listing, base_file, columns):
                fingerprints = {
                    each.definition.name: each.definition.fingerprint() for each in asking
                }
                due.append(DueEntry(base_file, name, columns, fingerprints))
    return sorted(due, key=lambda entry: (entry.base_file.instant, entry.base_file.path))[::-1]


def _is_held(listing: EntryListing, base_file: BaseFile, columns: tuple[ColumnSpec, ...]) -> bool:
    try:
        manifest = listing.find(base_file).manifest
        refuse_newer(manifest, index_type(manifest.index_type))
    except NewerFormat as newer:
        # Written by a newer release, which serves it; never rewritten from here.
        log.warning("%s Not built anew by this release.", newer)
        return True
    except EntryInvalid:
        return False
    return holds_all(manifest, columns)


def refuse_newer(manifest: Manifest, kind: IndexType) -> None:
    """Raises NewerFormat for an entry in a layout of the index type that is newer than ours."""
    if manifest.index_type_version > kind.version:
        raise NewerFormat(
            f"The {kind.name} entry of {manifest.base_file.path} has version "
            f"{manifest.index_type_version}, this release writes {kind.version}."
        )


def holds_all(manifest: Manifest, columns: tuple[ColumnSpec, ...]) -> bool:
    """Whether an entry has every column under the fields asked for."""
    return all(manifest.holds(spec.name, spec.type, spec.fields) for spec in columns)
