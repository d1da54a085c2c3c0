"""What is done for tables that are named as arguments."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.fleet.builds.pool import fitting
from hudi_index_service.fleet.builds.process import Limits
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.work import Listener
from hudi_index_service.hook.allowed_tables import AllowedTables
from hudi_index_service.hook.write_options import index_options, read_write_keys

# Nobody has said how long a clean or the listing of a large table may take.
_HANGS_AFTER = timedelta(hours=6)


def policies(
    tables: Iterable[str | Path],
    *,
    woken_by: Literal["callback", "poll"],
    poll: timedelta,
    strategy: Strategy,
    clean: bool,
    options: Mapping[str, str] | None,
    settings: Settings,
) -> tuple[TablePolicy, ...]:
    """What holds for some tables, each named by its base path.

    Args:
        tables: Base paths, or names in a catalog.
        strategy: What to build if the keys set no strategy.
        clean: Whether each build is followed by a clean.
        options: A write config whose ``hoodie.index.*`` keys override those of the tables' commits.

    Raises:
        ConfigInvalid: a wrong key, or no table.
        StorageUnsupported: a table on unsupported storage.
    """
    read_write_keys(options or {})  # reports mistakes now, not at the first build
    return tuple(
        TablePolicy(
            uri,
            uri,
            woken_by=woken_by,
            poll=poll,
            strategy=strategy,
            clean=clean,
            build_timeout=_HANGS_AFTER,
            on=settings.build.on,
            definitions=None,
            write_config=index_options(options or {}),
            verify_sample=0,
        )
        for uri in AllowedTables(tables)
    )


def supervisor_of(
    tables: Iterable[TablePolicy], settings: Settings, listener: Listener
) -> Supervisor:
    """Keeps the tables. What was asked for is forgotten when the process ends, and the memory of
    builds is limited by what the machine has: nobody has set a limit."""
    limits = fitting(Limits(), most=settings.hook.parallelism, is_least=True)
    return Supervisor(
        tables,
        settings=settings,
        limits=limits,
        listener=listener,
        remembers=False,
    )
