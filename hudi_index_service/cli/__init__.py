"""The command line: ``hudi-index``. Every command is one call of the façade.

Errors of the service are one line with code and remedy, exit status 1; bad usage is status 2, an
alert of `status` 3.
"""

import logging
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from hudi_index_service import config
from hudi_index_service.cli.build import build, cancel, refresh, status
from hudi_index_service.cli.console import err
from hudi_index_service.cli.define import alter, create, drop, show
from hudi_index_service.cli.history import advise, forget, history
from hudi_index_service.cli.keep import clean, verify
from hudi_index_service.cli.logs import configure_logging
from hudi_index_service.cli.measure import calibrate
from hudi_index_service.cli.read import explain, locate, query, search
from hudi_index_service.cli.serve import demo, pack, serve, watch
from hudi_index_service.cli.sql import sql
from hudi_index_service.errors import ConfigInvalid, IndexServiceError, SnapshotChanged

app = typer.Typer(
    help="Row-exact secondary indexes for Apache Hudi tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_COMMANDS: tuple[Callable[..., None], ...] = (
    *(create, alter, refresh, drop, show, status, build, cancel),
    *(query, search, locate, explain, sql),
    *(history, forget, advise),
    *(clean, verify, calibrate, serve, watch, pack, demo),
)
for _command in _COMMANDS:
    app.command()(_command)


@app.callback()
def _options(
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
) -> None:
    if log_level.upper() not in logging.getLevelNamesMapping():
        raise ConfigInvalid(
            f"There is no log level {log_level!r}.", remedy="Use debug, info, warning or error."
        )
    configure_logging(log_level.upper(), config.settings().logging.format)


def main() -> None:
    """The console script's entry: errors of the service become one line and exit status 1."""
    try:
        app()
    except IndexServiceError as error:
        err.print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(1)
    except FileNotFoundError as error:  # Hudi or a cleaner took it away in the middle
        gone = SnapshotChanged(f"A file went while it was needed: {error}.")
        err.print(str(gone), style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(1)
    except BrokenPipeError:  # the reader of our output has gone, such as head
        sys.exit(141)
