"""A sensor for table services: waits until some have left base files to index."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.indexed_table import open_table

if TYPE_CHECKING:
    from airflow.sdk import Context


class TableServiceSensor(BaseSensorOperator):
    """Waits until a completed clustering or compaction has written base files whose index entries
    are due; returns the latest such instant.

    What is due is worked out from timeline, definitions and entries, so there is no state to keep
    between runs: an instant that a former run missed counts as well. With ``mode="reschedule"``
    it occupies no worker between looks. One look lists the timeline and the entries and reads no
    data.

    Args:
        table: Base path of the table; a template.
        strategy: ``incremental``, or ``all``: then base files of any write count; a template.
    """

    template_fields: Sequence[str] = ("table", "strategy")

    def __init__(self, *, table: str, strategy: str = "incremental", **options: Any) -> None:
        super().__init__(**options)
        self.table = table
        self.strategy = strategy

    def poke(self, context: "Context") -> PokeReturnValue:
        """Looks once.

        Raises:
            IndexServiceError: the table cannot be read; Airflow's retries decide what then.
        """
        with open_table(self.table) as table:
            due = table.build(strategy=Strategy.named(self.strategy), dry_run=True).due
        self.log.info("%d index entries are due for %s.", len(due), self.table)
        latest = max((entry.base_file.instant for entry in due), default=None)
        return PokeReturnValue(is_done=bool(due), xcom_value=latest)
