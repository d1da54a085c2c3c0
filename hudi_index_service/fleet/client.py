"""A client of a running service's API, for the command line. It needs no extra."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from time import monotonic, sleep
from typing import IO, Any
from urllib.parse import quote, urlencode

from hudi_index_service.errors import ConfigInvalid, IndexServiceError, UsageInvalid, error_class
from hudi_index_service.wording import reason

_PREFIX = "/api/v1"
_ANSWER_SECONDS = 30.0
_WAIT_SECONDS = 20.0  # of one request: proxies end those that last a minute
_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 1.0

ENDED = frozenset({"finished", "failed", "cancelled", "hung", "died", "out_of_memory"})
"""The states of a request that has ended."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The API leads nowhere else, and a token must not follow."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follows none."""


class FleetClient:
    """Asks a running service.

    Args:
        url: Its address, such as ``https://indexes.example.com``.
        token: Sent with each request, and never shown.

    Raises:
        UsageInvalid: the address is none.
    """

    def __init__(self, url: str, token: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageInvalid(
                f"{url!r} is not the address of a service.",
                remedy="Write --url https://indexes.example.com:7052.",
            )
        self._url, self._token = url.rstrip("/"), token
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if url.startswith("https:"):
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context()))
        self._opener = urllib.request.build_opener(*handlers)

    def __repr__(self) -> str:
        return f"<FleetClient of {self._url}>"

    def tables(self) -> list[dict[str, Any]]:
        """The tables that the token is for, by attention. Raises IndexServiceError."""
        return self.status()[0]

    def status(self) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
        """The tables, and the problems of the service itself. Raises IndexServiceError."""
        found = self._answer("GET", "/tables")
        return found["tables"], found.get("problems", [])  # an earlier release gives none

    def ask(
        self, table: str, action: str, body: Mapping[str, object], *, key: str
    ) -> dict[str, Any]:
        """Sends a request for a table, again if the service is busy.

        Args:
            action: ``builds``, ``clean`` or ``verify``.
            key: The idempotency key.

        Raises:
            IndexServiceError: the service refuses it.
        """
        path = f"/tables/{quote(table, safe='/')}/{action}"
        return self._answer("POST", path, json.dumps(body).encode(), key=key)

    def follow(self, request: str) -> Iterator[dict[str, Any]]:
        """The request, each time that its state has changed, up to its end. A service that does not
        answer is given a minute to come back.

        Raises:
            IndexServiceError: the service does not know it, or is gone.
        """
        state, until = "", monotonic() + _PATIENCE_SECONDS
        path = f"/builds/{quote(request, safe='')}"
        while state not in ENDED:
            # The first answer comes at once.
            wait = {"wait": f"{_WAIT_SECONDS:.0f}"} if state else {"wait": "0"}
            try:
                build = self._answer("GET", f"{path}?{urlencode(wait)}")
            except ConfigInvalid:
                if monotonic() >= until:
                    raise
                sleep(_PAUSE_SECONDS)
                continue
            until = monotonic() + _PATIENCE_SECONDS
            if build["state"] == state:  # too many wait: then the answer has come at once
                sleep(_PAUSE_SECONDS)
                continue
            state = build["state"]
            yield build

    def _answer(
        self, method: str, path: str, body: bytes | None = None, *, key: str = ""
    ) -> dict[str, Any]:
        until = monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return self._send(method, path, body, key)
            except _Busy as busy:
                if monotonic() + busy.seconds >= until:
                    raise busy.error from None
                sleep(busy.seconds)

    def _send(self, method: str, path: str, body: bytes | None, key: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        request = urllib.request.Request(
            self._url + _PREFIX + path, data=body, headers=headers, method=method
        )
        try:
            with self._opener.open(request, timeout=_ANSWER_SECONDS) as answer:
                return self._parsed(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except urllib.error.URLError as error:
            cause = error.reason
            raise self._silent(cause if isinstance(cause, Exception) else error) from error
        except (OSError, HTTPException) as error:
            raise self._silent(error) from error

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        content = self._parsed(error)
        kind = error_class(content.get("code", "")) or IndexServiceError
        refusal = kind(
            str(content.get("message", f"The service answers {error.code}.")),
            remedy=str(content.get("remedy") or "") or None,
        )
        seconds = error.headers.get("Retry-After", "")
        if error.code in (429, 503) and seconds.isdecimal():
            return _Busy(refusal, max(_PAUSE_SECONDS, float(seconds)))
        return refusal

    def _parsed(self, answer: IO[bytes]) -> dict[str, Any]:
        try:
            content = json.loads(answer.read())
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise ConfigInvalid(
                f"{self._url} is not the service of a fleet: its answer is no JSON.",
                remedy="Name the address that `hudi-index serve --config` prints with --url.",
            )
        return content

    def _silent(self, error: Exception) -> ConfigInvalid:
        return ConfigInvalid(
            f"No service of a fleet answers at {self._url}: {reason(error)}.",
            remedy="Start one with `hudi-index serve --config fleet.yaml`, or name its address "
            "with --url.",
        )


class _Busy(Exception):
    """The service asks to come back later."""

    def __init__(self, error: IndexServiceError, seconds: float) -> None:
        super().__init__(error.message)
        self.error, self.seconds = error, seconds
