"""`serve`: listens for commit callbacks until it is stopped.

It runs the listener and worker of `IndexHook` outside the writer's process: for Spark jobs in other
languages, Flink, Hudi Streamer, or several writers at once. It builds in local threads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from hudi_index_service import config
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.hook import IndexHook
from hudi_index_service.hook.idle import warn_of_idle_tables
from hudi_index_service.hook.secret import is_set, kept_in_file
from hudi_index_service.hook.signals import stopped_by_signals
from hudi_index_service.hook.write_options import SECRET_OPTION


def serve(
    tables: Iterable[str | Path],
    *,
    wait: float = 0.0,
    host: str | None = None,
    port: int | None = None,
    strategy: Strategy = Strategy.INCREMENTAL,
    clean: bool = True,
    options: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Serves the tables until SIGTERM or SIGINT, then finishes the requested builds. A second
    signal ends the process at once. Must be called from the main thread.

    Args:
        wait, strategy, clean, options: As for `IndexHook`.
        host, port: Override the settings ``hook.host`` and ``hook.port``.
        say: Receives the lines that explain how to write to the tables. They never contain the
            secret: it is the setting ``hook.secret``, or else a random one, which is in a file
            below the state folder while this runs, readable only by this user.

    Raises:
        ConfigInvalid: a wrong argument or setting, the address cannot be bound, or the file for a
            random secret cannot be written.
        StorageUnsupported: a table on unsupported storage.
    """
    effective_settings = _with_address(config.effective(settings), host, port)
    hook = IndexHook(
        tables,
        wait=wait,
        strategy=strategy,
        clean=clean,
        options=options,
        settings=effective_settings,
    )
    with stopped_by_signals() as stop, hook, _instructions(hook, effective_settings) as lines:
        for line in lines:
            say(line)
        warn_of_idle_tables(
            hook.tables, strategy=strategy, options=options, settings=effective_settings
        )
        stop.wait()
        say("Stopping after the requested builds.")


def _with_address(settings: Settings, host: str | None, port: int | None) -> Settings:
    overrides = {"host": host, "port": port}
    update = {key: value for key, value in overrides.items() if value is not None}
    return settings.model_copy(update={"hook": settings.hook.model_copy(update=update)})


@contextmanager
def _instructions(hook: IndexHook, settings: Settings) -> Iterator[list[str]]:
    """The write options without the secret, since printed lines end up in system journals. A secret
    generated for this run is in a file, with the other options, while the context lasts."""
    options = hook.write_options(hook.tables[0])
    lines = [f"Listening for commits of {', '.join(hook.tables)}. Write with these options:"]
    if is_set(settings.hook.secret):
        options[SECRET_OPTION] = "<the setting hook.secret>"
        yield [*lines, *_as_properties(options)]
        return
    path = settings.state_folder / "serve" / f"{urlsplit(hook.url).port}.properties"
    with kept_in_file(path, _as_properties(options), "HUDI_INDEX_HOOK__SECRET"):
        options[SECRET_OPTION] = f"<in {path}>"
        yield [
            *lines,
            *_as_properties(options),
            f"All of them, with the secret of this run, are in {path}; only this user can read it.",
        ]


def _as_properties(options: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in options.items()]
