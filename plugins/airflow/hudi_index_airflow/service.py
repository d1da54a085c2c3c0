"""A client of the service's API (``/api/v1``)."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from urllib.parse import quote

import httpx
from opentelemetry.propagate import inject
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay

from hudi_index_airflow.errors import HudiIndexError, HudiIndexFailed, error_of

WAIT_SECONDS = 20.0
"""How long a request waits for a change: proxies end those that last a minute."""

_TIMEOUT = 30.0
_PAUSE_SECONDS = 2.0
_BUSY = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Instant:
    """A completed instant of a table's timeline, by the time at which it was requested."""

    requested: str
    action: str


class ServiceSilent(HudiIndexError):
    """The service does not answer, or asks to come back later.

    Args:
        seconds: After which it is asked again.
    """

    def __init__(self, message: str, seconds: float = _PAUSE_SECONDS) -> None:
        super().__init__("SERVICE_UNAVAILABLE", message)
        self.seconds = seconds


class ServiceClient:
    """Asks a running service. A fault on the way is tried again for `patience` seconds: a request
    with an idempotency key has effect once. Only for one thread.

    Args:
        url: Such as ``https://indexes.example.com:7052``.
        token: With the role operate, or read for what changes nothing.
        ca_file: The certificates to trust; None for the system's.
        patience: Such as a restart of the service takes.
    """

    def __init__(
        self, url: str, token: str, *, ca_file: str | None = None, patience: float = 120.0
    ) -> None:
        self.url = url.rstrip("/")
        self._token, self._ca_file, self._patience = token, ca_file, patience
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT,
            verify=_certificates(ca_file),
        )

    def another(self, *, patience: float = 10.0) -> "ServiceClient":
        """A client with connections of its own, for another thread or a signal's handler."""
        return ServiceClient(self.url, self._token, ca_file=self._ca_file, patience=patience)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def tables(self) -> list[dict[str, Any]]:
        """The tables that the token is for. Raises HudiIndexError."""
        found: list[dict[str, Any]] = self._ask("GET", "/tables")["tables"]
        return found

    def table(self, name: str) -> dict[str, Any]:
        """What the service knows of a table; it answers from memory. Raises TableMissing."""
        return self._ask("GET", f"/tables/{quote(name, safe='/')}")

    def name_of(self, table: str) -> str:
        """The name of a table that is named by its base path, or by its name already.

        Raises:
            TableMissing: no table of the fleet is there.
        """
        if not table.startswith("/") and "://" not in table:
            return table
        wanted = _path(table)
        for each in self.tables():
            if _path(each["uri"]) == wanted:
                return str(each["name"])
        message = f"No table of the fleet at {self.url} is at {table}."
        remedy = "Add it to the fleet's file, or see whether the token is for it."
        raise error_of("TABLE_NOT_IN_FLEET", message, remedy)

    def instants(self, table: str) -> list[Instant]:
        """The last completed instants that the service has seen, newest first.

        Raises:
            TableMissing: the fleet has no such table.
        """
        found = self.table(self.name_of(table))["timeline"]
        return [Instant(each["requested"], each["action"]) for each in found if each["completed"]]

    def submit(self, name: str, action: str, body: Mapping[str, object], key: str) -> str:
        """Asks for a build (``builds``), ``clean`` or ``verify``, and returns the request's id.

        The same key gives the same request, so a try that was killed loses none. If that request
        has not succeeded, this try asks for one more, under a key that follows from it.

        Raises:
            HudiIndexError: the service refuses it.
        """
        path = f"/tables/{quote(name, safe='/')}/{action}"
        while True:
            found = self._ask("POST", path, json=body, headers={"Idempotency-Key": key})
            if not found["repeated"]:
                return str(found["id"])
            build = self.request(found["id"])
            if is_active(build["state"]) or build["state"] == FINISHED:
                return str(found["id"])
            key = f"{key.partition('~')[0]}~{found['id']}"

    def request(self, request: str, *, wait: float = 0.0) -> dict[str, Any]:
        """A request as it is, or as it is once it has ended or `wait` seconds are over.

        Raises:
            RequestForgotten: the service knows none of this id.
        """
        path = f"/builds/{quote(request, safe='')}"
        return self._ask("GET", path, params={"wait": f"{wait:.0f}"})

    def cancel(self, request: str) -> None:
        """Cancels a request; one that has ended stays as it is. Raises RequestForgotten."""
        self._ask("POST", f"/builds/{quote(request, safe='')}/cancel", json={})

    def page(self, name: str) -> str:
        """The address of a table's page."""
        return f"{self.url}/tables/{quote(name, safe='/')}"

    def _ask(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        retrying = Retrying(
            retry=retry_if_exception_type(ServiceSilent),
            wait=_seconds,
            stop=stop_after_delay(self._patience),
            reraise=True,
        )
        answer: dict[str, Any] = retrying(partial(self._send, method, path, **options))
        return answer

    def _send(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        headers: dict[str, str] = dict(options.pop("headers", {}))
        inject(headers)  # the task's span: the build's becomes part of its trace
        with self._named():
            answer = self._http.request(method, path, headers=headers, **options)
            content = answer.json() if answer.content else None
        if not isinstance(content, dict):
            raise self._no_service("its answer is no JSON object")
        if answer.is_success:
            return content
        code, message = str(content.get("code", "")), str(content.get("message", ""))
        if answer.status_code in _BUSY:
            pause = answer.headers.get("Retry-After", "")
            seconds = float(pause) if pause.isdecimal() else _PAUSE_SECONDS
            raise ServiceSilent(f"{self.url} is busy: {code}: {message}", seconds)
        if not code:
            raise self._no_service(f"it answers {answer.status_code}")
        if answer.status_code == 409:  # the table is paused: to try again does not help
            raise HudiIndexFailed(code, message, str(content.get("remedy", "")))
        raise error_of(code, message, str(content.get("remedy", "")))

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            what = str(error) or type(error).__name__
            raise ServiceSilent(f"No service answers at {self.url}: {what}.") from error
        except ValueError as error:
            raise self._no_service("its answer is no JSON") from error

    def _no_service(self, why: str) -> HudiIndexFailed:
        return HudiIndexFailed(
            "CONFIG_INVALID",
            f"{self.url} is not the service of a fleet: {why}.",
            "Give the connection the address that `hudi-index serve --config` prints.",
        )


FINISHED = "finished"
"""The state of a request that has succeeded."""


def is_active(state: str) -> bool:
    """Whether a request waits or runs."""
    return state in ("waiting", "running")


def raise_for_end(build: Mapping[str, Any]) -> None:
    """Raises HudiIndexError if a request has ended otherwise than well."""
    if build["state"] == FINISHED:
        return
    error = build.get("error") or {}
    if build["state"] == "cancelled":
        raise HudiIndexFailed("CANCELLED", f"The request {build['id']} was cancelled.")
    message = error.get("message") or f"The request {build['id']} ended: {build['state']}."
    raise error_of(error.get("code") or "BUILD_FAILED", message, error.get("remedy") or "")


@cache
def _certificates(ca_file: str | None) -> ssl.SSLContext:
    """What clients trust; one for all, since each takes a MiB of a triggerer's memory."""
    return ssl.create_default_context(cafile=ca_file)


def _path(uri: str) -> str:
    return uri.removeprefix("file://").rstrip("/")


def _seconds(state: RetryCallState) -> float:
    """The pause that the service asks for."""
    error = state.outcome.exception() if state.outcome is not None else None
    return error.seconds if isinstance(error, ServiceSilent) else _PAUSE_SECONDS
