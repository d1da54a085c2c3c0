"""Tables for the hook, and services that are closed after the test."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.fleet.builds.child import Progress
from hudi_index_service.fleet.builds.messages import Ended, Order
from hudi_index_service.fleet.builds.pool import Threads
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.service import Service
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.web.application import WebServer
from hudi_index_service.fleet.work import Listener
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
def listening(tmp_path: Path) -> Iterator[Callable[..., WebServer]]:
    """Starts a service whose builds are a test's, closed after the test."""
    with ExitStack() as stack:

        def start(
            build: Callable[[Order, Progress], Ended],
            *tables: Path | str,
            limits: dict[str, float] | None = None,
            wait: float = 0.0,
        ) -> WebServer:
            settings = Settings(hook=limits or {}, state_folder=tmp_path / "state")
            policies = [TablePolicy(str(each), str(each), woken_by="callback") for each in tables]

            def supervisor(listener: Listener) -> Supervisor:
                return Supervisor(
                    policies,
                    settings=settings,
                    listener=listener,
                    slots=lambda take: Threads(take, 1, build),
                    looks=0,
                    remembers=False,
                )

            service = stack.enter_context(
                Service(
                    supervisor,
                    settings,
                    section="hook",
                    callback_secret=SECRET,
                    usual_wait=wait,
                )
            )
            service.supervisor.start()
            service.server.start()
            return service.server

        yield start
