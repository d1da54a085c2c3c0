"""A real Hive metastore, from the jars that PySpark brings."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pyspark
from pymetastore.hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

_SETTINGS = {
    "derby.stream.error.file": os.devnull,
    "hive.async.log.enabled": "false",  # its logging needs a jar that PySpark lacks
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
}


@contextmanager
def metastore(folder: Path) -> Iterator[int]:
    """Starts a metastore on the loopback interface, with its tables in memory: the port."""
    port = _free_port()
    settings = {
        **_SETTINGS,
        "java.io.tmpdir": str(folder),
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
    }
    command = [
        str(Path(os.environ["JAVA_HOME"], "bin", "java")),
        *(f"-D{key}={value}" for key, value in settings.items()),
        "-cp",
        str(Path(pyspark.__path__[0], "jars", "*")),
        *("org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)),
    ]
    log = folder / "metastore.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
    try:
        _wait(process, port, log)
        yield port
    finally:
        process.kill()
        process.wait()


@contextmanager
def client(port: int) -> Iterator[Any]:
    """A connection to a metastore."""
    transport = TBufferedTransport(TSocket("127.0.0.1", port))
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
    finally:
        transport.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end = monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or monotonic() > end:
                raise AssertionError(log.read_text()) from None
            sleep(0.1)
