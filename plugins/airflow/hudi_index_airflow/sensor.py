"""Sensors: a table has a new instant; entries of its index are due."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseSensorOperator, PokeReturnValue, conf

from hudi_index_airflow.errors import HudiIndexFailed, TableMissing, no_index
from hudi_index_airflow.hook import SERVICE, HudiIndexHook
from hudi_index_airflow.trigger import HudiInstantTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class HudiInstantSensor(BaseSensorOperator):
    """Waits until a table has a completed instant after another one; returns it.

    Args:
        table: As for `HudiIndexOperator`; a template.
        after: An instant that does not count, nor any before it; "" for none; a template.
        hudi_index_conn_id: See `HudiIndexHook`; a template.
        actions: As for `HudiInstantTrigger`.
        deferrable: Whether the triggerer waits, and no slot of a worker does.
        options: As for `BaseSensorOperator`.
    """

    template_fields: Sequence[str] = ("table", "after", "hudi_index_conn_id")
    ui_color = "#dcecf7"

    def __init__(
        self,
        *,
        table: str,
        after: str = "",
        hudi_index_conn_id: str = HudiIndexHook.default_conn_name,
        actions: Sequence[str] | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.table = table
        self.after = after
        self.hudi_index_conn_id = hudi_index_conn_id
        self.actions = actions
        self.deferrable = deferrable

    def execute(self, context: "Context") -> Any:
        """Waits for the instant, and returns it."""
        if not self.deferrable:
            return super().execute(context)
        trigger = HudiInstantTrigger(
            table=self.table,
            hudi_index_conn_id=self.hudi_index_conn_id,
            actions=self.actions,
            poll_interval=self.poke_interval,
            last_seen=self.after or None,
        )
        self.defer(
            trigger=trigger,
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def execute_complete(self, context: "Context", event: dict[str, Any]) -> str:
        """Goes on once the triggerer has seen the instant."""
        return str(event["instant"])

    def poke(self, context: "Context") -> PokeReturnValue:
        """Looks once. A table that is not there is waited for."""
        try:
            found = HudiIndexHook(self.hudi_index_conn_id).instants(self.table)
        except TableMissing as error:
            self.log.info("%s is not there yet: %s", self.table, error)
            found = []
        times = [
            each.requested
            for each in found
            if each.requested > self.after and (not self.actions or each.action in self.actions)
        ]
        return PokeReturnValue(is_done=bool(times), xcom_value=max(times, default=None))


class HudiIndexDueSensor(BaseSensorOperator):
    """Waits until entries of a table's index are due, as after a clustering or compaction.

    What is due follows from timeline, definitions and entries, so the sensor keeps no state, and
    includes instants that an earlier run has missed. The service answers from what it has seen;
    without one, each poke lists timeline and entries in the worker, and reads no data.

    Args:
        table: As for `HudiIndexOperator`; a template.
        strategy: ``all`` to include base files of any write; ``auto`` for the strategy of the
            table's keys; a template. Not for the service, whose fleet file has it.
        hoodie_conf: As for `HudiIndexBuildOperator`; a template.
        when_idle: ``wait``; or ``fail`` at once if the table has no index, or no base file of it is
            indexed or due; a template.
        hudi_index_conn_id: See `HudiIndexHook`; a template.
        options: As for `BaseSensorOperator`.

    Returns the instant of the newest base file that is due; from the service, that of the snapshot.
    """

    template_fields: Sequence[str] = (
        "table",
        "strategy",
        "hoodie_conf",
        "when_idle",
        "hudi_index_conn_id",
    )
    ui_color = "#dcecf7"

    def __init__(
        self,
        *,
        table: str,
        strategy: str = "auto",
        hoodie_conf: str = "",
        when_idle: str = "wait",
        hudi_index_conn_id: str = HudiIndexHook.default_conn_name,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.table = table
        self.strategy = strategy
        self.hoodie_conf = hoodie_conf
        self.when_idle = when_idle
        self.hudi_index_conn_id = hudi_index_conn_id

    def poke(self, context: "Context") -> PokeReturnValue:
        """Looks once.

        Raises:
            HudiIndexFailed: nothing is to be expected (`when_idle`), which also ``soft_fail`` does
                not turn into a skip.
            HudiIndexError: the table cannot be read.
        """
        if self.when_idle not in ("wait", "fail"):
            words = f"Unknown value: when_idle={self.when_idle!r}."
            raise HudiIndexFailed("CONFIG_INVALID", words, "Use wait or fail.")
        latest, reason = self._due()
        if latest is None and reason and self.when_idle == "fail":
            self.soft_fail = False
            raise HudiIndexFailed(
                "INDEX_NOT_FOUND",
                f"{self.table}: {reason}",
                "To wait for a table service all the same, set when_idle to wait.",
            )
        waiting = f"waiting up to {timedelta(seconds=self.timeout)}. {reason}".strip()
        self.log.info("%s: %s", self.table, waiting if latest is None else f"due: {latest}")
        return PokeReturnValue(is_done=latest is not None, xcom_value=latest)

    def _due(self) -> tuple[str | None, str]:
        hook = HudiIndexHook(self.hudi_index_conn_id)
        if hook.target.way != SERVICE:
            conf, strategy = self.hoodie_conf, self.strategy
            return hook.worker.is_due(self.table, strategy=strategy, hoodie_conf=conf)
        table = hook.service.table(hook.service.name_of(self.table))
        status = table["status"]
        if status is None:  # not looked at yet
            return None, ""
        if not status["indexes"]:
            return None, no_index(self.table).message
        return (status["instant"] if table["due"] else None), ""
