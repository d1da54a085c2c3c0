"""Connections to HBase's Thrift server through happybase, with TLS, Kerberos, and deadlines.

Only this module imports happybase, which is installed with ``hudi-index-service[hbase]``.
"""

import socket
import ssl
import struct
from time import monotonic
from typing import Any

import happybase
from Hbase_thrift import AlreadyExists, IllegalArgument, IOError
from thriftpy2.thrift import TException
from thriftpy2.transport import TSocket, TSSLSocket, TTransportException
from thriftpy2.transport.sasl import TSaslClientTransport

from hudi_index_service.config import HBaseSettings
from hudi_index_service.errors import NativeModuleMissing

FAILURES = (TException, OSError, EOFError, ValueError, struct.error)
"""The errors of a failed request: no answer, an error answer, or an invalid answer, for example
from a server that was started with another transport or protocol."""

REFUSALS = (IllegalArgument,)
"""The failures that another attempt would not fix."""

LOST = (TTransportException, ConnectionError, EOFError, ssl.SSLEOFError)
"""The failures that only mean that the server has closed the connection."""


def has_table(connection: Any, name: str) -> bool:
    """Whether a table of that name, including its namespace, exists."""
    # HBase omits its default namespace when it lists tables.
    return name.removeprefix("default:").encode() in connection.tables()


def make_table(connection: Any, name: str, families: dict[str, dict[str, object]]) -> None:
    """Creates a table unless it exists; another builder may create it at the same moment."""
    if has_table(connection, name):
        return
    try:
        connection.create_table(name, families)
    except (AlreadyExists, IOError):
        if not has_table(connection, name):
            raise


def is_absence(error: BaseException) -> bool:
    """Whether a failure means that the table or its column family does not exist."""
    return isinstance(error, IOError) and any(each in failure_reason(error) for each in _ABSENCES)


def failure_reason(error: BaseException) -> str:
    """The reason of a failure, in a few words without a full stop."""
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, TTransportException) and error.type == TTransportException.NOT_OPEN:
        cause = error.__context__  # thriftpy2's message does not include it
        why = f": {cause}" if isinstance(cause, ssl.SSLError) else ""
        return f"it cannot be reached{why}"
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    return text.strip().split("\n", 1)[0].rstrip(".")


_ABSENCES = ("TableNotFoundException", "NoSuchColumnFamilyException")


class TimedConnection(happybase.Connection):  # type: ignore[misc]  # untyped
    """A connection whose requests end by a deadline, however slowly bytes arrive.

    Attributes:
        deadline: The time by which the next requests must end, as of `time.monotonic`.
    """

    def __init__(self, settings: HBaseSettings, deadline: float) -> None:
        self._settings = settings
        self.deadline = deadline
        super().__init__(
            host=settings.host,
            port=settings.port,
            autoconnect=False,
            transport=settings.transport,
            protocol=settings.protocol,
        )
        self.open()

    def _refresh_thrift_client(self) -> None:
        # happybase's own method supports neither TLS nor SASL nor deadlines.
        from Hbase_thrift import Hbase
        from thriftpy2.thrift import TClient

        endpoint = self._endpoint = _endpoint(self._settings, self)
        if self._settings.kerberos_service is None:
            self.transport = self._transport_class(endpoint)
        else:
            sasl: Any = TSaslClientTransport
            self.transport = sasl(_kerberos_client(self._settings), "GSSAPI", endpoint)
        protocol = self._protocol_class(self.transport, decode_response=False)
        self.client = TClient(Hbase, protocol)

    def abandon(self) -> None:
        """Drops a connection that a forked process inherited from its parent, which still uses
        it."""
        if self._endpoint.sock is not None:
            self._endpoint.sock.close()  # thriftpy2's own method would end it for the parent too
            self._endpoint.sock = None


class _TimedSocket(TSocket):
    """A socket whose waits end at its connection's deadline."""

    owner: TimedConnection

    def read(self, size: int) -> bytes:
        self._limit()
        content: bytes = super().read(size)  # type: ignore[no-untyped-call]
        return content

    def write(self, content: bytes) -> None:
        self._limit()
        super().write(content)  # type: ignore[no-untyped-call]

    def _limit(self) -> None:
        seconds = self.owner.deadline - monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        self.sock.settimeout(seconds)


class _TimedSSLSocket(_TimedSocket, TSSLSocket):
    """The same, encrypted."""


def _endpoint(settings: HBaseSettings, owner: TimedConnection) -> Any:
    limit = min(settings.connect_seconds, max(owner.deadline - monotonic(), 0.001))
    options = {
        "host": settings.host,
        "port": settings.port,
        "socket_family": socket.AF_INET6 if ":" in settings.host else socket.AF_INET,
        "connect_timeout": limit * 1000,
        "socket_timeout": limit * 1000,
    }
    plain: Any = _TimedSocket
    secure: Any = _TimedSSLSocket
    endpoint = secure(ssl_context=_tls(settings), **options) if settings.tls else plain(**options)
    endpoint.owner = owner
    return endpoint


def _tls(settings: HBaseSettings) -> ssl.SSLContext:
    for name in ("tls_ca", "tls_cert", "tls_key"):
        path = getattr(settings, name)
        if path is not None and not path.is_file():
            raise FileNotFoundError(f"hbase.{name} names {path}, which is not a file")
    context = ssl.create_default_context(cafile=settings.tls_ca)
    if not settings.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.tls_cert is not None:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    return context


def _kerberos_client(settings: HBaseSettings) -> Any:
    """A factory of the client side of a SASL dialogue, as required by Thrift's transport."""
    try:
        import kerberos  # noqa: F401 - puresasl imports without it, but needs it later
        from puresasl.client import SASLClient
    except ImportError as error:
        raise NativeModuleMissing(
            f"hbase.kerberos_service is set, but the Python module {error.name} is missing.",
            remedy="Install it: pip install 'hudi-index-service[hbase-kerberos]'.",
        ) from error
    host = settings.kerberos_host or settings.host

    def make() -> _Dialogue:
        return _Dialogue(
            SASLClient(
                host,
                settings.kerberos_service,
                mechanism="GSSAPI",
                qops=[settings.kerberos_qop.encode()],
            ),
            is_wrapped=settings.kerberos_qop != "auth",
        )

    return make


class _Dialogue:
    """The SASL interface that thriftpy2 expects, implemented with pure-sasl.

    Args:
        is_wrapped: Whether messages are signed or encrypted; they are then preceded by their
            length.
    """

    def __init__(self, client: Any, *, is_wrapped: bool) -> None:
        self._client = client
        self._is_wrapped = is_wrapped
        self._error = ""

    def start(self, mechanism: str) -> tuple[bool, str, bytes | None]:
        done, answer = self._try(lambda: self._client.process(None))
        return done, mechanism, answer

    def step(self, challenge: bytes) -> tuple[bool, bytes | None]:
        return self._try(lambda: self._client.process(challenge))

    def encode(self, content: bytes) -> tuple[bool, bytes | None]:
        if not self._is_wrapped:
            return True, content
        done, wrapped = self._try(lambda: self._client.wrap(content))
        return done, None if wrapped is None else struct.pack(">I", len(wrapped)) + wrapped

    def decode(self, content: bytes) -> tuple[bool, bytes | None]:
        return self._try(lambda: self._client.unwrap(content[4:]))

    def getError(self) -> str:
        return self._error

    def _try(self, do: Any) -> tuple[bool, bytes | None]:
        import kerberos
        from puresasl import SASLError, SASLProtocolException

        try:
            return True, do()
        except (SASLError, SASLProtocolException, kerberos.KrbError) as error:
            self._error = str(error)
            return False, None
