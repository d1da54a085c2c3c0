"""The Hudi table, read only: protocol, capability gate, snapshot, timeline."""

from collections.abc import Mapping
from pathlib import Path

from hudi_index_service.hudi.hudi_rs.table import HudiRsTable
from hudi_index_service.hudi.protocol import (
    BaseFile,
    FileSlice,
    HudiTable,
    Instant,
    ServiceKind,
    Snapshot,
)
from hudi_index_service.storage.store import Storage

__all__ = [
    "BaseFile",
    "FileSlice",
    "HudiTable",
    "Instant",
    "ServiceKind",
    "Snapshot",
    "open_hudi_table",
]


def open_hudi_table(uri: str | Path, storage_options: Mapping[str, str] | None = None) -> HudiTable:
    """Opens the Hudi table at a base path for reading.

    Args:
        uri: The folder that holds ``.hoodie``: a local path, ``s3://``, ``gs://``, ``az://`` or
            ``hdfs://``.
        storage_options: Credentials, region, endpoint of an object store, under obstore's keys;
            hudi-rs takes the same ones. For HDFS: Hadoop's keys.

    Raises:
        TableNotFound: nothing is stored there.
        NotAHudiTable: the location is not a Hudi table.
        StorageUnsupported: the scheme is not supported.
    """
    return HudiRsTable(Storage(uri, storage_options))
