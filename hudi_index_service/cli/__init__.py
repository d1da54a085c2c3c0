"""The command line: ``hudi-index``. Every command is one call of the façade.

Errors of the service are one line with code and remedy, exit status 1; bad usage is status 2, an
alert of `status` 3, Ctrl-C 130. `hudi_index_service.cli.output` describes the output.
"""

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from hudi_index_service import __version__, config
from hudi_index_service.cli.begin import doctor, init
from hudi_index_service.cli.build import build, cancel, refresh, status
from hudi_index_service.cli.console import complain, error_line
from hudi_index_service.cli.define import alter, create, drop, show
from hudi_index_service.cli.interrupt import INTERRUPTED
from hudi_index_service.cli.keep import clean, verify
from hudi_index_service.cli.logs import configure_logging
from hudi_index_service.cli.read import explain, locate, query, search
from hudi_index_service.cli.serve import answer, demo, pack, prepare, serve, watch
from hudi_index_service.cli.sql import sql
from hudi_index_service.cli.tune import advise, forget, history
from hudi_index_service.errors import ConfigInvalid, IndexServiceError, SnapshotChanged

app = typer.Typer(
    help="Row-exact secondary indexes for Apache Hudi tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_COMMANDS: tuple[Callable[..., None], ...] = (
    *(doctor, init),
    *(create, alter, refresh, drop, show, status, build, cancel),
    *(query, search, locate, explain, sql),
    *(history, forget, advise),
    *(clean, verify, serve, answer, watch, pack, prepare, demo),
)
for _command in _COMMANDS:
    app.command()(_command)


def _print_version(value: bool) -> None:
    if value:
        print(f"hudi-index {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version)
    ] = False,
) -> None:
    if log_level.upper() not in logging.getLevelNamesMapping():
        raise ConfigInvalid(
            f"Unknown log level {log_level!r}.", remedy="Use debug, info, warning or error."
        )
    configure_logging(log_level.upper(), config.settings().logging.format)


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script's entry point: prints errors of the service in one line.

    Args:
        arguments: The command line after the program's name; None for the process's own.
    """
    try:
        app(arguments)
    except IndexServiceError as error:
        complain(error_line(error))
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            complain("Interrupted.")
        raise
    except FileNotFoundError as error:
        missing = SnapshotChanged(
            f"A file that the command needs is missing: {error}.",
            remedy="If Hudi or a cleaner has just removed it, run the command again.",
        )
        complain(error_line(missing))
        sys.exit(1)
    except BrokenPipeError:  # the reader of the output, such as head, has exited
        sys.exit(141)
