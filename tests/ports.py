"""Ports of this machine on which nothing listens, or something unhelpful."""

import random
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self


def free_port() -> int:
    """A port on which no process listens, and which the system gives to none that asks for any
    port: a server may start on it a minute later."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10_000, first)
        with socket.socket() as server, suppress(OSError):
            server.bind(("127.0.0.1", port))
            return port


class Listener:
    """A port that accepts connections until the end of the block, and passes each to a function; by
    default to one that says nothing.

    Attributes:
        accepted: The connections, which stay open until the end unless the function closes them.
    """

    def __init__(self, talk: Callable[[socket.socket], object] = lambda _: None) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.accepted: list[socket.socket] = []
        self._talk = talk
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.accepted.append(connection)
            self._talk(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the port and all connections."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for each in self.accepted:
            each.close()
        self._thread.join()
