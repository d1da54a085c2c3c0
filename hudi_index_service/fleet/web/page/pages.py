"""The pages: sign in, the list of tables, a table; and what their forms do."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import (
    AccessDenied,
    AccessRefused,
    IndexServiceError,
    RequestInvalid,
)
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.task import Task
from hudi_index_service.fleet.web.access import Action
from hudi_index_service.fleet.web.events import Streams
from hudi_index_service.fleet.web.exchange import Gate, Refused, address_of, refused
from hudi_index_service.fleet.web.page.forms import FORM_TOKEN, Forms
from hudi_index_service.fleet.web.page.words import FILTERS
from hudi_index_service.fleet.web.queries import Answer, Ask, Kind
from hudi_index_service.fleet.web.requests import Caller, Requests
from hudi_index_service.fleet.web.table_view import SORTS, TableView, selected
from hudi_index_service.index.metadata.requirements import names_by_use
from hudi_index_service.maintain.status import IndexStatus, TableStatus

_FOLDER = Path(__file__).parent
_STATIC = {"style.css": "text/css", "live.js": "text/javascript", "mark.svg": "image/svg+xml"}

_ROWS = 250  # tables on one page
_PARTITIONS = 200

_NOTICES = {
    "build": "The build is requested.",
    "cancel": "The build is being cancelled.",
    "clean": "The clean is requested.",
    "verify": "The verification is requested.",
    "approve": "The plan is being carried out.",
    "mute": "The reason is hidden.",
    "unmute": "The reason is shown again.",
}
"""What a page says after a form. A link can choose among these, and nothing else."""

_TASKS: Mapping[str, Callable[[Mapping[str, str]], Task]] = {
    "build": lambda fields: Task("build", _strategy(fields.get("strategy", ""))),
    "clean": lambda fields: Task("clean", dry_run="dry_run" in fields),
    "verify": lambda fields: Task("verify", repair="repair" in fields),
    "approve": lambda fields: Task("define", plan=fields.get("plan", "")[:64]),
}
"""What a table's forms ask for, by the ends of their paths, and of their fields."""

_MARKS = {
    1: "unreachable or damaged",
    2: "builds fail",
    3: "behind",
    4: "to tidy up",
    5: "well",
}


class Pages:
    """Answers browsers.

    Args:
        requests: What pages show and forms do.
        gate: Lets in tokens.
        forms: Reads sessions and forms.
        streams: Keep pages up to date.
        ask: Answers queries; None for pages without.
    """

    def __init__(
        self,
        requests: Requests,
        gate: Gate,
        forms: Forms,
        streams: Streams,
        ask: Ask | None = None,
    ) -> None:
        self._requests, self._gate = requests, gate
        self._forms, self._streams, self._ask = forms, streams, ask
        self._static = {name: (_FOLDER / "static" / name).read_bytes() for name in _STATIC}

    def routes(self) -> list[BaseRoute]:
        """The routes of the pages, of their forms and of what they load."""

        def form(path: str, run: Callable[[Request, Caller, dict[str, str]], str]) -> Route:
            return Route(path, self._posted(run), methods=["POST"])

        table = "/tables/{name:path}"
        return [
            Route("/", self._list, methods=["GET"]),
            Route("/login", self._login_form, methods=["GET"]),
            Route("/login", self._login, methods=["POST"]),
            Route("/logout", self._logout, methods=["POST"]),
            Route("/events", self._events, methods=["GET"]),
            Route("/static/{name}", self._file, methods=["GET"]),
            *(form(f"{table}/{word}", partial(self._asked, word)) for word in _TASKS),
            form(f"{table}/mute", self._mute),
            form(f"{table}/unmute", self._unmute),
            form("/builds/{id}/cancel", self._cancel),
            Route(f"{table}/query", self._query, methods=["POST"]),
            Route(table, self._table, methods=["GET"]),
        ]

    def error(self, request: Request, refusal: Refused) -> Response:
        """The page of an error. Who is not signed in, and only looks, signs in first."""
        if refusal.status is HTTPStatus.UNAUTHORIZED and request.method == "GET":
            if request.headers.get("sec-fetch-site") == "cross-site":
                # A link of another site: with the page's own, the browser sends the cookie.
                return self._page(request, "again.html", title="Loading")
            here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            target = "/login" if here == "/" else f"/login?{urlencode({'next': here})}"
            return RedirectResponse(target, HTTPStatus.SEE_OTHER)
        page = self._page(
            request,
            "error.html",
            code=refusal.status,
            title=refusal.status.phrase,
            error=refusal.error,
        )
        page.headers.update(refusal.headers)
        return page

    # Pages. Starlette makes those that are no coroutine in a thread, so that nobody waits for them.

    def _list(self, request: Request) -> Response:
        caller = self._caller(request)
        views = self._requests.tables(caller)
        asked = {name: request.query_params.get(name, "") for name in ("text", "owner", "group")}
        sort = request.query_params.get("sort", "attention")
        shown = selected(views, **asked, sort=sort)
        page = _number(request.query_params.get("page", "1"))
        pages = max(1, -(-len(shown) // _ROWS))
        page = min(page, pages)
        return self._page(
            request,
            "tables.html",
            title="Tables",
            caller=caller,
            rows=[_Row(view) for view in shown[(page - 1) * _ROWS : page * _ROWS]],
            shown=len(shown),
            total=len(views),
            ill=sum(bool(view.reasons) for view in views),
            building=sum(view.state == "building" for view in views),
            owners=sorted({view.seen.policy.owner for view in views} - {""}),
            groups=sorted({view.seen.policy.group for view in views} - {""}),
            asked=asked,
            sort=sort if sort.removeprefix("-") in SORTS else "attention",
            sorts=tuple(SORTS),
            page=page,
            pages=pages,
            problems=self._requests.problems(caller),
            link=lambda **changes: _link(asked | {"sort": sort} | changes),
        )

    def _table(self, request: Request) -> Response:
        caller = self._caller(request)
        view = self._requests.table(caller, request.path_params["name"])
        status = view.status
        return self._page(
            request,
            "table.html",
            title=view.name,
            caller=caller,
            row=_Row(view),
            view=view,
            seen=view.seen,
            policy=view.seen.policy,
            status=status,
            indexes=[] if status is None else list(status),
            names_by_use=names_by_use,
            partitions=_partitions(status),
            most_partitions=_PARTITIONS,
            strategies=[each.value for each in Strategy],
            asks=self._ask is not None and view.seen.policy.reads,
        )

    async def _query(self, request: Request) -> Response:
        """Answers the box of a table's page by a page: an address would keep what was asked."""
        fields = await self._forms.read(request)
        return await run_in_threadpool(self._answered, request, fields)

    def _answered(self, request: Request, fields: Mapping[str, str]) -> Response:
        caller = self._caller(request)
        view = self._requests.table(caller, request.path_params["name"])
        if self._ask is None:
            raise RequestInvalid("This service answers no queries.")
        where = fields.get("where", "").strip()
        answer: Answer | None = None
        error: Refusal | IndexServiceError | None
        code = HTTPStatus.OK
        kind: Kind = "explain" if fields.get("kind") == "explain" else "count"
        try:
            answer = self._ask(view.seen.policy, kind, where)
            error = answer.error
        except (IndexServiceError, Refused) as raised:
            refusal = raised if isinstance(raised, Refused) else refused(raised)
            code, error = refusal.status, refusal.error
        return self._page(
            request,
            "query.html",
            code=code,
            title=f"Query of {view.name}",
            view=view,
            asked=where,
            answer=answer,
            error=error,
        )

    async def _events(self, request: Request) -> Response:
        self._caller(request)
        name = request.query_params.get("table", "")

        def look() -> object:
            return self._requests.seen(self._caller(request), name)

        return self._streams.start(look)

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._static:
            error = RequestInvalid("There is no such file.")
            raise Refused(HTTPStatus.NOT_FOUND, error)
        kept = {"Cache-Control": "public, max-age=300"}
        return Response(self._static[name], media_type=_STATIC[name], headers=kept)

    # Signing in and out.

    async def _login_form(self, request: Request) -> Response:
        if self._forms.token(request) is not None:
            return RedirectResponse(_inside(request.query_params.get("next", "")), 303)
        return self._ask_to_sign_in(request, request.query_params.get("next", ""))

    async def _login(self, request: Request) -> Response:
        try:
            fields = await self._forms.read(request, login=True)
            token = self._gate.login(request, fields.get("token", ""))
            if not token.may(Action.SEE):
                raise AccessDenied(
                    f"A token with the role {token.role} is not for people.",
                    remedy="Sign in with a token of the role read or operate.",
                )
        except Refused as refusal:
            return self._ask_to_sign_in(request, "", refusal)
        answer = RedirectResponse(_inside(fields.get("next", "")), HTTPStatus.SEE_OTHER)
        self._forms.give(answer, self._forms.sessions.of(token))
        return answer

    def _ask_to_sign_in(
        self, request: Request, target: str, refusal: Refused | None = None
    ) -> Response:
        session = self._forms.sessions.anonymous()
        page = self._page(
            request,
            "login.html",
            code=HTTPStatus.OK if refusal is None else refusal.status,
            title="Sign in",
            error=None if refusal is None else refusal.error,
            target=target,
            form_token=self._forms.sessions.form_token(session),
        )
        if refusal is not None:
            page.headers.update(refusal.headers)
        self._forms.give(page, session)
        return page

    async def _logout(self, request: Request) -> Response:
        await self._forms.read(request)
        answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
        self._forms.take(answer)
        return answer

    # Forms. Each returns the address to go on at.

    def _posted(
        self, run: Callable[[Request, Caller, dict[str, str]], str]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            fields = await self._forms.read(request)
            target = await run_in_threadpool(run, request, self._caller(request), fields)
            return RedirectResponse(target, HTTPStatus.SEE_OTHER)

        return respond

    def _asked(self, word: str, request: Request, caller: Caller, fields: Mapping[str, str]) -> str:
        name, task = request.path_params["name"], _TASKS[word](fields)
        self._requests.ask(caller, name, task, key=fields.get("key") or None)
        return _after(word, name)

    def _mute(self, request: Request, caller: Caller, fields: Mapping[str, str]) -> str:
        name, days = request.path_params["name"], _number(fields.get("days", ""))
        if days > 365:
            raise RequestInvalid("A reason is hidden for at most 365 days.")
        self._requests.mute(caller, name, fields.get("code", "")[:64], days=days)
        return _after("mute", name)

    def _unmute(self, request: Request, caller: Caller, fields: Mapping[str, str]) -> str:
        name = request.path_params["name"]
        self._requests.unmute(caller, name, fields.get("code", "")[:64])
        return _after("unmute", name)

    def _cancel(self, request: Request, caller: Caller, fields: Mapping[str, str]) -> str:
        return _after("cancel", self._requests.cancel(caller, request.path_params["id"]))

    # What they share.

    def _caller(self, request: Request) -> Caller:
        """Who is signed in. Raises AccessRefused."""
        token = self._forms.token(request)
        if token is None:
            raise AccessRefused("Nobody is signed in.", remedy="Sign in with a token.")
        return Caller(token, address_of(request))

    def _page(
        self, request: Request, template: str, *, code: HTTPStatus = HTTPStatus.OK, **shown: Any
    ) -> Response:
        session, token = self._forms.session(request), self._forms.token(request)
        base = {
            "signed_in": token,
            "operates": token is not None and token.may(Action.OPERATE),
            "form_token": "" if session is None else self._forms.sessions.form_token(session),
            "notice": _NOTICES.get(request.query_params.get("done", "")),
            "new_key": lambda: secrets.token_urlsafe(9),
        }
        text = _templates().get_template(template).render(base | shown)
        # Names of files may hold what is no character.
        return Response(text.encode("utf-8", "backslashreplace"), code, media_type="text/html")


@cache
def _templates() -> Environment:
    """The templates, each compiled once."""
    templates = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters |= FILTERS | {"url": _url_of}
    templates.globals |= {"MARKS": _MARKS, "FORM_TOKEN": FORM_TOKEN}
    return templates


class _Row:
    """A table with the buttons of its reasons."""

    def __init__(self, view: TableView) -> None:
        self.view = view
        self.reasons = [(each, view.button(each)) for each in view.reasons]


def _partitions(status: TableStatus | None) -> list[tuple[IndexStatus, Sequence[Any], int]]:
    """For each index: the partitions that are covered least, and how many others there are."""
    found: list[tuple[IndexStatus, Sequence[Any], int]] = []
    for each in status or ():
        by_need = sorted(
            each.partitions,
            key=lambda one: (one.covered / one.base_files if one.base_files else 1, one.partition),
        )
        found.append((each, by_need[:_PARTITIONS], max(0, len(by_need) - _PARTITIONS)))
    return found


def _strategy(name: str) -> Strategy | None:
    return Strategy.named(name) if name else None


def _url_of(name: str) -> str:
    return quote(name.encode("utf-8", "backslashreplace"), safe="/")


def _after(action: str, name: str | None) -> str:
    return f"{f'/tables/{_url_of(name)}' if name else '/'}?done={action}"


def _inside(target: str) -> str:
    """A path of this service; / for what leads elsewhere."""
    if not target.startswith("/") or target[1:2] in ("/", "\\") or not target.isprintable():
        return "/"
    return target


def _link(changes: Mapping[str, object]) -> str:
    values = {name: str(value) for name, value in changes.items() if value not in ("", None)}
    return f"/?{urlencode(values, errors='backslashreplace')}"


def _number(text: str) -> int:
    """A positive number; 1 for anything else."""
    return (
        int(text) if text.isascii() and text.isdecimal() and 0 < len(text) < 7 and int(text) else 1
    )
