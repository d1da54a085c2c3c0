"""A build that is too large for one machine: spark-submit runs it, and tells its progress and end.

Spark gives a driver no standard input, so that the order, which may hold secrets, reaches it by a
socket in a folder of this user. The driver must therefore run on this machine: in client mode.
"""

import logging
import select
import shutil
import socket
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import IO

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import BuildFailed
from hudi_index_service.fleet.builds.child import Progress
from hudi_index_service.fleet.builds.messages import (
    Counted,
    Ended,
    Logged,
    Order,
    Progressed,
    line_of,
    message_of,
)
from hudi_index_service.storage.store import count_requests
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import reason, shortened

log = logging.getLogger(__name__)

APPLICATION = Path(__file__).with_name("submitted") / "spark.py"
"""Spark puts its folder on the path; it must be alone there."""

_SECONDS_TO_END = 20.0
_SECONDS_TO_DIE = 5.0
_TICK = 0.5
_LINES = 5


def is_for_spark(order: Order, table: IndexedTable, strategy: Strategy) -> bool:
    """Whether what a build would read is more than its table's policy leaves to this machine.

    Raises:
        IndexServiceError: the table cannot be read.
    """
    above, budget = order.policy.spark_above, order.policy.budget
    if above is None:
        return False
    due = table.build(
        strategy=strategy, backfill=order.policy.backfill, dry_run=True, with_estimate=False
    ).due
    sizes = {each.base_file.path: each.base_file.size for each in due}
    due_bytes = sum(sizes.values())
    return (due_bytes if budget.bytes is None else min(due_bytes, budget.bytes)) > above


def build_by_spark(order: Order, progress: Progress) -> Ended:
    """Has spark-submit carry out the order, and waits for its end. If this raises, as when the
    build is cancelled, Spark's driver ends the build and itself.

    Raises:
        BuildFailed: it cannot be started, or it ended without telling how.
    """
    command = order.policy.spark_submit
    # The driver itself builds all of it.
    order_of_driver = replace(order, policy=replace(order.policy, spark_above=None))
    with ExitStack() as stack:
        folder = tempfile.mkdtemp(prefix="hudi-index-")  # of this user alone
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        listening = stack.enter_context(closing(socket.socket(socket.AF_UNIX)))
        address = str(Path(folder) / "build")
        try:
            listening.bind(address)
            listening.listen(1)
            process = subprocess.Popen(
                [*command, APPLICATION, address],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise BuildFailed(
                f"{command[0]} cannot be started: {reason(error)}.",
                remedy="Name the command in the fleet file: submit, in spark, in build.",
            ) from error
        stack.callback(_end, process)
        stack.callback(listening.close)  # before: a driver that comes later is not kept waiting
        assert process.stdout is not None
        said: deque[str] = deque(maxlen=_LINES)
        reading = Thread(target=_read, args=(process.stdout, said), daemon=True)
        reading.start()
        connection = _accepted(listening, process)
        if connection is not None:
            # Closed before the process is waited for: that ends it.
            with connection:
                connection.sendall(line_of(order_of_driver))
                ended = _awaited(connection, order, progress)
                if ended is not None:
                    return ended
        status = process.wait()
        reading.join(_SECONDS_TO_DIE)
    last = next((each for each in reversed(said) if each), "it said nothing")
    raise BuildFailed(
        f"{command[0]} ended with the status {status}: {shortened(last)}",
        remedy="See Spark's log. The driver has to run on the service's machine, in client mode.",
    )


def _accepted(listening: socket.socket, process: "subprocess.Popen[bytes]") -> socket.socket | None:
    """The driver's connection; None if the process ends before."""
    while process.poll() is None:
        ready, _, _ = select.select([listening], [], [], _TICK)
        if ready:
            return listening.accept()[0]
    return None


def _awaited(connection: socket.socket, order: Order, progress: Progress) -> Ended | None:
    """What the driver tells at the end; None if it breaks off."""
    for line in _lines(connection):
        message = message_of(line)
        if isinstance(message, Ended):
            return message
        if isinstance(message, Progressed):
            progress(message.progress)
        elif isinstance(message, Counted):
            count_requests(message.requests)
        elif isinstance(message, Logged):
            logging.getLogger(message.logger).log(message.level, "%s", message.message)
    log.warning("The build of %s by Spark has broken off.", order.table)
    return None


def _lines(connection: socket.socket) -> Iterator[bytes]:
    with connection.makefile("rb") as stream:
        try:
            yield from stream
        except ConnectionResetError:  # it was killed
            return


def _read(output: IO[bytes], said: deque[str]) -> None:
    """Keeps the last lines of what Spark prints, which is too much for the service's log."""
    for line in output:
        said.append(line.decode(errors="replace").strip())


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The driver has noticed that nobody waits for it, and ends; if not, it is ended."""
    for end, seconds in ((None, _SECONDS_TO_END), (process.terminate, _SECONDS_TO_DIE)):
        if end is not None:
            end()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
        return
    process.kill()
    process.wait()
