"""The folders of entries.

    .hoodie/.index/<index type>/<instant>/<file id>/<partition digest>/manifest-000N.json
                                                                       data-<build>-<random>.pack

An entry is identified by its base file's path. The folder's name contains the base file's instant
and file id. The partition digest distinguishes base files of two partitions that share both; bucket
indexes with non-blocking concurrency control write such files.
"""

import hashlib
from functools import lru_cache

from hudi_index_service.hudi.snapshot import BaseFile, BaseFileName, parse_file_name
from hudi_index_service.index.metadata.documents import INDEX_ROOT


def index_type_folder(index_type: str) -> str:
    """The folder of all entries of an index type."""
    return f"{INDEX_ROOT}/{index_type}"


def entry_folder(index_type: str, base_file: BaseFile) -> str:
    """The folder of the base file's entry, which may not exist."""
    digest = _partition_digest(base_file.partition)
    return f"{index_type_folder(index_type)}/{base_file.instant}/{base_file.file_id}/{digest}"


@lru_cache(maxsize=4096)
def _partition_digest(partition: str) -> str:
    return hashlib.sha256(partition.encode()).hexdigest()[:16]


def entry_folder_at(index_type: str, path: str) -> str | None:
    """The same for the base file at a path; None if no base file has such a name."""
    partition, _, file_name = path.rpartition("/")
    name = parse_file_name(file_name)
    if not isinstance(name, BaseFileName):
        return None
    return entry_folder(index_type, BaseFile(path, partition, name.file_id, name.instant, 0))


def instant_of(folder: str) -> str:
    """The instant of the base file that an entry's folder belongs to."""
    return folder.removeprefix(f"{INDEX_ROOT}/").split("/")[1]
