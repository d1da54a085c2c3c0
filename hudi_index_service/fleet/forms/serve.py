"""`hudi-index serve` with tables: builds what Hudi's commit callbacks make due. For Spark jobs in
other languages, Flink, Hudi Streamer, or several writers at once. Needs the extra ``hook``."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path

from hudi_index_service import config
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.fleet.forms.tables import policies, supervisor_of
from hudi_index_service.fleet.service import Service
from hudi_index_service.hook.daemon import (
    private_file,
    secret_of,
    settings_to_print,
    stopped_by_signals,
    warn_of_idle_tables,
    with_address,
)
from hudi_index_service.hook.write_options import (
    CALLBACK_PATH,
    SECRET_OPTION,
    callback_options,
    checked_wait,
    read_write_keys,
)

_NO_POLLS = timedelta(days=1)


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
        wait: Seconds by which a write may be delayed so that its entries exist when it returns;
            0 for no delay.
        host, port: Override the settings ``hook.host`` and ``hook.port``.
        strategy, clean, options: As for `policies`; the keys may set another wait.
        say: Receives the lines that explain how to write to the tables. They never contain the
            secret: it is the setting ``hook.secret``, or else a random one, which is in a file
            below the state folder while this runs, readable only by this user.

    Raises:
        ConfigInvalid: a wrong argument or setting, the address cannot be bound, or the file for a
            random secret cannot be written.
        StorageUnsupported: a table on unsupported storage.
    """
    effective = with_address(config.effective(settings), "hook", host, port)
    served = policies(
        tables,
        woken_by="callback",
        poll=_NO_POLLS,
        strategy=strategy,
        clean=clean,
        options=options,
        settings=effective,
    )
    names = [each.name for each in served]
    keys = read_write_keys(options or {})
    usual = checked_wait(wait if keys is None or keys.wait is None else keys.wait)
    secret = secret_of(effective.hook.secret, "hook.secret")
    with (
        stopped_by_signals() as stop,
        Service(
            lambda listener: supervisor_of(served, effective, listener),
            effective,
            section="hook",
            callback_secret=secret,
            usual_wait=usual,
        ) as service,
        settings_to_print(
            callback_options(f"{service.server.url}{CALLBACK_PATH}", secret, wait=usual),
            SECRET_OPTION,
            setting="hook.secret",
            given=effective.hook.secret,
            path=private_file(effective, "serve", service.server.url),
        ) as lines,
    ):
        service.answer()
        say(f"Listening for commits of {', '.join(names)}. Write with these options:")
        for line in lines:
            say(line)
        warn_of_idle_tables(names, strategy=strategy, options=options, settings=effective)
        service.supervisor.start()
        stop.wait()
        say("Stopping after the requested builds.")
        service.supervisor.finish()
