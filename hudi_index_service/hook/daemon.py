"""What the long-running commands share: their end by a signal, a secret that no log shows, and what
they say of tables for which they would do nothing."""

import logging
import secrets
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from urllib.parse import urlsplit

from pydantic import SecretStr

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid, IndexServiceError
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.process import on_signals
from hudi_index_service.storage.disk import write_private_file
from hudi_index_service.wording import one_line

log = logging.getLogger(__name__)


def secret_of(setting: SecretStr | None, name: str) -> str:
    """The secret of a setting; if it has none, a random one.

    Args:
        name: The setting's name, for messages.

    Raises:
        ConfigInvalid: a header cannot carry it.
    """
    configured = setting.get_secret_value() if setting else ""
    if not configured:
        # Spark redacts option values that contain this word when it prints a plan.
        return f"secret-{secrets.token_urlsafe(32)}"
    if not (configured.isascii() and configured.isprintable()) or configured != configured.strip():
        raise ConfigInvalid(
            f"The setting {name} cannot be sent in a header.",
            remedy="Use printable ASCII characters, without a space at either end.",
        )
    return configured


@contextmanager
def settings_to_print(
    options: Mapping[str, str], secret: str, *, setting: str, given: SecretStr | None, path: Path
) -> Iterator[list[str]]:
    """The lines ``key=value`` of a client's settings, without the secret, since printed lines end
    up in system journals. A random secret is in a file that only this user can read, with the other
    settings, while the context lasts.

    Args:
        options: The client's settings.
        secret: The one of them that is secret.
        setting: The service's setting of the secret, such as ``hook.secret``.
        given: Its value; the secret is random if it is empty.
        path: The file.

    Raises:
        ConfigInvalid: the file cannot be written.
    """
    if given and given.get_secret_value():
        yield _as_properties({**options, secret: f"<the setting {setting}>"})
        return
    section, word = setting.split(".")
    try:
        lines = "".join(f"{line}\n" for line in _as_properties(options))
        write_private_file(path, lines.encode())
    except OSError as error:
        raise ConfigInvalid(
            f"Cannot write the secret of this run to {path}: {error}.",
            remedy=f"Set HUDI_INDEX_{section.upper()}__{word.upper()}, or set state_folder to a "
            "folder of yours.",
        ) from error
    try:
        yield [
            *_as_properties({**options, secret: f"<in {path}>"}),
            f"All of them, with the {word} of this run, are in {path}; only this user can read it.",
        ]
    finally:
        path.unlink(missing_ok=True)


def with_address(settings: Settings, section: str, host: str | None, port: int | None) -> Settings:
    """The settings with another address in a section, as far as it is given."""
    overrides = {"host": host, "port": port}
    given = {name: value for name, value in overrides.items() if value is not None}
    changed = getattr(settings, section).model_copy(update=given)
    return settings.model_copy(update={section: changed})


def private_file(settings: Settings, command: str, url: str) -> Path:
    """The file for the settings of the clients of a command that listens at this URL."""
    return settings.state_folder / command / f"{urlsplit(url).port}.properties"


def _as_properties(options: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in options.items()]


@contextmanager
def extra_required(what: str, extra: str) -> Iterator[None]:
    """Names, where a module cannot be imported, the extra that brings it.

    Args:
        what: What needs it, at the start of a sentence.
        extra: The extra, or several with commas between them.

    Raises:
        ConfigInvalid: a module imported in the context is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigInvalid(
            f"{what} needs {error.name}, which is not installed.",
            remedy=f"Install it: pip install 'hudi-index-service[{extra}]'.",
        ) from error


class Stop:
    """An event that a signal handler can set.

    A handler cannot set a `threading.Event`: it interrupts the main thread at any point, and would
    deadlock on a lock that this thread holds. Python lets it put something into this queue.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[bool] = SimpleQueue()

    def set(self) -> None:
        """Ends current and future waits."""
        self._queue.put(True)

    def interrupt(self) -> None:
        """Ends one wait, as if its time had passed."""
        self._queue.put(False)

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it is set, at most `seconds`. Returns whether it is set."""
        try:
            is_set = self._queue.get(timeout=seconds)
        except Empty:
            return False
        if is_set:
            self._queue.put(True)
        return is_set


@contextmanager
def stopped_by_signals(*interrupting: signal.Signals) -> Iterator[Stop]:
    """Yields a `Stop` that SIGTERM or SIGINT sets, and further signals interrupt. Setting it, or
    leaving the context, restores the previous handlers, so that a second signal ends the process at
    once. Main thread only."""
    stop = Stop()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if number in interrupting:
            stop.interrupt()
            return
        handlers.close()
        stop.set()

    with ExitStack() as handlers:
        handlers.enter_context(on_signals(on_signal, *interrupting))
        yield stop


def warn_of_idle_tables(
    tables: Iterable[str],
    *,
    strategy: Strategy,
    options: Mapping[str, str] | None,
    settings: Settings,
) -> None:
    """Warns of each table that cannot be read, or for which wake-ups build nothing as it is; see
    `TableUpkeep.idle_reason`. The table may change later, so the daemon serves it all the same.

    Args:
        tables: Base paths.
        strategy, options, settings: As for `TableUpkeep`.
    """
    for uri in tables:
        # Of its own, since the daemon's threads may use the other.
        with TableUpkeep(uri, strategy=strategy, options=options, settings=settings) as upkeep:
            try:
                reason = upkeep.idle_reason()
            except IndexServiceError as error:
                log.error("%s", one_line(f"{uri}: {error.for_command}"))
            else:
                if reason is not None:
                    log.warning("%s", one_line(f"{uri}: {reason}"))
