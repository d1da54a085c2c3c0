"""Hudi tables in a real HDFS: every answer is Spark's, as for the same table on a local disk. And
docs/guides/hdfs.md runs as it stands, apart from addresses and the table's folder."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dev.hdfs import Hdfs
from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    BuildInProgress,
    NotAHudiTable,
    StorageFailed,
    TableNotFound,
)
from hudi_index_service.hudi import open_hudi_table
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.storage.store import Storage
from tests.at_once import at_once
from tests.docs.markdown import only_block
from tests.golden.predicates import PREDICATES
from tests.golden.recipes import versions
from tests.golden.table import Golden
from tests.hdfs.conftest import configure, mirror, name_service
from tests.indexed import indexed
from tests.same_rows import assert_same_rows


@pytest.fixture
def put(golden: Golden, storage: Storage, tmp_path: Path) -> Callable[..., str]:
    """Puts a golden table into this test's folder in HDFS, in the state after a step; returns its
    location."""

    def put_one(name: str, step: str | None = None) -> str:
        mirror(golden(name).put(tmp_path / "local", step), storage)
        return storage.uri

    return put_one


@pytest.mark.parametrize("version", ["version_6", "version_8", "version_9"])
def test_answers_are_sparks_while_the_table_changes(
    version: str, put: Callable[..., str], golden: Golden, settings: Settings
) -> None:
    steps = golden(version).steps
    table = open_table(put(version, steps[0]), settings=settings)
    table.create_index("by_all", ["msg", "amount", "ts"])
    for step in steps:
        put(version, step)
        table.build(strategy="all").raise_for_failures()
        assert_same_rows(table.scan().to_arrow(), golden(version).rows(step))
        for where in versions.PREDICATES:
            found = table.scan(where)
            expected = golden(version).answer(where, step)
            assert_same_rows(found.to_arrow(), expected)
            assert found.count() == expected.num_rows
            assert_same_rows(table.scan(where, use_index="never").to_arrow(), expected)
        assert table.build(strategy="all").due == ()


def test_index_on_awkward_values_with_log_files(
    put: Callable[..., str], golden: Golden, settings: Settings
) -> None:
    table = indexed(
        put("awkward_with_logs_partitioned"),
        ["name", "msg", "price", "amount", "small", "flag", "born"],
        settings=settings,
    )
    by_index = 0
    for where in PREDICATES:
        found = table.scan(where)
        assert_same_rows(found.to_arrow(), golden("awkward_with_logs_partitioned").answer(where))
        by_index += found.statistics.count(Access.INDEX) > 0
    assert by_index > len(PREDICATES) / 2


@pytest.mark.parametrize(
    "name",
    [
        "archived_in_version_6",
        "awkward_with_logs",
        "cleaned_and_archived",
        "columns_added_and_widened",
        "days_as_keys_not_stored",
        "half_compacted",
        "nested_types",
        "null_partitions",
        "stays_in_its_partition_with_logs",
        "without_hudis_columns",
    ],
)
def test_all_rows_are_sparks(name: str, put: Callable[..., str], golden: Golden) -> None:
    assert_same_rows(open_table(put(name)).scan().to_arrow(), golden(name).rows())


def test_odd_partition_values(put: Callable[..., str], tmp_path: Path) -> None:
    uri = put("odd_partition_values")
    assert_same_rows(
        open_table(uri).scan().to_arrow(), open_table(tmp_path / "local").scan().to_arrow()
    )


def test_earlier_instants(put: Callable[..., str], golden: Golden) -> None:
    for version in ("version_6", "version_9"):
        uri = put(version)
        first = open_hudi_table(uri).completed_instants()[0].requested
        found = open_table(uri).scan(as_of=first).to_arrow()
        assert_same_rows(found, golden(version).rows("written"))


def test_merge_leaves_no_copy_of_a_data_file(
    put: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    table = open_table(put("version_6"))
    whole = table.scan(use_index="never").to_batches()
    next(whole)
    assert list(copies.rglob("*.log.*")), "a slice's files are there while it is merged"
    assert sum(batch.num_rows for batch in whole) > 0
    assert not [each for each in copies.rglob("*") if ".log." in each.name]
    assert not list(copies.rglob("*.parquet"))


def test_local_table_and_its_copy_in_hdfs_give_the_same(
    put: Callable[..., str], settings: Settings, tmp_path: Path
) -> None:
    uri = put("three_pages_with_logs")
    here, there = (open_table(each, settings=settings) for each in (tmp_path / "local", uri))
    for table in (here, there):
        indexed(table, ["msg", "amount", "_hoodie_record_key"])
    for where in ("amount = 900", "msg = 'Buying car 3' AND amount > 299000", "amount IS NULL"):
        assert there.scan(where).row_ids() == here.scan(where).row_ids()
        assert there.scan(where).exists() == here.scan(where).exists()
        assert_same_rows(there.scan(where).to_arrow(), here.scan(where).to_arrow())
    keys = ["5", "6", "30000", "absent"]
    assert_same_rows(there.tag_location(keys), here.tag_location(keys))
    plan = there.scan("amount = 900 AND dt = '2026-01-01'").explain(analyze=True)
    assert plan.actual.slices["index"] == 1
    assert there.verify().problems == here.verify().problems


def test_one_of_two_builders_at_once_builds(put: Callable[..., str], settings: Settings) -> None:
    uri = put("awkward_clustered_partitioned")
    open_table(uri, settings=settings).create_index("by_name", ["name"])

    def build() -> bool:
        try:
            open_table(uri, settings=settings).build(strategy="all").raise_for_failures()
        except BuildInProgress:
            return False
        return True

    assert any(at_once(build, build))
    table = open_table(uri, settings=settings)
    assert [status.covered for status in table.status()] == [3]
    assert table.build(strategy="all").due == ()
    assert table.verify().problems == ()


def test_clean_and_purge_leave_no_file_and_no_folder(
    put: Callable[..., str], storage: Storage, golden: Golden, settings: Settings
) -> None:
    table = indexed(put("version_9", "logged"), ["msg"], name="by_msg", settings=settings)
    manifests = (each.path for each in storage.files(".hoodie/.index/lucene"))
    left = f"{next(each for each in manifests if each.endswith('.json'))}#17"
    storage.upload(left, b"half of it, by a killed builder")

    assert [each.path for each in table.clean().removals] == [left]
    assert storage.unfinished("") == []
    table.drop_index("by_msg", purge=True)
    table.clean()
    assert storage.files(".hoodie/.index/lucene") == []
    assert ".hoodie/.index/lucene" not in storage.folders(".hoodie/.index")
    expected = golden("version_9").answer("amount = 12", "logged")
    assert_same_rows(table.scan("amount = 12").to_arrow(), expected)


def test_name_node_that_does_not_answer_is_an_error_and_costs_nothing(
    put: Callable[..., str], hdfs: Hdfs, golden: Golden, settings: Settings
) -> None:
    impatient = {"dfs.client.socket-timeout": "500"}
    table = open_table(put("version_9"), storage_options=impatient, settings=settings)
    table.create_index("by_amount", ["amount"])
    hdfs.freeze()
    try:
        for call in (table.scan("amount = 12").to_arrow, lambda: table.build(strategy="all")):
            with pytest.raises(StorageFailed, match="HDFS does not answer within") as failed:
                call()
            assert "name node is running" in failed.value.remedy
    finally:
        hdfs.thaw()
    table.build(strategy="all").raise_for_failures()
    assert_same_rows(
        table.scan("amount = 12").to_arrow(), golden("version_9").answer("amount = 12")
    )


def test_locations_without_a_table_are_refused(storage: Storage) -> None:
    with pytest.raises(TableNotFound):
        open_table(storage.uri)
    storage.create("x", b"")
    with pytest.raises(NotAHudiTable):
        open_table(storage.uri)


GUIDE = "docs/guides/hdfs.md"


def block(containing: str, places: Mapping[str, str]) -> str:
    code = only_block(GUIDE, "python", containing)
    for named, real in places.items():
        code = code.replace(named, real)
    return code


def test_tables_by_name_node_and_by_name_service(
    hdfs: Hdfs, storage: Storage, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror(golden("version_9").put(tmp_path / "messages"), storage)
    name_nodes = [f"{hdfs.host}:{hdfs.standby}", f"{hdfs.host}:{hdfs.port}"]
    places = {
        "namenode:8020": f"{hdfs.host}:{hdfs.port}",
        "host1:8020": name_nodes[0],
        "host2:8020": name_nodes[1],
        "/data/messages": storage.uri.removeprefix(hdfs.uri),
    }
    names: dict[str, Any] = {"open_table": open_table}

    def opened(code: str) -> None:
        exec(code, names)
        found = names["table"].scan("amount = 12").to_arrow()
        assert_same_rows(found, golden("version_9").answer("amount = 12"))

    opened(block("storage_options", places))

    by_name_node, by_configuration = block("# a name service", places).splitlines()
    opened(by_name_node)
    configure(monkeypatch, tmp_path / "hdfs-site.xml", name_service(*name_nodes))
    opened(by_configuration)
