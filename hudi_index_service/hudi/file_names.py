"""Parses the names of files in partitions.

Sources: Hudi's `FSUtils` (``BASE_FILE_PATTERN``, ``LOG_FILE_PATTERN``) and the file layout section
of the Hudi technical specification.
"""

import re
from dataclasses import dataclass

# <fileId>_<writeToken>_<instant>.parquet
_BASE_FILE = re.compile(
    r"(?P<file_id>[a-zA-Z0-9-]+)_(?P<token>[a-zA-Z0-9-]+)_(?P<instant>[0-9]+)\.parquet"
)
# .<fileId>_<instant>.log.<version>[_<writeToken>][.cdc]
_LOG_FILE = re.compile(
    r"\.(?P<file_id>[^._]+)_(?P<instant>[^._]+)\.log\.(?P<version>[0-9]+)"
    r"(?:_(?P<token>[0-9]+-[0-9]+-[0-9]+))?(?P<cdc>\.cdc)?"
)
# .hoodie_partition_metadata, with a suffix if it is stored in the base file format.
_PARTITION_MARKER = ".hoodie_partition_metadata"
OTHER_FORMATS = (".orc", ".hfile", ".lance", ".vortex")
"""Suffixes of base files that are not Parquet files."""

_DATA_SUFFIXES = (".parquet", *OTHER_FORMATS)


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """A base file: `instant` is the requested time of the instant that wrote it."""

    file_id: str
    instant: str


@dataclass(frozen=True, slots=True)
class LogFileName:
    """A log file.

    Attributes:
        file_id: The file group it belongs to.
        instant: On table versions 8 and newer the requested time of the delta commit that wrote
            it; on version 6 the instant of the base file below it.
        change_data: Whether it holds change records for CDC queries (``.cdc``). The rows themselves
            are in the base or log file of the same change; snapshots never read a ``.cdc`` file.
    """

    file_id: str
    instant: str
    change_data: bool


@dataclass(frozen=True, slots=True)
class PartitionMarker:
    """``.hoodie_partition_metadata``, which marks its folder as a partition."""


@dataclass(frozen=True, slots=True)
class UnknownDataFile:
    """A file that looks like data but has no Hudi file name."""


FileName = BaseFileName | LogFileName | PartitionMarker | UnknownDataFile


def parse_file_name(name: str) -> FileName | None:
    """The file's kind; None for files that Hudi's readers ignore, too.

    Ignored are Hadoop's checksums (``.….crc``), markers like ``_SUCCESS`` and all other files that
    have neither the suffix of a data file nor the form of a log file name.
    """
    if name.endswith(".crc"):
        return None
    if name.startswith(_PARTITION_MARKER):
        return PartitionMarker()
    if match := _BASE_FILE.fullmatch(name):
        return BaseFileName(match["file_id"], match["instant"])
    if match := _LOG_FILE.fullmatch(name):
        return LogFileName(match["file_id"], match["instant"], match["cdc"] is not None)
    if name.endswith(_DATA_SUFFIXES) or (name.startswith(".") and ".log." in name):
        return UnknownDataFile()
    return None
