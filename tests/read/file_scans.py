"""Scans of a Parquet file that a test wrote as ``f.parquet``."""

from pathlib import Path

import pyarrow as pa
from hudi_index_parquet import Footer, stripped_footer

from hudi_index_service.config import Settings
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.base_file.file_scan import FileScan
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage.store import Storage

NAME = "f.parquet"


def scan_of(folder: Path | Storage, columns: pa.Schema) -> FileScan:
    """A scan of the file in this folder."""
    storage = folder if isinstance(folder, Storage) else Storage(folder)
    base_file = BaseFile(NAME, "", "", "", storage.size(NAME))
    return FileScan(storage, base_file, columns, Settings(), SliceStatistics(NAME, Access.SCAN))


def footer_of(scan: FileScan) -> Footer:
    """The footer of the file, which is a local one."""
    return Footer(stripped_footer(str(scan.storage.local_path(NAME))))
