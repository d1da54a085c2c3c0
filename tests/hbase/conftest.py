"""A real HBase for the test run, an HBase table of its own for each test, and small Hudi tables.

Tests that break parts of HBase use `breakable`, which repairs it afterwards.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import happybase
import pytest
from pyspark.sql import SparkSession

from dev.hbase import HBase, running_hbase
from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.config import BuildSettings, HBaseSettings, Settings
from hudi_index_service.optimizer.cost.constants import FILE_NAME, Constants
from tests.golden.table import Golden
from tests.indexed import indexed
from tests.read.conftest import COLUMNS

_numbers = count(1)


@pytest.fixture(scope="session")
def hbase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HBase]:
    """The test run's HBase. Tests that break it use `breakable` instead."""
    with running_hbase(tmp_path_factory.mktemp("hbase"), starts_fast=True) as running:
        yield running


@pytest.fixture
def breakable(hbase: HBase) -> Iterator[HBase]:
    """The test run's HBase, to be frozen, killed or stopped: it is repaired after the test."""
    yield hbase
    hbase.mend()


@dataclass(frozen=True)
class Cells:
    """An HBase table, accessed directly and not through the service.

    Attributes:
        server: The HBase in which it is.
        table: Its name.
    """

    server: HBase
    table: str

    def _connection(self) -> "closing[Any]":
        host, port = self.server.host, self.server.port
        return closing(happybase.Connection(host, port, timeout=60_000))

    def all(self) -> dict[bytes, dict[bytes, bytes]]:
        """Row key → column → value of every row; empty if there is no such table."""
        with self._connection() as connection:
            if self.table.encode() not in connection.tables():
                return {}
            return dict(connection.table(self.table).scan(batch_size=1000))

    def put(self, key: bytes, values: dict[bytes, bytes]) -> None:
        """Writes a row."""
        with self._connection() as connection:
            connection.table(self.table).put(key, values)

    def delete(self, *keys: bytes) -> None:
        """Deletes whole rows."""
        with self._connection() as connection, connection.table(self.table).batch() as batch:
            for key in keys:
                batch.delete(key)

    def drop(self) -> None:
        """Drops the table."""
        with self._connection() as connection:
            connection.delete_table(self.table, disable=True)


@pytest.fixture
def cells(hbase: HBase) -> Cells:
    """The HBase table of this test, which the service creates on its first write."""
    return Cells(hbase, f"index_{next(_numbers)}")


@pytest.fixture
def hbase_settings(cells: Cells) -> HBaseSettings:
    """Settings for this test's own HBase table, with short pauses between attempts."""
    return HBaseSettings(
        host=cells.server.host,
        port=cells.server.port,
        table=cells.table,
        connect_seconds=5,
        backoff_seconds=0.05,
        backoff_max_seconds=1,
    )


@pytest.fixture
def settings(tmp_path: Path, hbase_settings: HBaseSettings) -> Settings:
    """Settings for this test's HBase table, with two build workers and scans so expensive that
    HBase is used for small files too."""
    expensive_scans = Constants(scan_ms=1000)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / FILE_NAME).write_text(expensive_scans.model_dump_json())
    return Settings(
        cache_folder=tmp_path / "cache",
        state_folder=tmp_path / "state",
        hbase=hbase_settings,
        build=BuildSettings(parallelism=2),
    )


PLAIN_COLUMNS = [column if isinstance(column, str) else column.name for column in COLUMNS]

GOLDEN = {"cow": "awkward_clustered_partitioned", "mor": "awkward_with_logs_partitioned"}
"""Tables of awkward values in three partitions: one clustered; one compacted, with later updates
and deletes of one partition in log files."""

Open = Callable[..., IndexedTable]


@pytest.fixture
def open_copy(golden: Golden, tmp_path: Path, settings: Settings) -> Iterator[Open]:
    """Opens this test's own copy of a table of `GOLDEN`, the same copy on each call:
    `open_copy("cow")`. `at` names another copy, `spark` builds with Spark, and further arguments
    replace sections of the settings."""
    opened = []

    def open_one(
        name: str, *, at: str = "", spark: SparkSession | None = None, **sections: object
    ) -> IndexedTable:
        copy = tmp_path / (at or name)
        if not copy.exists():
            golden(GOLDEN[name]).put(copy)
        changed = settings.model_copy(update=sections)
        opened.append(open_table(copy, spark=spark, settings=changed))
        return opened[-1]

    yield open_one
    for table in opened:
        table.close()


def in_hbase(
    table: IndexedTable,
    columns: Sequence[str | Column] = PLAIN_COLUMNS,
    using: str | Sequence[str] = "hbase",
) -> IndexedTable:
    """The table with an index `all_columns`."""
    return indexed(table, columns, name="all_columns", using=using)
