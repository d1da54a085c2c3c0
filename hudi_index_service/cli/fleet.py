"""Commands for a fleet of tables: ``hudi-index fleet``."""

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudi_index_service import config
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.cli.arguments import OutputOption
from hudi_index_service.cli.console import complain, error_line, say
from hudi_index_service.cli.output import Format, print_report, table_lines
from hudi_index_service.errors import (
    ConfigInvalid,
    FleetFileInvalid,
    IndexServiceError,
    TableNotInFleet,
    UsageInvalid,
)
from hudi_index_service.wording import counted, reason

# Other commands start without it.
if TYPE_CHECKING:
    from hudi_index_service.fleet.client import FleetClient

fleet = typer.Typer(help="A fleet of tables, as a fleet file names them.", no_args_is_help=True)

TOKEN_VARIABLE = "HUDI_INDEX_TOKEN"

_ALERT = 3  # the exit status

UrlOption = Annotated[
    str | None,
    typer.Option(
        envvar="HUDI_INDEX_URL",
        help="Address of the running service; by default as the settings web.host and web.port "
        "say.",
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        help=f"A file that holds the token; by default the variable {TOKEN_VARIABLE} does."
    ),
]
MatchOption = Annotated[
    list[str],
    typer.Option(
        metavar="PATTERN", help="Tables by their names, with *, ? and […]; may be repeated."
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        help="The idempotency key: the same one for the same table asks for nothing new. By "
        "default a random one."
    ),
]
WaitOption = Annotated[
    bool,
    typer.Option(
        "--wait", help="Follow the requests to their ends; exit status 1 unless all finish."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Same as --output json.")]


@fleet.command()
def check(
    file: Annotated[Path, typer.Argument(help="The fleet file.")],
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Look up the fleet's tables, and say which group this one is in, and where each "
            "value comes from. A name in the fleet, a base path, glue://db.table or "
            "hive://host:9083/db.table.",
        ),
    ] = None,
) -> None:
    """Check a fleet file; exit status 1 if it has mistakes, of which each is printed with its line
    and field."""
    from hudi_index_service.fleet.policies.file import read_fleet_file

    try:
        read = read_fleet_file(file)
    except FleetFileInvalid as error:
        for mistake in error.mistakes:
            complain(f"{file}: {mistake}")
        raise typer.Exit(1) from error
    if explain is None:
        say(f"{file}: {counted(len(read.groups), 'group')}, no mistake.")
        return

    from hudi_index_service.fleet.policies.discovery import Discovery
    from hudi_index_service.fleet.policies.explain import explain as explained

    # What cannot be looked up is logged.
    explanation = explained(read, Discovery().discover(read), explain)
    where = explanation.uri or "not found now; taken by its place alone"
    say(f"{explanation.table}: {where}")
    say(f"group: {explanation.group.name}")
    widest = max(len(each.key) for each in explanation.values)
    for each in explanation.values:
        say(f"  {each.key:<{widest}}  {each.value}  ({each.origin})")


@fleet.command()
def status(
    file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="A fleet file: look at its tables from here, in place of asking a service.",
        ),
    ] = None,
    match: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only tables with such names; may be repeated."),
    ] = None,
    fail_on: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=4,
            help="Exit status 3 if a table has a reason of this severity or a worse; a problem of "
            "the service itself, or of a source of the file, counts as 1.",
        ),
    ] = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    output: OutputOption = None,
    json: JsonOption = False,
) -> None:
    """List the fleet's tables, those first that need attention most, with the reasons and what to
    do about them; and what is wrong with the service itself. With --config, reasons that an
    operator has muted are listed, too: only the service knows them."""
    if file is None:
        tables, problems = _client(url, token_file).status()
        tables = _matching(tables, match)
    else:
        if url is not None and os.environ.get("HUDI_INDEX_URL") != url:
            raise UsageInvalid("--config asks no service.", remedy="Leave out --url.")
        tables, problems = _looked_at(file, match)
    knows_mutes = file is None
    report = {"tables": tables, "problems": problems, "knows_mutes": knows_mutes}
    items = [{**each, "reasons": _codes(each)} for each in tables]
    lines = _status_lines(tables, problems, knows_mutes=knows_mutes)
    print_report(Format.JSON if json else output, report, lines, tuple(_COLUMNS), items)
    # A problem may hide any table, such as those of a source that cannot be looked up.
    worst = min([*(each["severity"] or 5 for each in tables), *(1 for _ in problems)], default=5)
    if fail_on is not None and worst <= fail_on:
        raise typer.Exit(_ALERT)


@fleet.command()
def build(
    match: MatchOption,
    strategy: Annotated[
        Strategy | None, typer.Option(help="Which base files; by default as the file says.")
    ] = None,
    wait: WaitOption = False,
    key: KeyOption = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    output: OutputOption = None,
) -> None:
    """Have the running service build tables."""
    body = {} if strategy is None else {"strategy": strategy.value}
    _ask(_client(url, token_file), "builds", match, body, key, output, wait=wait)


@fleet.command()
def clean(
    match: MatchOption,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be deleted.")
    ] = False,
    wait: WaitOption = False,
    key: KeyOption = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    output: OutputOption = None,
) -> None:
    """Have the running service clean tables."""
    _ask(_client(url, token_file), "clean", match, {"dry_run": dry_run}, key, output, wait=wait)


@fleet.command()
def verify(
    match: MatchOption,
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild damaged entries.")] = False,
    wait: WaitOption = False,
    key: KeyOption = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    output: OutputOption = None,
) -> None:
    """Have the running service verify all entries of tables."""
    _ask(_client(url, token_file), "verify", match, {"repair": repair}, key, output, wait=wait)


def _client(url: str | None, token_file: Path | None) -> "FleetClient":
    from hudi_index_service.fleet.client import FleetClient
    from hudi_index_service.fleet.web.address import url_of

    if url is None:
        url = url_of(config.settings().web)
    if token_file is None:
        token = os.environ.get(TOKEN_VARIABLE, "")
    else:
        try:
            token = token_file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigInvalid(
                f"The token cannot be read from {token_file}: {reason(error)}.",
                remedy="Name a file that holds a token with --token-file.",
            ) from error
    token = token.strip()
    if not token.isascii() or not token.isprintable() or not token:
        raise ConfigInvalid(
            "There is no token." if not token else "The token is no line of ASCII.",
            remedy=f"Name the file that holds it with --token-file, or set {TOKEN_VARIABLE}.",
        )
    return FleetClient(url, token)


def _matching(
    tables: Iterable[dict[str, Any]], patterns: Sequence[str] | None
) -> list[dict[str, Any]]:
    return [each for each in tables if _fits(each["name"], patterns)]


def _fits(name: str, patterns: Sequence[str] | None) -> bool:
    return not patterns or any(fnmatchcase(name, each) for each in patterns)


def _looked_at(
    file: Path, match: Sequence[str] | None
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    from hudi_index_service.fleet.policies.file import read_fleet_file
    from hudi_index_service.fleet.survey import survey
    from hudi_index_service.fleet.web.messages import TablesMessage

    found = TablesMessage.of(*survey(read_fleet_file(file), lambda name: _fits(name, match)))
    content = found.model_dump(mode="json")
    return content["tables"], content["problems"]


_COLUMNS = {
    "severity": "",
    "name": "table",
    "state": "state",
    "coverage": "coverage",
    "due": "due",
    "lag_seconds": "behind",
    "reasons": "reasons",
}
"""The columns in CSV → their names in text."""


def _codes(table: Mapping[str, Any]) -> str:
    return ", ".join(each["code"] for each in table["reasons"])


def _status_lines(
    tables: Sequence[Mapping[str, Any]], problems: Sequence[Mapping[str, str]], *, knows_mutes: bool
) -> Iterator[str]:
    rows = [
        (
            str(each["severity"] or ""),
            each["name"],
            each["state"],
            "" if each["coverage"] is None else f"{each['coverage']:.1%}",
            str(each["due"] or ""),
            f"{each['lag_seconds']:,.0f} s" if each["lag_seconds"] else "",
            _codes(each),
        )
        for each in tables
    ]
    yield from table_lines(list(_COLUMNS.values()), rows) if rows else ()
    for each in tables:
        for why in each["reasons"]:
            yield f"{each['name']}: {why['words']} `{why['remedy']}`"
    for each in problems:
        yield f"{each['code']}: {each['message']} {each['remedy']}"
    ill = sum(bool(each["reasons"]) for each in tables)
    if ill and not knows_mutes:
        yield "What an operator has muted is listed, too: only the service knows it."
    yield f"{counted(len(tables), 'table')}, {ill} to attend to."


_REQUEST = ("table", "id", "state", "repeated", "built", "summary", "code", "message")


def _ask(
    client: "FleetClient",
    action: str,
    match: Sequence[str],
    body: Mapping[str, object],
    key: str | None,
    output: Format | None,
    *,
    wait: bool,
) -> None:
    """Sends a request for each table that matches, and prints what becomes of them."""
    tables = _matching(client.tables(), match)
    if not tables:
        raise TableNotInFleet(
            f"No table matches {', '.join(match)}.",
            remedy="`hudi-index fleet status` lists the tables that the token is for.",
        )
    key, in_text = key or secrets.token_urlsafe(12), output in (None, Format.TEXT)
    asked = [_asked(client, each, action, body, key) for each in tables]
    for each in asked if in_text else ():
        say(_line(each))
    for each in asked if wait else ():
        for state in _followed(client, each):
            each |= state
            if in_text:
                say(_line(each))
    if not in_text:
        print_report(output, {"key": key, "requests": asked}, (), _REQUEST, asked)
    well = ("finished", "paused") if wait else ("requested", "paused")
    wrong = [each for each in asked if each["state"] not in well]
    if wrong:
        raise typer.Exit(1)


def _asked(
    client: "FleetClient",
    table: Mapping[str, Any],
    action: str,
    body: Mapping[str, object],
    key: str,
) -> dict[str, Any]:
    request: dict[str, Any] = {"table": table["name"], "id": None, "repeated": False, "built": 0}
    request |= {"summary": "", "code": "", "message": ""}
    if not table["enabled"]:
        return {**request, "state": "paused"}
    try:
        taken = client.ask(table["name"], action, body, key=key)
    except IndexServiceError as error:
        return {**request, "state": "refused", "code": error.code, "message": error_line(error)}
    return {**request, "id": taken["id"], "repeated": taken["repeated"], "state": "requested"}


def _followed(client: "FleetClient", request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if request["id"] is None:
        return
    try:
        for build in client.follow(request["id"]):
            error = build["error"] or {"code": "", "message": "", "remedy": ""}
            yield {
                "state": build["state"],
                "built": build["built"],
                "summary": build["summary"],
                "code": error["code"],
                "message": " ".join(error.values()) if error["code"] else "",
            }
    except IndexServiceError as error:
        yield {"state": "unknown", "code": error.code, "message": error_line(error)}


def _line(request: Mapping[str, Any]) -> str:
    """A request in one line."""
    words = request["state"].replace("_", " ")
    id = f" {request['id']}" if request["id"] else ""
    again = " (again)" if request["repeated"] and request["state"] == "requested" else ""
    built = f", {request['built']} built" if request["built"] else ""
    more = request["message"] or request["summary"]
    return f"{request['table']}: {words}{id}{again}{built}{f': {more}' if more else '.'}"
