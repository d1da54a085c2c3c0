"""What guards the pages' forms: the session's cookie, where a form comes from, its own token."""

from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from hudi_index_service.errors import AccessDenied, AccessRefused, RequestInvalid
from hudi_index_service.fleet.web.access import Token
from hudi_index_service.fleet.web.exchange import MAX_FORM_BYTES, Refused, body_of
from hudi_index_service.fleet.web.sessions import Session, Sessions

FORM_TOKEN = "form_token"
_MOST_FIELDS = 20


class Forms:
    """Reads sessions and forms, and gives cookies.

    Args:
        origins: Further origins that the pages are reached at.
        encrypted: Whether browsers reach them by TLS.
    """

    def __init__(self, sessions: Sessions, *, origins: Collection[str], encrypted: bool) -> None:
        self.sessions = sessions
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._encrypted = encrypted
        # A browser takes a cookie with __Host- from this very host alone, by TLS.
        self._cookie = "__Host-hudi-index" if encrypted else "hudi-index"

    def session(self, request: Request, *, login: bool = False) -> Session | None:
        """The session of a request, or that of its login form; None without a valid cookie."""
        return self.sessions.read(request.cookies.get(self._name(login), ""))

    def token(self, request: Request) -> Token | None:
        """The token of who is signed in; None for nobody."""
        return self.sessions.token(self.session(request))

    def _name(self, login: bool) -> str:
        # Apart, since a browser that follows a link of another site to the login form does not send
        # the cookie of the session, and must not lose it.
        return f"{self._cookie}-login" if login else self._cookie

    def give(self, response: Response, session: Session) -> None:
        """Sets the cookie of a session, or of a login form's."""
        response.set_cookie(
            self._name(not session.name),
            self.sessions.cookie(session),
            max_age=int(self.sessions.seconds) if session.name else None,
            path="/",
            secure=self._encrypted,
            httponly=True,
            samesite="strict",
        )

    def take(self, response: Response) -> None:
        """Deletes the cookie."""
        response.delete_cookie(
            self._cookie, path="/", secure=self._encrypted, httponly=True, samesite="strict"
        )

    async def read(self, request: Request, *, login: bool = False) -> dict[str, str]:
        """The fields of a form that one of these pages sent.

        Args:
            login: Whether it is the login form.

        Raises:
            AccessDenied: another page sent it.
            RequestInvalid, Refused: it is malformed, or its session has ended.
        """
        self._check_origin(request)
        session = self.session(request, login=login)
        body = await body_of(request, MAX_FORM_BYTES)
        try:
            fields = dict(
                parse_qsl(
                    body.decode(),
                    keep_blank_values=True,
                    max_num_fields=_MOST_FIELDS,
                    errors="strict",
                )
            )
        except ValueError as error:
            raise RequestInvalid("The form cannot be read.") from error
        if session is None:
            raise Refused(
                HTTPStatus.UNAUTHORIZED,
                AccessRefused("The session has ended.", remedy="Sign in, and send the form again."),
            )
        if not self.sessions.is_form_token(session, fields.pop(FORM_TOKEN, "")):
            raise AccessDenied(
                "The form was not made for this session.",
                remedy="Load the page again, and send the form anew.",
            )
        return fields

    def _check_origin(self, request: Request) -> None:
        """Refuses a form that a page of another site sent; SameSite alone would let in those of
        another port of this host."""
        own = f"{request.url.scheme}://{request.headers.get('host', '')}".lower()
        origin = request.headers.get("origin", "").lower()
        site = request.headers.get("sec-fetch-site", "same-origin")
        if (origin != own and origin not in self._origins) or site != "same-origin":
            raise AccessDenied(
                "The form comes from another site, or the browser does not say from where.",
                remedy="Open the service's own page; behind a proxy, name its address in "
                "web.origins.",
            )
