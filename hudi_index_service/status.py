"""How much of a table's present snapshot its indexes cover."""

from collections.abc import Sequence
from dataclasses import dataclass

from hudi_index_service.definitions import IndexDefinition
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.entry import EntryListing
from hudi_index_service.index.requirements import Requirement
from hudi_index_service.table.protocol import HudiTable


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """One index and the present snapshot.

    Attributes:
        base_files: Base files in the snapshot.
        indexed: Those with a valid entry that holds all of the index's columns.
        covered: Those of the indexed ones without log files above them: read through the index.
        index_bytes: Bytes of the indexed ones' data files, other indexes' columns included.
    """

    definition: IndexDefinition
    base_files: int
    indexed: int
    covered: int
    index_bytes: int


def index_status(table: HudiTable, requirements: Sequence[Requirement]) -> list[IndexStatus]:
    """The status of every index. Raises TableFeatureUnsupported."""
    slices = [each for each in table.snapshot().slices if each.base_file is not None]
    listings = {
        name: EntryListing(table.storage, name)
        for name in {each.definition.index_type for each in requirements}
    }
    result = []
    for requirement in requirements:
        indexed = covered = index_bytes = 0
        for file_slice in slices:
            assert file_slice.base_file is not None
            try:
                entry = listings[requirement.definition.index_type].find(file_slice.base_file)
            except EntryInvalid:
                continue
            manifest = entry.manifest
            if all(manifest.holds(c.name, c.type, c.fields) for c in requirement.columns):
                indexed += 1
                covered += not file_slice.log_files
                index_bytes += manifest.data.length
        result.append(
            IndexStatus(requirement.definition, len(slices), indexed, covered, index_bytes)
        )
    return result
