"""What runs in the Airflow worker itself, by its own hudi-index-service: the extra ``local``."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from hudi_index_airflow.errors import HudiIndexFailed, error_of, no_index
from hudi_index_airflow.service import Instant

if TYPE_CHECKING:
    from hudi_index_service import IndexedTable
    from hudi_index_service.hook.table_upkeep import TableUpkeep


class Worker:
    """Builds, cleans and verifies in this process. Only for one thread.

    Args:
        storage_options: Of the tables' store.

    Every method raises HudiIndexError: the package is not installed, or what it raises.
    """

    def __init__(self, storage_options: Mapping[str, str]) -> None:
        self._options = dict(storage_options)
        self._tables: dict[str, IndexedTable] = {}
        self._is_at_work = False

    @property
    def version(self) -> str:
        """The version of hudi-index-service."""
        try:
            return version("hudi-index-service")
        except PackageNotFoundError as error:
            raise _not_installed() from error

    def instants(self, table: str) -> list[Instant]:
        """The last completed instants of a table, newest first."""
        with _told():
            from hudi_index_service import open_table
            from hudi_index_service.fleet.timeline import seen_instants

            if table not in self._tables:
                self._tables[table] = open_table(table, storage_options=self._options)
            found = seen_instants(self._tables[table].hudi_table, ())
            return [Instant(each.requested, each.action) for each in found if each.completed]

    def partitions(self, table: str, pattern: str = "*") -> list[str]:
        """The paths of partitions with base files, in order; "" for a table without partitions.

        Args:
            pattern: A path or pattern, as for builds; ``*`` for all.
        """
        with _told():
            from hudi_index_service import open_table
            from hudi_index_service.build.scope import partitions_in_scope

            with open_table(table, storage_options=self._options) as opened:
                files = opened.hudi_table.snapshot().base_files()
            found = {each.partition for each in files}
            return sorted(found if pattern == "*" else partitions_in_scope(found, [pattern]))

    def build(
        self,
        table: str,
        *,
        strategy: str,
        hoodie_conf: str,
        partitions: list[str] | None,
        budget: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Builds what is due; a build that broke off goes on where entries are missing. Returns its
        id and counts.

        Args:
            strategy: ``auto`` for that of the table's keys.
            hoodie_conf: Lines ``key=value``, which override those of the table's writers.
            partitions: None for all.
            budget: The arguments of hudi-index-service's `Budget`.
        """
        with self._upkeep(table, hoodie_conf) as upkeep:
            from hudi_index_service.build.strategy import Budget, Strategy

            keys = upkeep.define()
            if not upkeep.table.indexes() and keys.failure is None:
                raise no_index(table)
            build = upkeep.table.build(
                strategy=keys.strategy if strategy == "auto" else Strategy.named(strategy),
                partitions=partitions,
                budget=Budget(**budget),
            ).raise_for_failures()
            if keys.failure is not None:
                raise keys.failure
            if build.state is not None and build.state.value == "cancelled":
                raise HudiIndexFailed("CANCELLED", f"The build of {table} was cancelled.")
            return {"build_id": build.id, "built": len(build.built), "left": build.left}

    def clean(self, table: str, *, dry_run: bool) -> dict[str, Any]:
        """Removes expired entries; counts them, and their bytes."""
        with self._upkeep(table) as upkeep:
            upkeep.peek()  # the write config may say how long entries are kept
            cleaning = upkeep.table.clean(dry_run=dry_run)
            return {"removed": len(cleaning.removals), "bytes": cleaning.bytes}

    def verify(self, table: str, *, repair: bool) -> dict[str, Any]:
        """Verifies all entries; counts them, and the problems that were repaired."""
        with self._upkeep(table) as upkeep:
            found = upkeep.table.verify(repair=repair)
            if found.unrepaired:
                first, number = found.unrepaired[0], len(found.unrepaired)
                raise HudiIndexFailed(
                    "ENTRY_INVALID",
                    f"{table}: {number} damaged; {first.path}: {first.reason}",
                    f"Build them anew: `hudi-index verify {table} --repair`.",
                )
            return {"entries": found.entries, "repaired": len(found.problems)}

    def is_due(self, table: str, *, strategy: str, hoodie_conf: str) -> tuple[str | None, str]:
        """The instant of the newest base file whose entry is due, and why nothing will be, in
        sentences, or ""."""
        with self._upkeep(table, hoodie_conf) as upkeep:
            from hudi_index_service.build.strategy import Strategy

            keys = upkeep.define()
            chosen = keys.strategy if strategy == "auto" else Strategy.named(strategy)
            due = upkeep.table.build(strategy=chosen, dry_run=True).due
            if not due and keys.failure is not None:
                raise keys.failure
            latest = max((each.base_file.instant for each in due), default=None)
            return latest, "" if due else upkeep.idle_reason(chosen) or ""

    def cancel(self) -> None:
        """Ends what runs in this process; in the main thread, as by a signal's handler."""
        if self._is_at_work:
            raise KeyboardInterrupt

    @contextmanager
    def _upkeep(self, table: str, hoodie_conf: str = "") -> "Iterator[TableUpkeep]":
        with _told():
            from hudi_index_service.hook.table_upkeep import TableUpkeep
            from hudi_index_service.hook.write_options import read_write_config

            options = read_write_config([hoodie_conf])
            with TableUpkeep(table, storage_options=self._options, options=options) as upkeep:
                self._is_at_work = True
                try:
                    yield upkeep
                finally:
                    self._is_at_work = False


@contextmanager
def _told() -> Iterator[None]:
    """Turns the package's errors into those of Airflow."""
    try:
        from hudi_index_service.errors import IndexServiceError
    except ModuleNotFoundError as error:
        raise _not_installed() from error
    try:
        yield
    except KeyboardInterrupt as error:
        raise HudiIndexFailed("CANCELLED", "It was cancelled.") from error
    except IndexServiceError as error:
        raise error_of(error.code, error.message, error.remedies.command) from error


def _not_installed() -> HudiIndexFailed:
    return HudiIndexFailed(
        "NOT_INSTALLED",
        "hudi-index-service is not installed in this worker.",
        "Install airflow-provider-hudi-index[local], or give the connection a running service.",
    )
