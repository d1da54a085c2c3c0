"""The command line: ``hudi-index``. Every command is one call of the façade.

Errors are one line with code and remedy: exit status 1, or 2 for bad usage. An alert of `status` is
status 3, Ctrl-C 130, SIGTERM during a build 143. `hudi_index_service.cli.output` describes the
output.
"""

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from hudi_index_service import __version__, config
from hudi_index_service.cli.advice import advise, forget, history, init
from hudi_index_service.cli.console import (
    complain,
    configure_logging,
    error_line,
    print_utf8,
    usage_error,
)
from hudi_index_service.cli.define import alter, create, disable, drop, enable, show
from hudi_index_service.cli.fleet import fleet
from hudi_index_service.cli.installation import demo, doctor, pack, prepare
from hudi_index_service.cli.maintain import build, cancel, clean, refresh, status, verify
from hudi_index_service.cli.progress import INTERRUPTED, TERMINATED
from hudi_index_service.cli.read import explain, locate, query, search, sql
from hudi_index_service.cli.serve import mcp, serve, serve_spark, watch
from hudi_index_service.errors import ConfigInvalid, IndexServiceError, SnapshotChanged

app = typer.Typer(
    help="Row-exact secondary indexes for Apache Hudi tables.", pretty_exceptions_enable=False
)

_COMMANDS: tuple[Callable[..., None], ...] = (
    *(doctor, init),
    *(create, alter, refresh, drop, show, status, build, cancel),
    *(query, search, locate, explain, sql),
    *(history, forget, advise),
    *(disable, enable),
    *(clean, verify, serve, serve_spark, watch, mcp, pack, prepare, demo),
)
for _command in _COMMANDS:
    app.command()(_command)
app.add_typer(fleet, name="fleet")
app.command("answer", hidden=True)(serve_spark)  # its former name


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
    config.warn_of_unknown_variables()


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script's entry point: prints errors of the service in one line.

    Args:
        arguments: The command line after the program's name; None for the process's own.
    """
    if arguments is None:
        arguments = sys.argv[1:]
    print_utf8()
    try:
        # Standalone, Typer would fold errors into a box of several lines.
        status = app(list(arguments) or ["--help"], prog_name="hudi-index", standalone_mode=False)
    except IndexServiceError as error:
        complain(error_line(error))
        sys.exit(1)
    except typer.TyperException as error:
        complain(error_line(usage_error(error)))
        sys.exit(error.exit_code)
    except typer.Abort:  # the end of the input, or Ctrl-C, at a question
        complain("Aborted.")
        sys.exit(1)
    except FileNotFoundError as error:
        missing = SnapshotChanged(
            f"A file that the command needs is missing: {error}.",
            remedy="If Hudi or a cleaner has just removed it, run the command again.",
        )
        complain(error_line(missing))
        sys.exit(1)
    except BrokenPipeError:  # the reader of the output, such as head, has exited
        sys.exit(141)
    if status in (INTERRUPTED, TERMINATED):
        complain("Interrupted.")
    sys.exit(status or 0)
