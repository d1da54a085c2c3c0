"""Tables for the hook, and listeners that are closed after the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hudi_index_service import open_table
from hudi_index_service.build.outcomes import Build
from hudi_index_service.config import HookSettings
from hudi_index_service.hook.allowed_tables import AllowedTables
from hudi_index_service.hook.listener import CallbackListener
from hudi_index_service.hook.worker import Worker
from tests.hook.callbacks import SECRET, MessageTable
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def message_table(spark: "SparkSession", tmp_path: Path) -> Callable[..., MessageTable]:
    """Creates a table with one commit, and an index on a column if given."""

    def make(
        name: str = "messages", table_type: str = "COPY_ON_WRITE", index: str = ""
    ) -> MessageTable:
        table = MessageTable(
            spark, tmp_path / name, hudi_options(name, table_type, **NO_METADATA_TABLE)
        )
        table.write()
        if index:
            open_table(table.path).create_index(f"by_{index}", [index])
        return table

    return make


@pytest.fixture
def listening() -> Iterator[Callable[..., CallbackListener]]:
    """Starts a worker and its listener, which are closed after the test."""
    with ExitStack() as stack:

        def start(
            reconcile: Callable[[str], Build],
            *tables: Path | str,
            queue: int = 16,
            limits: dict[str, float] | None = None,
            **options: Any,
        ) -> CallbackListener:
            worker = Worker(reconcile, queue=queue)
            worker.start()
            stack.callback(worker.close)
            listener = CallbackListener(
                worker, AllowedTables(tables), SECRET, HookSettings(**(limits or {})), **options
            )
            listener.start()
            stack.callback(listener.close)
            return listener

        yield start
