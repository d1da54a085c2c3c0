"""`hudi-index watch`: polls timelines and builds what is due. Writers need no option."""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from hudi_index_service import config
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.fleet.forms.tables import policies, supervisor_of
from hudi_index_service.fleet.observation import Observation
from hudi_index_service.fleet.work import Listener
from hudi_index_service.hook.daemon import stopped_by_signals, warn_of_idle_tables


class _Once(Listener):
    """Notices when each table has been built once, or cannot be.

    Args:
        done: Called then, possibly several times.
    """

    def __init__(self, tables: Collection[str], done: Callable[[], None]) -> None:
        self._open = set(tables)
        self._done = done
        self.succeeded = True

    def observed(self, observation: Observation) -> None:
        """See `Listener.observed`."""
        if observation.policy.name not in self._open:
            return
        if observation.ended:
            build = observation.ended[0]
            if build.error is not None or build.failed or build.deferred:
                self.succeeded = False
        elif observation.error is not None:
            self.succeeded = False
        else:
            return
        self._open.remove(observation.policy.name)
        if not self._open:
            self._done()


def watch(
    tables: Iterable[str | Path],
    *,
    interval: float | None = None,
    once: bool = False,
    strategy: Strategy = Strategy.INCREMENTAL,
    clean: bool = True,
    options: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    say: Callable[[str], None] = print,
) -> bool:
    """Watches the tables until SIGTERM or SIGINT, then finishes the running builds. A second signal
    ends the process at once. Builds in child processes. Must be called from the main thread.

    Args:
        interval: Seconds between two polls; None for the setting ``watch.interval_seconds``.
        once: Poll once, build what is due, and return.
        strategy, clean, options: As for `policies`.
        say: Receives progress lines.

    Returns:
        False if, with `once`, a build failed; the log has the reason.

    Raises:
        ConfigInvalid: a wrong argument or setting.
        StorageUnsupported: a table on unsupported storage.
    """
    effective = config.effective(settings)
    seconds = effective.watch.interval_seconds if interval is None else interval
    if not seconds > 0:
        raise ConfigInvalid(
            f"interval={seconds} is not positive.", remedy="Use more than 0 seconds."
        )
    watched = policies(
        tables,
        woken_by="poll",
        poll=timedelta(seconds=seconds),
        strategy=strategy,
        clean=clean,
        options=options,
        settings=effective,
    )
    names = [each.name for each in watched]
    with stopped_by_signals() as stop, ExitStack() as stack:
        all_built = _Once(names, stop.set)
        supervisor = supervisor_of(watched, effective, all_built if once else Listener())
        stack.callback(supervisor.close)
        if not once:
            say(f"Watching {', '.join(names)} every {seconds:g} s.")
        warn_of_idle_tables(names, strategy=strategy, options=options, settings=effective)
        supervisor.start()
        stop.wait()
        if not once:
            say("Stopping after the running builds.")
    return all_built.succeeded
