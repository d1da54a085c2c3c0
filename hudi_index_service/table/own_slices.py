"""File slices from names and timeline alone, as Hudi makes them where there is no metadata table.

The same rules that the proof follows, applied to the same listing. They serve where no log file is
read: on copy-on-write tables and for read-optimized queries, for which hudi-rs would list every
partition twice, one after the other. And on merge-on-read tables where hudi-rs fails: on a metadata
table that two releases have written to, which an upgraded table keeps until Hudi next compacts it,
and on a schema with a type that it does not know.
"""

import re
from collections import defaultdict

from hudi_index_service.table.completeness import DataFile, FileGroup, Listing, Proof
from hudi_index_service.table.file_names import BaseFileName, LogFileName
from hudi_index_service.table.protocol import FileSlice

_LOG_VERSION = re.compile(r"\.log\.([0-9]+)")


def slices_by_names(listing: Listing, proof: Proof) -> list[FileSlice]:
    """The latest slice of each file group. Log files may be among the files only from table version
    8 on, where their names tell their own instant.

    Log files stand in the order in which they were begun. A group without a base file is a slice
    too; the proof refuses it.
    """
    groups: dict[FileGroup, list[DataFile]] = defaultdict(list)
    for file in listing.files.values():
        if proof.shows(file):
            groups[file.group].append(file)
    return [_slice(group, files, proof) for group, files in sorted(groups.items())]


def _slice(group: FileGroup, files: list[DataFile], proof: Proof) -> FileSlice:
    # Of two base files of one instant either will do: the proof misses the other, and refuses.
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


def _log_order(file: DataFile) -> tuple[str, int, str]:
    """As Hudi's `HoodieLogFile.LogFileComparator` has it: instant, version, write token."""
    version = _LOG_VERSION.search(file.path.rpartition("/")[2])
    assert version is not None, "parsed as a log file's name"
    return file.name.instant, int(version[1]), file.path
