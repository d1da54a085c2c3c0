"""The spark-submit application of a fleet's large builds: takes its order by the socket that its
one argument names, builds as Spark jobs, and tells by the socket what a build's process tells.

When the other end of the socket closes, nobody waits for the build any more, and it ends.
"""

import logging
import os
import signal
import socket
import sys
from functools import partial
from threading import Thread
from time import sleep
from types import FrameType
from typing import BinaryIO

from pyspark.sql import SparkSession

from hudi_index_service.fleet.builds.child import Pipe, carried_out
from hudi_index_service.fleet.builds.messages import Order, message_of
from hudi_index_service.fleet.builds.runner import run

_SECONDS_TO_END = 15.0


def main(address: str) -> None:
    """Carries out the order."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        stream = connection.makefile("rb")
        order = message_of(stream.readline())
        assert isinstance(order, Order), "the service sends an order"
        signal.signal(signal.SIGTERM, _on_sigterm)
        Thread(target=_end_with, args=(stream,), daemon=True).start()
        pipe = Pipe(connection.fileno())
        logging.getLogger().addHandler(pipe)
        spark = SparkSession.builder.appName(f"hudi-index build {order.table}").getOrCreate()
        try:
            ended = carried_out(partial(run, spark=spark), order, pipe)
        finally:
            spark.stop()
        pipe.count(order.request)
        pipe.send(ended)


def _end_with(stream: BinaryIO) -> None:
    stream.read()
    os.kill(os.getpid(), signal.SIGTERM)
    sleep(_SECONDS_TO_END)
    os._exit(1)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    main(sys.argv[1])
