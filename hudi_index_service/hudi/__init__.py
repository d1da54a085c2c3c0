"""The Hudi table, read only: capability gate, snapshot, timeline, files."""

from collections.abc import Mapping
from pathlib import Path

from hudi_index_service.hudi.snapshot import BaseFile, FileSlice, Instant, ServiceKind, Snapshot
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.storage.store import Storage
from hudi_index_service.tested import WITHOUT_SPARK, name_untested, versions_here

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
    name_untested(versions_here(), WITHOUT_SPARK)
    return HudiTable(Storage(uri, storage_options))
