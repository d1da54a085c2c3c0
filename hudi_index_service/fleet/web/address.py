"""The address of a server: the socket that listens there, and the URL for its clients."""

import os
import socket

from hudi_index_service.config import WebSettings
from hudi_index_service.errors import ConfigInvalid, Remedy
from hudi_index_service.wording import reason

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_EVERY_ADDRESS = ("0.0.0.0", "::", "")


def bound_socket(host: str, port: int, section: str) -> socket.socket:
    """A socket that listens; `section` of the settings has ``host`` and ``port``.

    Raises:
        ConfigInvalid: the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
        # Accepted connections inherit it. asyncio sets it on those of sockets of its own alone, and
        # otherwise each answer after a connection's first waits 40 ms for the client's ACK.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        free = "a free address of this machine; port 0 takes a free one."
        raise ConfigInvalid(
            f"This process cannot listen on {host}:{port}: {_cause(error)}.",
            remedy=Remedy(
                f"Set {section}.host and {section}.port to {free}",
                command=f"Give --host and --port {free}",
            ),
        ) from error


def names_of(settings: WebSettings) -> tuple[str, ...]:
    """What clients call the server in a URL, as far as its settings tell, without the port."""
    host = socket.gethostname() if settings.host in _EVERY_ADDRESS else settings.host
    return tuple(f"[{each}]" if ":" in each else each for each in (host, *LOOPBACK))


def _cause(error: OSError | OverflowError) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # to which Python adds the address
    return reason(error)


def url_of(settings: WebSettings, port: int | None = None) -> str:
    """The URL of a server; by the machine's name if it listens on every address.

    Args:
        port: The one that is bound; None for that of the settings.
    """
    host = socket.gethostname() if settings.host in _EVERY_ADDRESS else settings.host
    scheme = "http" if settings.tls_cert is None else "https"
    at = settings.port if port is None else port
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{at}"
