"""`IndexHook`: a listener and a worker around a piece of code that writes Hudi tables."""

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from hudi_index_service import config
from hudi_index_service.build.run import Build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hook.allowed_tables import AllowedTables
from hudi_index_service.hook.worker import Worker
from hudi_index_service.hook.write_options import callback_options
from hudi_index_service.indexed_table import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_index_service.hook.listener import CallbackListener


class IndexHook:
    """Builds index entries as Hudi writes, clusters and compacts.

    >>> with IndexHook([table], spark=spark) as hook:  # doctest: +SKIP
    ...     df.write.format("hudi").options(**hook.write_options(table), **mine).save(table)

    Inside the context Hudi's commit callback is answered; a worker thread then builds what is due.
    Leaving it takes no more callbacks and finishes what they asked for. A build that fails is
    logged with its code and remedy, and breaks nothing.

    Args:
        tables: Base paths of the tables to serve; callbacks for others are refused.
        spark: The session to build on; by local threads when None.
        wait: Seconds by which a write may be delayed so that its entries exist when it returns;
            0 delays none.
        strategy: What to build; see `IndexedTable.build`.
        clean: Clean the table's index after each build.
        storage_options: As for `open_table`.
        settings: Instead of the process's own; its section `hook` says where to listen and with
            which secret.

    Raises:
        ConfigInvalid: a wrong argument or setting, or the extra ``hook`` is not installed.
        StorageUnsupported: a table whose storage is not served.
    """

    def __init__(
        self,
        tables: Iterable[str | Path],
        *,
        spark: "SparkSession | None" = None,
        wait: float = 0.0,
        strategy: Strategy | Literal["incremental", "all"] = Strategy.INCREMENTAL,
        clean: bool = False,
        storage_options: Mapping[str, str] | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._settings = settings if settings is not None else config.settings()
        self._tables = AllowedTables(tables)
        self._spark = spark
        self._wait = _checked_wait(wait)
        self._strategy = Strategy.named(strategy)
        self._clean = clean
        self._storage_options = storage_options
        self._secret = _secret(self._settings)
        self._new_listener = _listener_class()
        self._running: tuple[CallbackListener, Worker] | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        """The base paths of the tables served."""
        return tuple(self._tables)

    @property
    def url(self) -> str:
        """Where callbacks are to be posted.

        Raises:
            ConfigInvalid: the hook is not running.
        """
        if self._running is None:
            raise ConfigInvalid(
                "The hook is not running, so it has no address.",
                remedy="Use it as a context manager: with IndexHook([table]) as hook: ...",
            )
        return self._running[0].url

    def write_options(self, table: str | Path) -> dict[str, str]:
        """The write options by which Hudi calls this hook; they hold its secret.

        Raises:
            CallbackRefused: the hook does not serve the table.
            ConfigInvalid: the hook is not running.
        """
        self._tables.find(table)
        return callback_options(self.url, self._secret, wait=self._wait)

    def start(self) -> None:
        """Begins to answer callbacks, as entering the context does.

        Raises:
            ConfigInvalid: the hook runs already, or its address cannot be bound.
        """
        if self._running is not None:
            raise ConfigInvalid("The hook runs already.", remedy="Close it first.")
        worker = Worker(self._reconcile, queue=self._settings.hook.queue)
        listener = self._new_listener(
            worker,
            self._tables,
            self._secret,
            host=self._settings.hook.host,
            port=self._settings.hook.port,
            wait=self._wait,
        )
        worker.start()
        listener.start()
        self._running = listener, worker

    def close(self) -> None:
        """Takes no more callbacks, finishes the builds asked for, joins the threads."""
        if self._running is None:
            return
        listener, worker = self._running
        listener.close()
        worker.close()
        self._running = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _reconcile(self, uri: str) -> Build:
        with open_table(
            uri,
            storage_options=self._storage_options,
            spark=self._spark,
            settings=self._settings,
        ) as table:
            build = table.build(strategy=self._strategy)
            if self._clean:
                table.clean()
        return build


def _listener_class() -> "type[CallbackListener]":
    """Imported at first use: the module of this class is imported without the extra, too."""
    try:
        from hudi_index_service.hook.listener import CallbackListener
    except ModuleNotFoundError as error:
        raise ConfigInvalid(
            f"The hook needs {error.name}, which is not installed.",
            remedy="pip install 'hudi-index-service[hook]'",
        ) from error
    return CallbackListener


def _checked_wait(wait: float) -> float:
    if not 0 <= wait <= 24 * 3600:
        raise ConfigInvalid(f"wait={wait} is no number of seconds from 0 to a day.")
    return wait


def _secret(settings: Settings) -> str:
    configured = settings.hook.secret.get_secret_value() if settings.hook.secret else ""
    if not configured:
        # Spark hides option values that contain this word when it shows a plan.
        return f"secret-{secrets.token_urlsafe(32)}"
    if not (configured.isascii() and configured.isprintable()) or configured != configured.strip():
        raise ConfigInvalid(
            "The setting hook.secret cannot be sent in a header.",
            remedy="Use printable ASCII characters, without a blank at either end.",
        )
    return configured
