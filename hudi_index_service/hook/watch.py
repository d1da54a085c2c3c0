"""`watch`: polls timelines and builds what is due. It needs no write option."""

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path

from hudi_index_service import config
from hudi_index_service.build.outcomes import Build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid, IndexServiceError
from hudi_index_service.hook.allowed_tables import AllowedTables
from hudi_index_service.hook.daemon import stopped_by_signals, warn_of_idle_tables
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.hook.worker import Worker, upkeep_worker
from hudi_index_service.hook.write_options import read_write_keys

log = logging.getLogger(__name__)


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
    ends the process at once. Builds in local threads. Must be called from the main thread.

    Args:
        interval: Seconds between two polls; None for the setting ``watch.interval_seconds``.
        once: Poll once, build what is due, and return.
        strategy, clean, options: As for `TableUpkeep`.
        say: Receives progress lines.

    Returns:
        False if, with `once`, a build failed; the log has the reason.

    Raises:
        ConfigInvalid: a wrong argument or setting.
        StorageUnsupported: a table on unsupported storage.
    """
    effective_settings = config.effective(settings)
    seconds = effective_settings.watch.interval_seconds if interval is None else interval
    if not seconds > 0:
        raise ConfigInvalid(
            f"interval={seconds} is not positive.", remedy="Use more than 0 seconds."
        )
    read_write_keys(options or {})  # reports mistakes now, not at the first poll
    upkeep = {
        uri: TableUpkeep(
            uri,
            strategy=strategy,
            clean=clean,
            defer_failed=True,
            options=options,
            settings=effective_settings,
        )
        for uri in AllowedTables(tables)
    }
    worker = upkeep_worker(upkeep, effective_settings.hook, queue=len(upkeep))
    poll = Poll(upkeep, worker)
    with stopped_by_signals() as stop:
        worker.start()
        try:
            if not once:
                say(f"Watching {', '.join(upkeep)} every {seconds:g} s.")
            warn_of_idle_tables(
                upkeep, strategy=strategy, options=options, settings=effective_settings
            )
            if once:
                poll.look()
                poll.when_done(stop.set)
                stop.wait()
            else:
                while not stop.is_set():
                    poll.look()
                    stop.wait(seconds)
                say("Stopping after the running builds.")
        finally:
            worker.close(finish_waiting=False)
            for each in upkeep.values():
                each.close()
    return poll.is_settled()


class Poll:
    """Wakes the worker for tables that have changed since they were last settled.

    A table is settled once a build that began after a poll has succeeded. Until then every poll
    wakes it again, and the worker decides how long it rests.
    """

    def __init__(self, upkeep: Mapping[str, TableUpkeep], worker: Worker) -> None:
        self._upkeep = upkeep
        self._worker = worker
        self._requests: dict[str, tuple[Future[Build], str | None]] = {}
        """The latest build of each table, and the table's version before it was requested; None if
        that could not be read."""

    def look(self) -> None:
        """Polls every table that is not being built."""
        for uri in self._upkeep:
            build, before = self._requests.get(uri, (None, None))
            if build is not None and not build.done():
                continue
            version = self._version(uri)
            if version is None or version != before or build is None or not _succeeded(build):
                self._requests[uri] = self._worker.wake(uri), version

    def when_done(self, call: Callable[[], object]) -> None:
        """Calls `call`, possibly more than once, when all builds requested so far are done."""
        for build, _ in self._requests.values():
            build.add_done_callback(lambda _: self._is_done() and call())
        if self._is_done():
            call()

    def is_settled(self) -> bool:
        """Whether the last build of every table succeeded and deferred nothing."""
        return all(
            _succeeded(build) and not build.result().deferred
            for build, _ in self._requests.values()
        )

    def _is_done(self) -> bool:
        return all(build.done() for build, _ in self._requests.values())

    def _version(self, uri: str) -> str | None:
        """The table's version; None if it cannot be read, for example during an overwrite. The
        build then reports the reason."""
        try:
            return self._upkeep[uri].version()
        except IndexServiceError as error:
            log.debug("Cannot read the version of %s: %s", uri, error)
            return None


def _succeeded(future: Future[Build]) -> bool:
    return (
        future.done()
        and not future.cancelled()
        and future.exception() is None
        and not future.result().failed
    )
