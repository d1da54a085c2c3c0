"""Building and cleaning as Airflow tasks, run within the Airflow worker."""

from collections.abc import Mapping, Sequence

from airflow.sdk import task

from hudi_index_service.build.strategy import Budget, Strategy
from hudi_index_service.hook.table_upkeep import TableUpkeep, configured


@task
def build_index(
    table: str,
    strategy: str = "auto",
    *,
    partitions: Sequence[str] | None = None,
    hoodie_conf: Mapping[str, str] | None = None,
    max_files: int | None = None,
    max_bytes: int | None = None,
    max_minutes: float | None = None,
    requests_per_second: float | None = None,
) -> int:
    """Builds what is due in local threads, for tables that one machine can index. Build larger ones
    by spark-submit (`hudi_index_service.submit`).

    Args:
        table: Base path.
        strategy: ``incremental``, ``all`` or ``refresh``; ``auto`` for the strategy in
            ``hoodie.index.strategy``, or incremental.
        partitions: Partitions to build; None for all.
        hoodie_conf: ``hoodie.index.*`` keys, which define the index if necessary; they override
            those that the table's writers stored.
        max_files, max_bytes, max_minutes, requests_per_second: The budget; the next run continues
            where this one stopped.

    Returns the number of entries built.

    Raises:
        IndexServiceError: nothing, or not everything, could be built.
    """
    budget = Budget(
        files=max_files,
        bytes=max_bytes,
        minutes=max_minutes,
        requests_per_second=requests_per_second,
    )
    with TableUpkeep(table, options=hoodie_conf) as upkeep:
        keys = upkeep.define()
        build = upkeep.table.build(
            strategy=keys.strategy if strategy == "auto" else Strategy.named(strategy),
            partitions=partitions,
            budget=budget,
        ).raise_for_failures()
        if keys.failure is not None:
            raise keys.failure
    return len(build.built)


@task
def clean_index(table: str) -> int:
    """Removes expired entries. Returns the number of removed files.

    Raises:
        IndexServiceError: the table cannot be read, or its index cannot be written.
    """
    with configured(table) as opened:
        return len(opened.clean().removals)
