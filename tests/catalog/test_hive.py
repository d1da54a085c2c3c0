"""Tables by their names in a Hive metastore: a real one, from the jars that PySpark brings."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import Database, SerDeInfo, StorageDescriptor, Table
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from dev.daemon import Daemon
from hudi_index_service import open_table
from hudi_index_service.catalog import tables_in_hive
from hudi_index_service.errors import (
    CatalogFailed,
    NotAHudiTable,
    StorageUnsupported,
    TableNotFound,
)
from hudi_index_service.storage.store import normalize_uri
from tests.golden.table import Golden
from tests.ports import free_port
from tests.programs import await_port

_SETTINGS = {
    "derby.stream.error.file": os.devnull,
    "hive.async.log.enabled": "false",  # its logging needs a jar that PySpark lacks
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A metastore on the loopback interface, in memory, with the database db."""
    folder, port = tmp_path_factory.mktemp("metastore"), free_port()
    settings = {
        **_SETTINGS,
        "java.io.tmpdir": str(folder),
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
    }
    command = [
        *("env", "-C", str(folder)),
        str(Path(os.environ["JAVA_HOME"], "bin", "java")),
        *(f"-D{key}={value}" for key, value in settings.items()),
        "-cp",
        str(Path(pyspark.__path__[0], "jars", "*")),
        *("org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)),
    ]
    process = Daemon(command, folder / "metastore.log")

    try:
        await_port(process, port)
        with client(port) as hive:
            hive.create_database(Database(name="db"))
        yield port
    finally:
        process.kill()


@contextmanager
def client(port: int) -> Iterator[Any]:
    """A connection to a metastore."""
    transport = TBufferedTransport(TSocket("127.0.0.1", port))
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
    finally:
        transport.close()


# As Spark and Hudi 1.2.0 wrote them for CREATE TABLE … USING hudi and for its synchronization.
HUDI = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
PARQUET = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"


def put(
    port: int,
    name: str,
    location: Path | None,
    *,
    input_format: str = HUDI,
    provider: str | None = "hudi",
    read_optimized: bool = False,
) -> None:
    serde = SerDeInfo(parameters={"hoodie.query.as.ro.table": str(read_optimized).lower()})
    table = Table(
        dbName="db",
        tableName=name,
        tableType="VIRTUAL_VIEW" if location is None else "EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE"}
        | ({} if provider is None else {"spark.sql.sources.provider": provider}),
        partitionKeys=[],
        sd=StorageDescriptor(
            cols=[],
            location=None if location is None else f"file:{location}",
            inputFormat=input_format,
            outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
            serdeInfo=serde,
        ),
        viewOriginalText="SELECT 1" if location is None else None,
        viewExpandedText="SELECT 1" if location is None else None,
    )
    with client(port) as hive:
        hive.create_table(table)


@pytest.mark.slow
def test_names_in_a_metastore(port: int, golden: Golden, tmp_path: Path) -> None:
    path = golden("rfc_messages").put(tmp_path / "messages")
    (tmp_path / "plain").mkdir()
    put(port, "messages", path)
    put(port, "by_hive", path, provider=None)
    put(port, "plain", tmp_path / "plain", provider=None, input_format=PARQUET)
    put(port, "cities", tmp_path / "plain", provider="parquet", input_format=PARQUET)
    put(port, "messages_ro", path, read_optimized=True)
    put(port, "seen", None)
    catalog = f"hive://127.0.0.1:{port}"

    table = open_table(f"{catalog}/db.messages")
    assert table.uri == str(path)
    assert table.scan().count() == golden("rfc_messages").rows().num_rows
    assert open_table(f"{catalog}/db.by_hive").uri == str(path)
    for name, reason in (
        ("plain", "is not a Hudi table"),
        ("cities", "is not a Hudi table, but of format parquet"),
        ("messages_ro", "is the read-optimized view"),
        ("seen", "is a view"),
    ):
        with pytest.raises(NotAHudiTable, match=reason):
            open_table(f"{catalog}/db.{name}")
    for name in ("db.massages", "bd.messages"):
        with pytest.raises(TableNotFound, match=f"has no table {name}"):
            open_table(f"{catalog}/{name}")

    found = dict(tables_in_hive(catalog, "db"))
    assert sorted(found) == ["by_hive", "cities", "messages", "messages_ro", "plain", "seen"]
    assert (found["messages"].name, found["seen"].is_view) == (f"{catalog}/db.messages", True)
    assert normalize_uri(found["by_hive"].base_path()) == str(path)
    with pytest.raises(TableNotFound, match="has no database bd"):
        tables_in_hive(catalog, "bd")


def test_a_metastore_that_cannot_be_reached_is_named() -> None:
    port = free_port()
    with pytest.raises(CatalogFailed, match=f"The metastore at 127.0.0.1:{port} does not answer"):
        open_table(f"hive://127.0.0.1:{port}/db.messages")
    with pytest.raises(CatalogFailed, match=f"The metastore at 127.0.0.1:{port} does not answer"):
        tables_in_hive(f"hive://127.0.0.1:{port}", "db")
    with pytest.raises(StorageUnsupported, match="does not name a database"):
        tables_in_hive("hive://h:99999", "db")
