"""The entry point class of the HBase index type."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hudi_index_hbase.server import HBaseServer, client, server_of
from hudi_index_service.config import HBaseSettings, Settings, settings
from hudi_index_service.index.btree import BTreeIndexType
from hudi_index_service.index.contract import (
    FileRange,
    IndexReader,
    PackedIndex,
    StoredColumn,
    TypeCosts,
)


class HBaseIndexType(BTreeIndexType):
    """See `hudi_index_service.index.contract.IndexType`. An index is built as a B+ tree, in parts
    if the base file is large. When it is complete, its leaves are stored in HBase.

    Args:
        hbase_settings: The HBase settings; None for the process's settings.
    """

    name = "hbase"
    contract = 2
    version = 2
    oldest = 2
    fetches_blocks = False
    # Measured on one machine, without caching: over a network, a look-up takes one more round trip.
    costs = TypeCosts(open_ms=0.25, lookup_ms=2.0, listed_ms=0.225, step_ms=0.00002)

    def __init__(self, hbase_settings: HBaseSettings | None = None) -> None:
        self._settings = hbase_settings

    def configured(self, settings: Settings) -> "HBaseIndexType":
        """The index type with the HBase of these settings."""
        return HBaseIndexType(settings.hbase)

    def check_runtime(self) -> None:
        """Checks for the Python packages of the HBase client; sends no request."""
        client()

    def together(self, readers: Sequence[IndexReader]) -> None:
        """None: leaves are fetched from HBase for one entry at a time."""

    def verify(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> list[str]:
        """Checks each leaf's checksum, order and counts, and compares them with the manifest."""
        from hudi_index_hbase.reader import check_index

        return check_index(index, columns, self._server)

    def open(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> IndexReader:
        """Opens the inner tree; only look-ups send requests to HBase."""
        from hudi_index_hbase.reader import HBaseReader

        return HBaseReader(index, columns, self._server)

    def store(
        self, files: Mapping[str, Path | FileRange | bytes], table: str, path: str
    ) -> Mapping[str, Path | FileRange | bytes]:
        """Stores the leaves in HBase."""
        from hudi_index_hbase.store import EntryStore

        return EntryStore(self._server, table).store(files, path)

    def stored(self, table: str) -> Mapping[str, float]:
        """The data files with leaves in HBase, and when storing began."""
        from hudi_index_hbase.store import EntryStore

        return EntryStore(self._server, table).stored()

    def destroy(self, table: str, paths: Sequence[str]) -> None:
        """Removes the leaves from HBase."""
        from hudi_index_hbase.store import EntryStore

        EntryStore(self._server, table).destroy(paths)

    @property
    def _server(self) -> HBaseServer:
        return server_of(settings().hbase if self._settings is None else self._settings)
