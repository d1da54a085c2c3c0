"""Building and cleaning as Airflow tasks, run within the Airflow worker."""

from airflow.sdk import task

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.indexed_table import open_table


@task
def build_index(table: str, strategy: str = "incremental") -> int:
    """Builds what is due by local threads: for tables that one machine can index. Larger ones are
    built by spark-submit (`hudi_index_service.submit`).

    Returns how many entries were built.

    Raises:
        IndexServiceError: nothing, or not everything, could be built.
    """
    with open_table(table) as opened:
        return len(opened.build(strategy=Strategy.named(strategy)).raise_for_failures().built)


@task
def clean_index(table: str) -> int:
    """Removes the entries that have expired. Returns how many files went.

    Raises:
        IndexServiceError: the table cannot be read, or its index not be written.
    """
    with open_table(table) as opened:
        return len(opened.clean().removals)
