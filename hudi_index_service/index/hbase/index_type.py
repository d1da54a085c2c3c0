"""Entry point of the HBase index type: what it needs, how it builds, stores and opens."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from hudi_index_service.config import HBaseSettings, Settings, settings
from hudi_index_service.index.btree import BTreeIndexType
from hudi_index_service.index.btree.fields import required_fields
from hudi_index_service.index.contract import FileRange, IndexReader, PackedIndex, StoredColumn
from hudi_index_service.index.hbase.server import HBaseServer, require_client, server_of


class HBaseIndexType(BTreeIndexType):
    """See `hudi_index_service.index.contract.IndexType`. An index is built as a B+ tree, in parts
    where the base file is large, and its leaves are stored in HBase when it is whole.

    Args:
        known: Where HBase is; None: as the process's settings say.
    """

    name = "hbase"
    contract = 1
    version = 1
    fetches_blocks = False

    def __init__(self, known: HBaseSettings | None = None) -> None:
        self._known = known

    def configured(self, settings: Settings) -> "HBaseIndexType":
        """The same, with the HBase of these settings."""
        return HBaseIndexType(settings.hbase)

    def fields(self, column: str, type: pa.DataType, options: Mapping[str, str]) -> tuple[str, ...]:
        """As a B+ tree's: one, for a column has no options."""
        return required_fields(column, type, options, kind=self.name)

    def check_runtime(self) -> None:
        """The Python packages that HBase is asked by; asks no server."""
        require_client()

    def verify(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> list[str]:
        """Every leaf's checksum, order and numbers, and those of the manifest."""
        from hudi_index_service.index.hbase.check import check_index

        return check_index(index, columns, self._server)

    def open(self, index: PackedIndex, columns: Sequence[StoredColumn]) -> IndexReader:
        """Opens the inner tree; HBase is asked when something is looked up."""
        from hudi_index_service.index.hbase.reader import HBaseReader

        return HBaseReader(index, columns, self._server)

    def store(
        self, files: Mapping[str, Path | FileRange], table: str, path: str
    ) -> Mapping[str, Path | FileRange | bytes]:
        """Puts the leaves into HBase."""
        from hudi_index_service.index.hbase.store import EntryStore

        return EntryStore(self._server, table).store(files, path)

    def stored(self, table: str) -> Mapping[str, float]:
        """Of whose leaves HBase has any."""
        from hudi_index_service.index.hbase.store import EntryStore

        return EntryStore(self._server, table).stored()

    def destroy(self, table: str, paths: Sequence[str]) -> None:
        """Removes the leaves from HBase."""
        from hudi_index_service.index.hbase.store import EntryStore

        EntryStore(self._server, table).destroy(paths)

    @property
    def _server(self) -> HBaseServer:
        return server_of(settings().hbase if self._known is None else self._known)
