"""The HBase of the other tests: it keeps data over restarts, and never outlives the test run."""

import os
import signal
import subprocess
import sys
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from dev.daemon import Daemon
from dev.hbase import HBase
from dev.jars import fetched, hbase_jars
from tests.hbase.conftest import Cells


def test_jars_are_pinned_and_fetched(hbase: HBase) -> None:
    jars = hbase_jars()
    assert {("hbase-server", "2.6.1"), ("hbase-thrift", "2.6.1")} <= {
        (jar.artifact, jar.version) for jar in jars
    }
    assert len({jar.path() for jar in jars}) == len(jars) == len({jar.sha256 for jar in jars})
    assert all(fetched(jar) for jar in jars)
    assert hbase.host == "127.0.0.1"


def test_cells_survive_a_restart(breakable: HBase, cells: Cells) -> None:
    import happybase

    with happybase.ConnectionPool(1, host=breakable.host, port=breakable.port).connection() as link:
        link.create_table(cells.table, {"r": {"max_versions": 1}})
    cells.put(b"key", {b"r:": b"value"})
    port = breakable.port

    breakable.restart()

    assert breakable.port == port
    assert cells.all() == {b"key": {b"r:": b"value"}}


_STARTER = """
import sys, time
from pathlib import Path
from dev.daemon import Daemon

daemon = Daemon(["sleep", "1000"], Path(sys.argv[1]))
if sys.argv[2] == "frozen":
    daemon.freeze()
print(daemon.pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("state", ["running", "frozen"])
def test_daemon_ends_with_its_parent_process(tmp_path: Path, state: str) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", _STARTER, str(tmp_path / "log"), state], stdout=subprocess.PIPE
    )
    assert starter.stdout is not None
    with starter.stdout as output:
        daemon = os.pidfd_open(int(output.readline()))
    try:
        starter.kill()
        starter.wait()
        # Readable once the process has ended.
        assert wait([daemon], 60) == [daemon]
    finally:
        os.close(daemon)


def test_frozen_daemon_can_be_stopped(tmp_path: Path) -> None:
    daemon = Daemon(["sleep", "1000"], tmp_path / "log")
    daemon.freeze()
    daemon.stop()
    assert not daemon.running()
    with pytest.raises(ProcessLookupError):
        os.kill(daemon.pid, signal.SIG_DFL)
