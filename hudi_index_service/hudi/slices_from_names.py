"""File slices from names and timeline alone, as Hudi makes them without a metadata table.

They follow the proof's rules, applied to the same listing. They are used where no log file is read:
on copy-on-write tables and for read-optimized queries, for which hudi-rs would list every partition
twice in sequence. They are also used on merge-on-read tables where hudi-rs fails: with a metadata
table that two releases have written, which an upgraded table keeps until Hudi next compacts it, and
with a schema that has a type unknown to hudi-rs.
"""

import re
from collections import defaultdict

from hudi_index_service.hudi.completeness import FileGroup, ListedFile, Listing, Proof
from hudi_index_service.hudi.file_names import BaseFileName, LogFileName
from hudi_index_service.hudi.snapshot import FileSlice

_LOG_VERSION = re.compile(r"\.log\.([0-9]+)")


def slices_by_names(listing: Listing, proof: Proof) -> list[FileSlice]:
    """The latest slice of each file group. The listing may include log files only from table
    version 8 on, where their names hold their own instant.

    Log files are in the order in which they were begun. A group without a base file makes a slice,
    too; the proof refuses it.
    """
    groups: dict[FileGroup, list[ListedFile]] = defaultdict(list)
    for file in listing.files.values():
        if proof.shows(file):
            groups[file.group].append(file)
    return [_slice(group, files, proof) for group, files in sorted(groups.items())]


def _slice(group: FileGroup, files: list[ListedFile], proof: Proof) -> FileSlice:
    # Any of two base files of one instant may be used: the proof misses the other and refuses.
    base = max(
        (file for file in files if isinstance(file.name, BaseFileName)),
        key=lambda file: (file.name.instant, file.path),
        default=None,
    )
    logs = [file for file in files if isinstance(file.name, LogFileName)]
    if base is not None:
        logs = [file for file in logs if not proof.is_older(file.name, base.name.instant)]
    logs.sort(key=_log_order)
    partition, file_id = group
    return FileSlice(
        partition,
        file_id,
        base.as_base_file() if base is not None else None,
        tuple(file.path for file in logs),
    )


def _log_order(file: ListedFile) -> tuple[str, int, str]:
    """The order of Hudi's `HoodieLogFile.LogFileComparator`: instant, version, write token."""
    version = _LOG_VERSION.search(file.path.rpartition("/")[2])
    assert version is not None, "parsed as a log file's name"
    return file.name.instant, int(version[1]), file.path
