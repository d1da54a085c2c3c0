"""`hudi-index serve-spark`: answers Spark sessions without Python, and builds nothing. Needs the
extras ``spark`` and ``hook``."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hudi_index_service import config
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid, RequestRefused
from hudi_index_service.fleet.service import web_settings
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.web.api import Machinery
from hudi_index_service.fleet.web.application import Application, WebServer
from hudi_index_service.fleet.web.spark_sessions import SparkSessions, require_spark
from hudi_index_service.hook.allowed_tables import path_identity
from hudi_index_service.hook.daemon import (
    private_file,
    secret_of,
    settings_to_print,
    stopped_by_signals,
    with_address,
)
from hudi_index_service.index.factory import ready_index_types
from hudi_index_service.storage.store import normalize_uri

log = logging.getLogger(__name__)

EXTENSIONS = "org.apache.spark.sql.hudi.HoodieSparkSessionExtension,hudiindex.spark.IndexExtensions"
ADDRESS = "spark.hudi.index.address"
TOKEN = "spark.hudi.index.token"


def answer(
    folders: Iterable[str | Path],
    *,
    host: str | None = None,
    port: int | None = None,
    allow_changes: bool | None = None,
    storage_options: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Answers Spark sessions until SIGTERM or SIGINT. Must be called from the main thread.

    Args:
        folders: The tables that sessions may read by index: their base paths, or folders above.
        host, port, allow_changes: Override the settings ``answer.host``, ``answer.port`` and
            ``answer.allow_changes``.
        storage_options: As for `open_table`, for all tables.
        say: Receives the lines that explain how to start a session. They never contain the token:
            it is the setting ``answer.token``, or else a random one, which is in a file below the
            state folder while this runs, readable only by this user.

    Raises:
        ConfigInvalid: a wrong argument or setting, the address cannot be bound, the extra ``hook``
            is not installed, or the file for a random token cannot be written.
        StorageUnsupported: a folder on unsupported storage.
    """
    require_spark()
    settings = with_address(config.effective(settings), "answer", host, port)
    allowed = AllowedFolders(folders)
    token = secret_of(settings.answer.token, "answer.token")
    if allow_changes is None:
        allow_changes = settings.answer.allow_changes
    with (
        answering(
            allowed,
            token,
            settings,
            storage_options=storage_options,
            may_change=allow_changes,
        ) as server,
        stopped_by_signals() as stop,
        settings_to_print(
            {"spark.sql.extensions": EXTENSIONS, ADDRESS: server.url, TOKEN: token},
            TOKEN,
            setting="answer.token",
            given=settings.answer.token,
            path=private_file(settings, "answer", server.url),
        ) as lines,
    ):
        ready_index_types()
        server.start()
        say(f"Answering for the tables in {allowed}. Start Spark sessions with these settings:")
        for line in lines:
            say(line)
        for folder in allowed.missing():
            log.warning("%s does not exist. Sessions get no answer for tables in it.", folder)
        stop.wait()


@contextmanager
def answering(
    allowed: "AllowedFolders",
    token: str,
    settings: Settings,
    *,
    storage_options: Mapping[str, str] | None = None,
    may_change: bool = False,
) -> Iterator[WebServer]:
    """A server for sessions, not started yet, which is closed at the end of the context.

    Args:
        allowed: The tables that sessions may read.
        token: What they have to send.
        storage_options, settings: As for `open_table`, for all tables.
        may_change: Whether their statements may change indexes.

    Raises:
        ConfigInvalid: the address cannot be bound.
    """
    sessions = SparkSessions(
        settings,
        lambda caller, requests, path: allowed.checked(path),
        lambda uri: storage_options,
        may_change=may_change,
    )
    # Tokens of a fleet are for tables by their names, which folders have not.
    web = web_settings(settings, "answer").model_copy(update={"tokens": None})
    fleet = Supervisor(settings=settings, remembers=False)

    def application(most_streams: int) -> Application:
        return Application(
            fleet,
            lambda seen: (),
            Machinery(),
            web,
            most_streams=most_streams,
            session_token=token,
            more_routes=lambda requests, gate, _: sessions.routes(requests, gate),
        )

    server = WebServer(web, settings.hook, application, section="answer")
    try:
        yield server
    finally:
        server.close()
        sessions.close()
        fleet.close()


class AllowedFolders:
    """An allow-list of tables and of folders with tables, in any spelling.

    Args:
        folders: Base paths of tables, or folders above them: local ones, ``s3://…``, …

    Raises:
        ConfigInvalid: the list is empty.
        StorageUnsupported: an unsupported scheme.
    """

    def __init__(self, folders: Iterable[str | Path]) -> None:
        self._folders = tuple(normalize_uri(each) for each in folders)
        if not self._folders:
            raise ConfigInvalid(
                "The daemon has no table to read.", remedy="Name at least one table or folder."
            )
        self._identities = [(path_identity(each) or each).rstrip("/") for each in self._folders]

    def __str__(self) -> str:
        return ", ".join(self._folders)

    def missing(self) -> list[str]:
        """The local folders that do not exist now."""
        return [each for each in self._folders if "://" not in each and not Path(each).exists()]

    def checked(self, base_path: str) -> str:
        """The path of a table, as it is opened.

        Raises:
            RequestRefused: it is neither one of the folders nor below one.
        """
        path = path_identity(base_path)
        if path is not None and ".." not in path.split("/"):
            for each in self._identities:
                if path == each or path.startswith(f"{each}/"):
                    return path
        raise RequestRefused(
            f"The table {base_path[:200]!r} is in none of the folders that this daemon reads.",
            remedy="Start hudi-index serve-spark with the table, or with a folder above it.",
        )
