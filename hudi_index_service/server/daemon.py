"""`serve`: listens for commit callbacks until it is told to stop.

The same listener and worker as `IndexHook`, outside the writer's process: for Spark jobs in other
languages, Flink, Hudi Streamer, or several writers at once. It builds by local threads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from hudi_index_service import config
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hook import IndexHook
from hudi_index_service.hook.write_options import SECRET_OPTION
from hudi_index_service.private_file import write_private_file
from hudi_index_service.server.signals import stopped_by_signals


def serve(
    tables: Iterable[str | Path],
    *,
    wait: float = 0.0,
    host: str | None = None,
    port: int | None = None,
    strategy: Strategy = Strategy.INCREMENTAL,
    clean: bool = False,
    options: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Serves the tables until SIGTERM or SIGINT, then finishes the builds asked for. A second
    signal ends the process at once. Has to be called from the main thread.

    Args:
        wait, strategy, clean, options: As for `IndexHook`.
        host, port: Instead of the settings ``hook.host`` and ``hook.port``.
        say: Takes the lines that tell how to write to the tables. The secret is in none: it is the
            setting ``hook.secret``, or else a random one, which is in a file of this user's below
            the state folder as long as this runs.

    Raises:
        ConfigInvalid: a wrong argument or setting, the address cannot be bound, or the file for a
            random secret cannot be written.
        StorageUnsupported: a table whose storage is not served.
    """
    chosen = _with_address(settings if settings is not None else config.settings(), host, port)
    hook = IndexHook(
        tables, wait=wait, strategy=strategy, clean=clean, options=options, settings=chosen
    )
    with stopped_by_signals() as stop, hook, _instructions(hook, chosen) as lines:
        for line in lines:
            say(line)
        stop.wait()
        say("Stopping: the builds asked for are finished first.")


def _with_address(settings: Settings, host: str | None, port: int | None) -> Settings:
    asked = {"host": host, "port": port}
    update = {key: value for key, value in asked.items() if value is not None}
    return settings.model_copy(update={"hook": settings.hook.model_copy(update=update)})


@contextmanager
def _instructions(hook: IndexHook, settings: Settings) -> Iterator[list[str]]:
    """What to write with, but for the secret: what is printed ends in journals. A secret that was
    made for this run is, with the other options, in a file as long as the context lasts."""
    options = hook.write_options(hook.tables[0])
    lines = [f"Listening for commits of {', '.join(hook.tables)}. Write with these options:"]
    if settings.hook.secret and settings.hook.secret.get_secret_value():
        options[SECRET_OPTION] = "<the setting hook.secret>"
        yield [*lines, *_as_properties(options)]
        return
    path = settings.state_folder / "serve" / f"{urlsplit(hook.url).port}.properties"
    try:
        write_private_file(path, "".join(f"{line}\n" for line in _as_properties(options)).encode())
    except OSError as error:
        raise ConfigInvalid(
            f"{path}, which is to hold the secret of this run, cannot be written: {error}.",
            remedy="Set HUDI_INDEX_HOOK__SECRET, or state_folder to a folder of yours.",
        ) from error
    options[SECRET_OPTION] = f"<in {path}>"
    ending = f"All of them, with the secret of this run, are in {path}, which this user can read."
    try:
        yield [*lines, *_as_properties(options), ending]
    finally:
        path.unlink(missing_ok=True)


def _as_properties(options: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in options.items()]
