"""`serve`: listens for commit callbacks until it is told to stop.

The same listener and worker as `IndexHook`, outside the writer's process: for Spark jobs in other
languages, Flink, Hudi Streamer, or several writers at once. It builds by local threads.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hudi_index_service import config
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.hook import IndexHook
from hudi_index_service.hook.write_options import SECRET_OPTION
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
        say: Takes the lines that tell how to write to the tables.

    Raises:
        ConfigInvalid: a wrong argument or setting, or the address cannot be bound.
        StorageUnsupported: a table whose storage is not served.
    """
    chosen = _with_address(settings if settings is not None else config.settings(), host, port)
    hook = IndexHook(
        tables, wait=wait, strategy=strategy, clean=clean, options=options, settings=chosen
    )
    with stopped_by_signals() as stop, hook:
        for line in _instructions(hook, chosen):
            say(line)
        stop.wait()
        say("Stopping: the builds asked for are finished first.")


def _with_address(settings: Settings, host: str | None, port: int | None) -> Settings:
    asked = {"host": host, "port": port}
    update = {key: value for key, value in asked.items() if value is not None}
    return settings.model_copy(update={"hook": settings.hook.model_copy(update=update)})


def _instructions(hook: IndexHook, settings: Settings) -> list[str]:
    """What to write with. A secret that was made for this run is shown, here and nowhere else; a
    configured one is not."""
    options = hook.write_options(hook.tables[0])
    if settings.hook.secret and settings.hook.secret.get_secret_value():
        options[SECRET_OPTION] = "<the setting hook.secret>"
    return [
        f"Listening for commits of {', '.join(hook.tables)}. Write with these options:",
        *(f"{key}={value}" for key, value in options.items()),
    ]
