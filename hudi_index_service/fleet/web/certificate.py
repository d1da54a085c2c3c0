"""The certificate of the page and the API, which is renewed while the service runs."""

import ssl
from pathlib import Path

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.wording import reason


class Certificate:
    """A certificate with its chain, and its key, in PEM files.

    Args:
        cert, key: The files.

    Raises:
        ConfigInvalid: they cannot be used.

    Attributes:
        context: What serves it; None before there is a server.
    """

    def __init__(self, cert: Path, key: Path) -> None:
        self._cert, self._key = cert, key
        self.context: ssl.SSLContext | None = None
        self._content = self._checked()

    def renewed(self) -> bool:
        """Whether the files have changed since this last said so. Compared by their content, which
        changes without their own times where a link is led elsewhere.

        Raises:
            ConfigInvalid: they cannot be used as they are now, such as a certificate whose key
                follows in a moment.
        """
        content = self._checked()
        changed, self._content = content != self._content, content
        return changed

    def load(self) -> None:
        """Has the context serve the files as they are now. If they have changed again meanwhile,
        and do not fit, they count as changed the next time, too."""
        if self.context is None:
            return
        try:
            self.context.load_cert_chain(self._cert, self._key)
        except (OSError, ssl.SSLError):
            self._content = (b"", b"")

    def _checked(self) -> tuple[bytes, bytes]:
        try:
            # A context of its own: one that serves would keep the half that fits.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._cert, self._key)
            return self._cert.read_bytes(), self._key.read_bytes()
        except (OSError, ssl.SSLError) as error:
            raise ConfigInvalid(
                f"The certificate {self._cert} cannot be used: {reason(error)}.",
                remedy="Name PEM files of a certificate with its chain, and of its key, in "
                "web.tls_cert and web.tls_key.",
            ) from error
