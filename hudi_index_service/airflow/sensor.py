"""A sensor for table services: waits until one has written base files to index."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk import BaseSensorOperator, PokeReturnValue

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.hook.write_options import read_write_config

if TYPE_CHECKING:
    from airflow.sdk import Context


class TableServiceSensor(BaseSensorOperator):
    """Waits until a completed clustering or compaction has written base files whose index entries
    are due; returns the latest such instant.

    What is due is derived from timeline, definitions and entries, so the sensor keeps no state
    between runs and includes instants that a former run missed. With ``mode="reschedule"`` it
    occupies no worker between pokes. Each poke defines the index of ``hoodie.index.*`` keys, lists
    the timeline and the entries, and reads no data.

    Args:
        table: Base path of the table; a template.
        strategy: ``incremental``; ``all`` to include base files of any write; ``auto`` for the
            strategy in ``hoodie.index.strategy``, or incremental; a template.
        hoodie_conf: ``hoodie.index.*`` keys, which override those that the table's writers stored;
            a template.
        when_idle: ``wait``, or ``fail`` if the table has no index, or no base file of it is indexed
            or due (`TableUpkeep.idle_reason`); a template.
    """

    template_fields: Sequence[str] = ("table", "strategy", "hoodie_conf", "when_idle")

    def __init__(
        self,
        *,
        table: str,
        strategy: str = "auto",
        hoodie_conf: Mapping[str, str] | str | None = None,
        when_idle: str = "wait",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.table = table
        self.strategy = strategy
        self.hoodie_conf = hoodie_conf
        self.when_idle = when_idle

    def poke(self, context: "Context") -> PokeReturnValue:
        """Checks once whether entries are due.

        Raises:
            AirflowFailException: nothing is to be expected (`when_idle`), which also ``soft_fail``
                does not turn into a skip.
            IndexServiceError: the table cannot be read, or its keys' index cannot be defined;
                Airflow's retries apply.
        """
        if self.when_idle not in ("wait", "fail"):
            raise ConfigInvalid(
                f"Unknown value: when_idle={self.when_idle!r}.", remedy="Use wait or fail."
            )
        hoodie_conf = self.hoodie_conf
        conf = read_write_config([hoodie_conf]) if isinstance(hoodie_conf, str) else hoodie_conf
        with TableUpkeep(self.table, options=conf) as upkeep:
            keys = upkeep.define()
            auto = self.strategy == "auto"
            strategy = keys.strategy if auto else Strategy.named(self.strategy)
            due = upkeep.table.build(strategy=strategy, dry_run=True).due
            reason = None if due else upkeep.idle_reason(strategy)
        if not due and keys.failure is not None:
            raise keys.failure
        if reason is not None and self.when_idle == "fail":
            self.soft_fail = False
            raise AirflowFailException(
                f"{self.table}: {reason} To wait for a table service all the same, set when_idle "
                "to wait."
            )
        if due:
            self.log.info("%d index entries are due for %s.", len(due), self.table)
        else:
            self.log.info(
                "Nothing is due for %s. Waiting up to %s for a table service. %s",
                *(self.table, timedelta(seconds=self.timeout), reason or ""),
            )
        latest = max((entry.base_file.instant for entry in due), default=None)
        return PokeReturnValue(is_done=bool(due), xcom_value=latest)
