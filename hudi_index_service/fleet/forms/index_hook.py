"""`IndexHook`: the service around code that writes Hudi tables, in its process."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from hudi_index_service import config
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.fleet.builds.child import Progress
from hudi_index_service.fleet.builds.messages import Ended, Order
from hudi_index_service.fleet.builds.pool import Threads
from hudi_index_service.fleet.builds.process import Limits
from hudi_index_service.fleet.builds.runner import run_with
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.work import Listener
from hudi_index_service.hook.allowed_tables import AllowedTables
from hudi_index_service.hook.daemon import extra_required, secret_of
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.hook.write_options import (
    CALLBACK_PATH,
    callback_options,
    checked_wait,
    read_write_keys,
    with_keys_in_commits,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


log = logging.getLogger(__name__)


class IndexHook:
    """Builds index entries as Hudi writes, clusters and compacts.

    >>> with IndexHook([table], spark=spark) as hook:  # doctest: +SKIP
    ...     df.write.format("hudi").options(**hook.write_options(table), **mine).save(table)

    Inside the context, the hook answers Hudi's commit callbacks and threads build what is
    due. At its end, the hook refuses callbacks and finishes the requested builds. A failed build is
    logged with its code and remedy, breaks nothing, and is retried at a later wake-up.

    Keys ``hoodie.index.*`` among the write options are enough to define an index: see
    `write_options`. Their strategy and wait override the arguments here.

    Args:
        tables: Base paths of the tables to serve; callbacks for others are refused.
        spark: The session to build on; None builds in local threads.
        wait: Seconds by which a write may be delayed so that its entries exist when it returns;
            0 for no delay.
        strategy: What to build; see `IndexedTable.build`.
        clean: Clean the table's index after each build.
        options: A write config for all the tables: its ``hoodie.index.*`` keys override those in
            the tables' commits.
        storage_options: As for `open_table`.
        settings: Override the process's settings. Section `hook` sets the address, the secret, the
            number of tables built at once, and the rest after failures.

    Raises:
        ConfigInvalid: a wrong argument or setting, or the extra ``hook`` is not installed.
        StorageUnsupported: a table on unsupported storage.
    """

    def __init__(
        self,
        tables: Iterable[str | Path],
        *,
        spark: "SparkSession | None" = None,
        wait: float = 0.0,
        strategy: Strategy | Literal["incremental", "all"] = Strategy.INCREMENTAL,
        clean: bool = True,
        options: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._settings = config.effective(settings)
        self._tables = AllowedTables(tables, spark)
        keys = read_write_keys(options or {})
        requested_wait = keys.wait if keys is not None else None
        self._wait = checked_wait(wait if requested_wait is None else requested_wait)
        self._upkeep = {
            uri: TableUpkeep(
                uri,
                spark=spark,
                storage_options=storage_options,
                settings=self._settings,
                strategy=Strategy.named(strategy),
                clean=clean,
                defer_failed=True,
                options=options,
            )
            for uri in self._tables
        }
        self._secret = secret_of(self._settings.hook.secret, "hook.secret")
        with extra_required("The hook", "hook"):
            from hudi_index_service.fleet.service import Service
        self._new_service = Service
        self._running: Service | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        """The base paths of the served tables."""
        return tuple(self._tables)

    @property
    def url(self) -> str:
        """The URL for callbacks.

        Raises:
            ConfigInvalid: the hook is not running.
        """
        if self._running is None:
            raise ConfigInvalid(
                "The hook is not running, so it has no address.",
                remedy="Use it as a context manager: with IndexHook([table]) as hook: ...",
            )
        return f"{self._running.server.url}{CALLBACK_PATH}"

    def write_options(
        self, table: str | Path, options: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """The write options that make Hudi call this hook; they contain its secret.

        Args:
            options: Your own write options, which the result includes. Keys ``hoodie.index.*``
                among them define the index and how to build it (`WriteKeys`). Each commit stores
                them, so that other processes that serve the table can read them. Wrong keys are
                logged and break no write.

        Raises:
            CallbackRefused: the hook does not serve the table.
            ConfigInvalid: the hook is not running.
        """
        uri = self._tables.find(table)
        user_options = dict(options or {})
        wait = self._wait
        try:
            keys = read_write_keys(user_options)
        except ConfigInvalid as error:
            log.error("The write to %s ignores its hoodie.index.* keys. %s", uri, error)
            keys = None
        if keys is not None:
            self._upkeep[uri].suggest(user_options)
            wait = wait if keys.wait is None else keys.wait
        callback = callback_options(self.url, self._secret, wait=wait, usual_wait=self._wait)
        return {**with_keys_in_commits(user_options), **callback}

    def start(self) -> None:
        """Starts answering callbacks, as entering the context does.

        Raises:
            ConfigInvalid: the hook is already running, or its address cannot be bound.
        """
        if self._running is not None:
            raise ConfigInvalid("The hook is already running.", remedy="Close it first.")
        service = self._new_service(
            self._supervisor,
            self._settings,
            section="hook",
            callback_secret=self._secret,
            usual_wait=self._wait,
        )
        service.supervisor.start()
        service.answer()
        self._running = service

    def close(self) -> None:
        """Refuses further callbacks, finishes the requested builds, and joins the threads."""
        if self._running is None:
            return
        self._running.supervisor.finish()
        self._running.close()
        self._running = None
        for upkeep in self._upkeep.values():
            upkeep.close()

    def _supervisor(self, listener: Listener) -> Supervisor:
        def run(order: Order, progress: Progress) -> Ended:
            return run_with(self._upkeep[order.table], order, progress)

        # The upkeep knows all that is done for a table.
        return Supervisor(
            [TablePolicy(uri, uri, woken_by="callback", verify_sample=0) for uri in self._tables],
            settings=self._settings,
            listener=listener,
            limits=Limits(slots=self._settings.hook.parallelism),
            slots=lambda take: Threads(take, self._settings.hook.parallelism, run),
            looks=0,
            remembers=False,
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
