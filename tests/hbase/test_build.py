"""Builds into HBase: by this process and by Spark's executors, killed and resumed, repeated, and
retried while HBase is unavailable."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dev.hbase import HBase
from hudi_index_hbase.server import server_of
from hudi_index_service import IndexedTable
from hudi_index_service.config import BuildSettings, Settings
from hudi_index_service.errors import BuildFailed
from tests.hbase.conftest import Cells, Open, in_hbase
from tests.ports import free_port
from tests.programs import awaited, ended

COLUMNS = ["name", "amount", "price"]


def manifests(table: IndexedTable) -> list[Path]:
    """The manifests of the published entries."""
    return sorted(Path(table.uri, ".hoodie/.index/hbase").rglob("manifest-*.json"))


def leaves(cells: Cells) -> list[list[bytes]]:
    """The cells of all leaves of all entries, without the rows that list the stored entries."""
    return sorted(list(row.values()) for row in cells.all().values() if b"i:uri" not in row)


def test_entries_are_published_like_those_of_other_types(open_copy: Open, cells: Cells) -> None:
    table = in_hbase(open_copy("cow"), COLUMNS)
    (status,) = table.status()
    assert (status.index_type, status.base_files, status.covered) == ("hbase", 3, 3)
    assert len(manifests(table)) == 3
    stored = [row for row in cells.all().values() if b"i:uri" in row]
    assert [row[b"i:uri"].decode() for row in stored] == [table.uri] * 3
    # The rows are in HBase and not in the packed file as well.
    data = [path.stat().st_size for path in Path(table.uri, ".hoodie/.index").rglob("*.pack")]
    assert len(data) == 3


def test_spark_executors_store_the_same_cells_as_local_workers(
    open_copy: Open, spark: SparkSession, settings: Settings, hbase: HBase, cells: Cells
) -> None:
    locally = in_hbase(open_copy("cow"), COLUMNS)
    changed = settings.hbase.model_copy(update={"table": f"{cells.table}_by_spark"})
    by_spark = in_hbase(open_copy("cow", at="other", spark=spark, hbase=changed), COLUMNS)

    stored = leaves(cells)
    assert len(stored) >= 3 * len(COLUMNS)
    assert leaves(Cells(hbase, changed.table)) == stored
    for table in (locally, by_spark):
        assert table.scan("amount = 300", use_index="require").count() == 1


def test_concurrent_builders_may_create_the_same_hbase_table(
    open_copy: Open, settings: Settings
) -> None:
    """A table that another builder has just created is not a failure to retry."""
    strict = settings.hbase.model_copy(update={"attempts": 1})
    at_once = BuildSettings(parallelism=3)
    table = in_hbase(open_copy("cow", hbase=strict, build=at_once), ["amount"])
    assert table.scan("amount = 300", use_index="require").count() == 1


_DYING = """
import os, signal, sys
from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_hbase.server import HBaseServer

left, write = int(sys.argv[3]), HBaseServer.write

def dying(server, request):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(server, request)

HBaseServer.write = dying
settings = Settings.model_validate_json(sys.argv[2])
open_table(sys.argv[1], settings=settings).build(strategy="all").raise_for_failures()
"""


def test_killed_build_is_resumed(open_copy: Open, cells: Cells, settings: Settings) -> None:
    """Killed before an entry's first batch, between its batches, before its completion is recorded,
    and after: each time, the next build continues."""
    alone = BuildSettings(parallelism=1)
    one_by_one = settings.hbase.model_copy(update={"batch_rows": 1})
    changed = settings.model_copy(update={"hbase": one_by_one, "build": alone})
    table = open_copy("cow", hbase=one_by_one, build=alone)
    table.create_index("all_columns", COLUMNS, using="hbase")
    expected = table.scan("amount = 300", use_index="never").count()

    for requests in (4, 9, 13):
        done = ended(_DYING, table.uri, changed.model_dump_json(), requests)
        assert done.returncode == -9, done.stderr[-2000:]
        assert table.scan("amount = 300").count() == expected
    assert all(each.state != "running" for each in table.builds())
    assert 0 < len(manifests(table)) < 3
    table.build(strategy="all").raise_for_failures()

    assert table.scan("amount = 300", use_index="require").count() == expected == 1
    assert table.verify().problems == ()
    # Cleaning removes what the killed builds left, and nothing else.
    table.clean(grace_seconds=0)
    whole = in_hbase(open_copy("cow", at="whole", hbase=one_by_one), COLUMNS)
    of_table = [key for key, row in cells.all().items() if row.get(b"i:uri") == table.uri.encode()]
    of_whole = [key for key, row in cells.all().items() if row.get(b"i:uri") == whole.uri.encode()]
    assert len(of_table) == len(of_whole) == 3
    stored = leaves(cells)
    assert stored[::2] == stored[1::2], "each leaf is stored once per table"
    assert table.verify().problems == ()


def test_build_waits_for_hbase_to_restart(
    open_copy: Open, breakable: HBase, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    patient = settings.hbase.model_copy(
        update={"attempts": 200, "backoff_seconds": 0.05, "backoff_max_seconds": 0.5}
    )
    table = open_copy("cow", hbase=patient)
    table.create_index("all_columns", COLUMNS, using="hbase")
    breakable.kill_thrift()
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(table.build, strategy="all")
        awaited(lambda: server_of(patient).requests >= 6)  # two workers, three attempts each
        breakable.restart_thrift()
        build = building.result()
    assert [outcome.error for outcome in build.failed] == []
    assert len(build.built) == 3
    assert "attempt 2 follows" in caplog.text
    assert table.scan("amount = 300", use_index="require").count() == 1


def test_build_fails_when_hbase_is_unavailable(open_copy: Open, settings: Settings) -> None:
    impatient = settings.hbase.model_copy(
        update={"attempts": 2, "backoff_seconds": 0.01, "port": free_port()}
    )
    table = open_copy("cow", hbase=impatient)
    table.create_index("all_columns", COLUMNS, using=["hbase", "btree"])
    build = table.build(strategy="all")
    assert [outcome.index_type for outcome in build.failed] == ["hbase"] * 3
    assert all(outcome.error and "2 attempts" in outcome.error for outcome in build.failed)
    assert [outcome.index_type for outcome in build.built] == ["btree"] * 3
    assert server_of(impatient).requests == 2 * 3
    with pytest.raises(BuildFailed, match="HBase at 127"):
        build.raise_for_failures()
    assert manifests(table) == []

    table = open_copy("cow")
    table.build(strategy="all").raise_for_failures()
    assert len(manifests(table)) == 3
    assert table.scan("amount = 300", use_index="require").count() == 1
