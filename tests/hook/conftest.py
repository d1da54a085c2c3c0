"""Tables for the hook, and listeners that are closed after the test."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hudi_index_service import open_table
from hudi_index_service.build.outcomes import Build
from hudi_index_service.config import HookSettings
from hudi_index_service.hook.allowed_tables import AllowedTables
from hudi_index_service.hook.listener import CallbackListener
from hudi_index_service.hook.worker import Worker
from tests.hook.callbacks import SECRET, MessageTable
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options


@pytest.fixture(scope="session")
def first_commits(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], MessageTable]:
    """A table with one commit, by its name and type. It must not be changed."""

    @cache
    def written(name: str, table_type: str) -> MessageTable:
        options = hudi_options(name, table_type, **NO_METADATA_TABLE)
        table = MessageTable(spark, tmp_path_factory.mktemp("hook") / name, options)
        table.write()
        return table

    return written


@pytest.fixture
def message_table(
    first_commits: Callable[[str, str], MessageTable], tmp_path: Path
) -> Callable[..., MessageTable]:
    """Makes a copy of a table with one commit, and an index on a column if given."""

    def make(
        name: str = "messages", table_type: str = "COPY_ON_WRITE", index: str = ""
    ) -> MessageTable:
        first = first_commits(name, table_type)
        table = replace(first, path=Path(shutil.copytree(first.path, tmp_path / name)))
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
