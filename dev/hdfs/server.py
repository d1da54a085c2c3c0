"""A small HDFS with two name nodes, and with Kerberos if asked: started, frozen and stopped."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dev.daemon import LOGGING, Daemon
from dev.jars import fetch_all, hdfs_jars

READY_SECONDS = 120
PROGRAM = Path(__file__).with_name("MiniCluster.java")

PROPERTIES = {
    "dfs.replication": "2",
    # Otherwise closing a file takes half a second if the name node has yet to hear of its last
    # block from a data node.
    "dfs.namenode.file.close.num-committed-allowed": "1",
}


KERBEROS = {
    "hadoop.security.authentication": "kerberos",
    "dfs.data.transfer.protection": "authentication",
}
"""With these properties it has its own KDC. Clients need them as well."""

REALM = "EXAMPLE.COM"


class HdfsFailed(Exception):
    """HDFS did not start; the message has the end of its log."""


class Hdfs:
    """A running HDFS.

    Attributes:
        host: Of the name nodes.
        standby, port: Of the name node that waits, and of the one that answers.
        folder: Configuration, log (hdfs.log) and data.
        krb5_conf: With Kerberos, the configuration of its clients.
    """

    def __init__(self, folder: Path, extra: Mapping[str, str]) -> None:
        """Starts it and waits until it answers. See `running_hdfs`.

        Raises:
            HdfsFailed: it ended, or did not answer in time.
        """
        self.host = "127.0.0.1"
        self.folder = folder
        (folder / "log4j.properties").write_text(LOGGING)
        properties = {**PROPERTIES, **extra}
        self._daemon = Daemon(
            [
                *self._java(),
                str(PROGRAM),
                str(self._data),
                *(f"{key}={value}" for key, value in properties.items()),
            ],
            folder / "hdfs.log",
        )
        try:
            started = self._wait_until_ready()
            self.standby, self.port = int(started[1]), int(started[2])
            kerberos = self._logged(r"Kerberos: (.*)")
            self.krb5_conf = kerberos[1] if kerberos else ""
        except BaseException:
            self.stop()
            raise

    @property
    def uri(self) -> str:
        """The root, at the name node that answers."""
        return f"hdfs://{self.host}:{self.port}"

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def credentials(self, user: str) -> dict[str, str]:
        """A client's options with Kerberos; the user is ``hdfs/localhost``, who may do everything,
        or ``client``."""
        keytab = "client" if user == "client" else "server"
        return {
            **KERBEROS,
            "kerberos_principal": f"{user}@{REALM}",
            "kerberos_keytab": str(self._data / f"{keytab}.keytab"),
        }

    def _java(self) -> list[str]:
        import pyspark

        client = Path(pyspark.__file__).parent.glob("jars/hadoop-client-*.jar")
        jars = [*fetch_all(hdfs_jars(), say=print), *sorted(client)]
        java = os.environ.get("JAVA_HOME", "")
        return [
            str(Path(java, "bin", "java")) if java else "java",
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Djava.net.preferIPv4Stack=true",
            "-cp",
            os.pathsep.join(map(str, [self.folder, *jars])),
        ]

    def _wait_until_ready(self) -> re.Match[str]:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if started := self._logged(r"Name nodes: (\d+) (\d+)"):
                return started
            if not self._daemon.running():
                break
            time.sleep(0.1)
        raise HdfsFailed(f"{self._daemon.log} ends with\n{self._daemon.tail()}")

    def _logged(self, line: str) -> re.Match[str] | None:
        return re.search(f"^{line}$", self._daemon.log.read_text(errors="replace"), re.MULTILINE)

    def freeze(self) -> None:
        """It accepts connections, and answers nothing until `thaw`."""
        self._daemon.freeze()

    def thaw(self) -> None:
        """Lets it go on, if it was frozen."""
        self._daemon.thaw()

    def stop(self) -> None:
        """Ends it at once: its data goes with the folder."""
        self._daemon.kill()


@contextmanager
def running_hdfs(
    folder: Path | None = None, extra: Mapping[str, str] | None = None
) -> Iterator[Hdfs]:
    """An HDFS for the block, on free ports of the loopback interface.

    Args:
        folder: Receives configuration, log and data; a temporary one if absent.
        extra: Properties of Hadoop; `KERBEROS` for Kerberos.

    Raises:
        HdfsFailed: it did not start.
    """
    with tempfile.TemporaryDirectory(prefix="hdfs-") as temporary:
        hdfs = Hdfs(folder or Path(temporary), extra or {})
        try:
            yield hdfs
        finally:
            hdfs.stop()
