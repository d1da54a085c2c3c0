"""The configuration files of an HBase that runs in one folder on free ports of the loopback."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from dev.daemon import LOGGING

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Ports:
    """The ports that an HBase listens on."""

    zookeeper: int
    master: int
    region_server: int
    thrift: int


def free_ports() -> Ports:
    """Ports that nobody listens on now; somebody else may take one before HBase does."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(4)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return Ports(*(each.getsockname()[1] for each in sockets))


def write_configuration(folder: Path, data: Path, ports: Ports, extra: Mapping[str, str]) -> None:
    """Writes hbase-site.xml and log4j.properties into `folder`.

    Args:
        folder: It goes on the class path.
        data: Where HBase keeps what it stores.
        ports: Asked of HBase.
        extra: Properties that come on top, or instead.
    """
    properties = {
        "hbase.rootdir": f"file://{data / 'root'}",
        "hbase.zookeeper.property.dataDir": str(data / "zookeeper"),
        "hbase.tmp.dir": str(data / "tmp"),
        "hbase.cluster.distributed": "false",
        # A local folder cannot promise that what was flushed outlives a crash of the machine.
        "hbase.unsafe.stream.capability.enforce": "false",
        "hbase.wal.provider": "filesystem",
        "hbase.master.ipc.address": LOOPBACK,
        "hbase.regionserver.ipc.address": LOOPBACK,
        "hbase.master.hostname": "localhost",
        "hbase.regionserver.hostname": "localhost",
        "hbase.unsafe.regionserver.hostname": "localhost",
        "hbase.zookeeper.quorum": LOOPBACK,
        "hbase.zookeeper.property.clientPort": str(ports.zookeeper),
        "hbase.zookeeper.property.clientPortAddress": LOOPBACK,
        "hbase.master.port": str(ports.master),
        "hbase.regionserver.port": str(ports.region_server),
        "hbase.regionserver.thrift.ipaddress": LOOPBACK,
        "hbase.regionserver.thrift.port": str(ports.thrift),
        # No web pages.
        "hbase.master.info.port": "-1",
        "hbase.regionserver.info.port": "-1",
        "hbase.thrift.info.port": "-1",
        "hbase.regionserver.handler.count": "5",
        # There is one region server: nobody waits for others, or long for the next heartbeat.
        "hbase.master.wait.on.regionservers.mintostart": "1",
        "hbase.master.wait.on.regionservers.maxtostart": "1",
        "hbase.regionserver.msginterval": "250",
        # While all of it ends, ZooKeeper ends first, and what asks it then asks in vain.
        "zookeeper.recovery.retry": "1",
        "zookeeper.recovery.retry.intervalmill": "50",
        # The Thrift server is HBase's client: what fails is told, not tried for many minutes.
        "hbase.client.retries.number": "4",
        "hbase.client.pause": "50",
        "hbase.rpc.timeout": "10000",
        "hbase.client.operation.timeout": "20000",
        "hbase.client.scanner.timeout.period": "20000",
        **extra,
    }
    rows = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in properties.items()
    )
    folder.mkdir(parents=True, exist_ok=True)
    site = f'<?xml version="1.0"?>\n<configuration>\n{rows}</configuration>\n'
    (folder / "hbase-site.xml").write_text(site)
    (folder / "log4j.properties").write_text(LOGGING)


def told(ports: Ports) -> str:
    """The ports, for a person."""
    return ", ".join(f"{name} {port}" for name, port in asdict(ports).items())
