"""What a daemon logs at its start of tables for which it would do nothing."""

import logging
from collections.abc import Iterable, Mapping

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.wording import one_line

log = logging.getLogger(__name__)


def warn_of_idle_tables(
    tables: Iterable[str],
    *,
    strategy: Strategy,
    options: Mapping[str, str] | None,
    settings: Settings,
) -> None:
    """Warns of each table that cannot be read, or for which wake-ups build nothing as it is; see
    `TableUpkeep.idle_reason`. The table may change later, so the daemon serves it all the same.

    Args:
        tables: Base paths.
        strategy, options, settings: As for `TableUpkeep`.
    """
    for uri in tables:
        # Of its own, since the daemon's threads may use the other.
        with TableUpkeep(uri, strategy=strategy, options=options, settings=settings) as upkeep:
            try:
                reason = upkeep.idle_reason()
            except IndexServiceError as error:
                why = f"{error.code}: {error.message} {error.remedies.command}"
                log.error("%s", one_line(f"{uri}: {why}"))
            else:
                if reason is not None:
                    log.warning("%s", one_line(f"{uri}: {reason}"))
