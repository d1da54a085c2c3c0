"""What tests have in place of spark-submit: it goes wrong in the way that its first argument says.

    python -m tests.fleet.fake_spark_submit FAULT NOTE APPLICATION ADDRESS

NOTE is a file for its process id, and at its end for why it ended.
"""

import os
import signal
import socket
import sys
from pathlib import Path
from time import sleep

from hudi_index_service.fleet.builds.messages import (
    Counted,
    Ended,
    Logged,
    Progressed,
    line_of,
    message_of,
)
from hudi_index_service.index.metadata.build_records import BuildProgress


def main(fault: str, note: Path, address: str) -> None:
    """Does what the fault says."""
    print("many words of Spark", flush=True)
    if fault == "dies":
        print("Exception: there is no cluster", flush=True)
        sys.exit(3)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    stream = connection.makefile("rb")
    order = message_of(stream.readline())
    note.write_text(str(os.getpid()))
    connection.sendall(
        line_of(Progressed(order.request, BuildProgress(2, 1, 0, 20, 10, 9, 5, False, 1, 1, 1)))
    )
    if fault == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sleep(3600)
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "slow":
        stream.read()
        note.write_text("nobody waits")
        sys.exit(1)
    connection.sendall(line_of(Counted(order.request, {"write": 7})))
    connection.sendall(line_of(Logged(20, "hudi_index_service.build", "a line of the driver")))
    secret = order.storage_options.get("secret", "")
    connection.sendall(line_of(Ended(order.request, "finished", built=2, summary=secret)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[4])
