"""HBase standalone and its Thrift server: started, frozen, killed and started again."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from dev.daemon import Daemon
from dev.hbase.configuration import LOOPBACK, Ports, free_ports, told, write_configuration
from dev.jars import fetch_all, hbase_jars

READY_SECONDS = 120
ATTEMPTS = 3
NAMESPACES = Path(__file__).with_name("CreateNamespaces.java")

# What HBase's own start script opens to it of JDK 17.
OPENED = [
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
]


class HBaseFailed(Exception):
    """HBase did not start; the message has the end of its log."""


class HBase:
    """A running HBase.

    Attributes:
        host: Of the Thrift server.
        port: Of the Thrift server; the same after a restart.
        folder: Configuration, logs (hbase.log, thrift.log) and data.
    """

    def __init__(
        self, folder: Path, extra: Mapping[str, str], *, starts_fast: bool = False
    ) -> None:
        """Starts it and waits until it answers. See `running_hbase`.

        Raises:
            HBaseFailed: it ended, or did not answer in time.
        """
        self.host = LOOPBACK
        self.folder = folder
        self._compiler = ["-XX:TieredStopAtLevel=1"] if starts_fast else []
        self._jars = fetch_all(hbase_jars(), say=print)
        for attempt in range(1, ATTEMPTS + 1):
            self._ports = free_ports()
            write_configuration(self._conf, folder / "data", self._ports, extra)
            try:
                self._start()
                return
            except HBaseFailed:
                # Somebody else may have taken a port just before HBase did.
                if attempt == ATTEMPTS or not self._port_was_taken():
                    raise

    @property
    def port(self) -> int:
        """Port of the Thrift server."""
        return self._ports.thrift

    @property
    def ports(self) -> Ports:
        """All that it listens on."""
        return self._ports

    @property
    def _conf(self) -> Path:
        return self.folder / "conf"

    def _start(self) -> None:
        try:
            self._hbase = self._daemon("hbase", 768, "org.apache.hadoop.hbase.master.HMaster")
            self._start_thrift()
        except BaseException:
            self.stop(seconds=0)
            raise

    def _start_thrift(self) -> None:
        self._thrift = self._daemon("thrift", 256, "org.apache.hadoop.hbase.thrift.ThriftServer")
        self._wait_until_ready()

    def _daemon(self, name: str, heap_mb: int, main: str) -> Daemon:
        return Daemon([*self._java(heap_mb), main, "start"], self.folder / f"{name}.log")

    def _java(self, heap_mb: int) -> list[str]:
        class_path = os.pathsep.join([str(self._conf), *map(str, self._jars)])
        java = os.environ.get("JAVA_HOME", "")
        return [
            str(Path(java, "bin", "java")) if java else "java",
            f"-Xmx{heap_mb}m",
            "-XX:+UseSerialGC",
            *self._compiler,
            "-Djava.net.preferIPv4Stack=true",
            *OPENED,
            "-cp",
            class_path,
        ]

    def _wait_until_ready(self) -> None:
        """Returns once all tables can be listed and looked into, by the Thrift server."""
        from happybase import Connection
        from thriftpy2.thrift import TException

        deadline = time.monotonic() + READY_SECONDS
        trouble: Exception | None = None
        while time.monotonic() < deadline:
            for daemon in self._daemons():
                if not daemon.running():
                    raise HBaseFailed(f"{daemon.log} ends with\n{daemon.tail()}")
            try:
                connection = Connection(self.host, self.port, timeout=10_000)
                try:
                    # Whose regions are served as well.
                    for name in (b"hbase:namespace", *connection.tables()):
                        if connection.is_table_enabled(name):
                            connection.table(name).row(b"default")
                finally:
                    connection.close()
                return
            except (TException, OSError) as failure:
                trouble = failure
                time.sleep(0.1)
        tails = "\n".join(f"{each.log} ends with\n{each.tail()}" for each in self._daemons())
        raise HBaseFailed(f"no answer within {READY_SECONDS} s ({trouble!r}): {tails}")

    def _port_was_taken(self) -> bool:
        logs = "".join(each.log.read_text(errors="replace") for each in self._daemons())
        return "Address already in use" in logs or "Could not start ZK at requested port" in logs

    def _daemons(self) -> Sequence[Daemon]:
        started = (getattr(self, "_hbase", None), getattr(self, "_thrift", None))
        return [each for each in started if each is not None]

    def create_namespaces(self, *names: str) -> None:
        """Creates HBase namespaces that are not there yet: what Thrift has no call for.

        Raises:
            subprocess.CalledProcessError: HBase refused.
        """
        command = [*self._java(128), str(NAMESPACES), *names]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)

    def freeze_thrift(self) -> None:
        """The Thrift server accepts connections, and answers nothing until `thaw`."""
        self._thrift.freeze()

    def freeze(self) -> None:
        """HBase answers nothing until `thaw`; the Thrift server waits for it in vain."""
        self._hbase.freeze()

    def thaw(self) -> None:
        """Lets go on what was frozen."""
        for daemon in self._daemons():
            daemon.thaw()

    def kill_thrift(self) -> None:
        """Ends the Thrift server as a crash does: connections are refused."""
        self._thrift.kill()

    def restart_thrift(self) -> None:
        """Starts the Thrift server anew on the same port, and waits until it answers."""
        self._thrift.stop()
        self._start_thrift()

    def kill(self) -> None:
        """Ends HBase and its Thrift server as a crash does: what was not flushed may be lost."""
        for daemon in reversed(self._daemons()):
            daemon.kill()

    def stop(self, seconds: float = 60) -> None:
        """Ends both in an orderly way: all that was put is there after `restart`.

        Args:
            seconds: How long each may take before it is killed.
        """
        for daemon in reversed(self._daemons()):
            daemon.stop(seconds) if seconds else daemon.kill()

    def restart(self) -> None:
        """Ends what runs, starts both on the same ports with the same data, and waits."""
        self.stop()
        self._start()

    def mend(self) -> None:
        """Sees to it that both run and answer, whatever was frozen, killed or stopped."""
        self.thaw()
        if not self._hbase.running():
            self.restart()
        elif not self._thrift.running():
            self.restart_thrift()
        else:
            self._wait_until_ready()

    def __str__(self) -> str:
        return f"HBase in {self.folder} ({told(self._ports)})"


@contextmanager
def running_hbase(
    folder: Path | None = None,
    extra: Mapping[str, str] | None = None,
    *,
    starts_fast: bool = False,
) -> Iterator[HBase]:
    """An HBase for the block, on free ports of the loopback interface.

    Args:
        folder: Receives configuration, logs and data; a temporary one if absent.
        extra: Properties for hbase-site.xml.
        starts_fast: In half the time, and serves more slowly later on: Java compiles less.

    Raises:
        HBaseFailed: it did not start.
    """
    with tempfile.TemporaryDirectory(prefix="hbase-") as temporary:
        hbase = HBase(folder or Path(temporary), extra or {}, starts_fast=starts_fast)
        try:
            yield hbase
        finally:
            # Its data goes with the folder: nothing has to be flushed.
            hbase.stop(seconds=0)
