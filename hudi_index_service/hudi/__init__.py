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
        uri: The folder that holds ``.hoodie``: a local path, ``s3://``, ``gs://`` or ``az://``.
        storage_options: Credentials, region, endpoint of a remote store, under obstore's keys;
            hudi-rs takes the same ones.

    Raises:
        TableNotFound: nothing is stored there.
        NotAHudiTable: the location is not a Hudi table.
        StorageUnsupported: the scheme is not supported.
    """
    return HudiRsTable(Storage(uri, storage_options))
