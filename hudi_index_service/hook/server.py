"""The address of a server, and errors as its clients see them. Needs the extra ``hook``
(starlette)."""

import logging
import os
import socket
from http import HTTPStatus

from starlette.responses import JSONResponse

from hudi_index_service.errors import ConfigInvalid, IndexServiceError, Remedy
from hudi_index_service.wording import reason

log = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_EVERY_ADDRESS = ("0.0.0.0", "::", "")


def refusal(status: HTTPStatus, error: IndexServiceError) -> JSONResponse:
    """The answer to a request with the secret that is refused all the same, which is logged."""
    log.warning("Request refused (%d): %s", status, error)
    return JSONResponse(report(error), status)


def report(error: IndexServiceError) -> dict[str, str]:
    """An error in JSON."""
    return {"code": error.code, "message": error.message, "remedy": error.remedy}


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


def _cause(error: OSError | OverflowError) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # to which Python adds the address
    return reason(error)


def url_of(host: str, port: int, scheme: str = "http") -> str:
    """The URL of a server; by the machine's name if it listens on every address."""
    name = socket.gethostname() if host in _EVERY_ADDRESS else host
    return f"{scheme}://{f'[{name}]' if ':' in name else name}:{port}"
