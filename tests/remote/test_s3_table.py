"""A Hudi table in a bucket, from definition to cleaning: the same answers as on a local disk."""

from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.doctor.check import Status
from hudi_index_service.doctor.table import table_checks
from hudi_index_service.errors import (
    NotAHudiTable,
    PermissionDenied,
    TableNotFound,
)
from hudi_index_service.storage.store import Storage
from tests.golden.table import Golden
from tests.indexed import indexed
from tests.remote.conftest import Copies
from tests.remote.s3_server import S3Server
from tests.same_rows import assert_same_rows

QUERIES = [
    "msg = 'Buying car 3' AND amount > 299000",
    "amount = 900",
    "msg LIKE 'Buying car %' AND amount BETWEEN 100 AND 200",
    "amount IS NULL",
    "NOT (msg = 'Buying car 3' OR amount > 90)",
]


def test_answers_equal_those_of_the_local_table(
    copies: Copies, s3: S3Server, settings: Settings
) -> None:
    columns = ["msg", "amount"]
    local = indexed(copies.local, columns, settings=settings)
    remote = indexed(copies.uri, columns, storage_options=s3.options, settings=settings)

    assert [status.covered for status in remote.status()] == [2]
    for where in QUERIES:
        here, there = local.scan(where), remote.scan(where)
        assert_same_rows(there.to_arrow(), here.to_arrow())
        assert there.count() == here.count() == remote.scan(where, use_index="never").count()
        assert there.exists() == here.exists()
    assert remote.scan().count() == local.scan().count()
    plan = remote.scan("amount = 900").explain(analyze=True)
    assert plan.uses_index
    assert plan.actual.slices["index"] == 1
    read = [each.actual for each in plan.slices or () if each.actual is not None]
    assert [each.log_rows for each in read].count(1) == 1


@pytest.mark.parametrize("schema_first", [False, True])
def test_what_is_committed_before_the_first_query_runs_is_read(
    schema_first: bool, golden: Golden, s3: S3Server, tmp_path: Path, settings: Settings
) -> None:
    """A query on a store begins to list the files when it learns the schema, and does not use the
    list if something was committed since."""
    table = golden("inserted_and_compacted")
    folder = table.put(tmp_path / "table", "written")
    uri = s3.put(folder)
    with open_table(uri, storage_options=s3.options, settings=settings) as opened:
        scan = opened.scan()
        before = set(folder.rglob("*"))
        later = table.put(folder, "inserted")
        storage = Storage(uri, s3.options)
        for file in sorted(set(later.rglob("*")) - before, key=lambda each: ".hoodie" in str(each)):
            if file.is_file() and not file.name.endswith(".crc"):
                storage.upload(str(file.relative_to(folder)), file)
        if schema_first:
            assert scan.columns == table.rows("inserted").column_names
        assert_same_rows(scan.to_arrow(), table.rows("inserted"))


def test_s3_and_s3a_name_the_same_table(
    remote: IndexedTable, s3: S3Server, settings: Settings
) -> None:
    other = open_table(
        remote.uri.replace("s3://", "s3a://") + "/", storage_options=s3.options, settings=settings
    )
    assert other.uri == remote.uri
    assert other.scan("amount = 900").count() == remote.scan("amount = 900").count() == 1
    assert other.build(strategy="all").due == ()


def test_credentials_and_endpoint_from_the_environment(
    remote: IndexedTable, s3: S3Server, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in s3.options.items():
        monkeypatch.setenv(f"AWS_{key.upper()}", value)
    table = open_table(remote.uri, settings=settings)
    assert table.scan("amount = 900").to_arrow().num_rows == 1


def test_stored_values_are_read_and_no_base_file(
    copies: Copies, s3: S3Server, settings: Settings
) -> None:
    with open_table(copies.uri, storage_options=s3.options, settings=settings) as table:
        table.create_index("covering", ["amount"], include=["msg"])
        table.build(strategy="all").raise_for_failures()
        scan = table.scan("amount = 900", columns=["msg"], query_type="read_optimized")
        s3.forget()
        (row,) = scan.to_arrow().to_pylist()
        requested = list(s3.requests)
        assert not [each for each in requested if ".parquet" in each]
        assert any(".pack" in each for each in requested)
        assert [each.stored for each in scan.statistics.slices if each.pages] == [True]
        never = table.scan(
            "amount = 900", columns=["msg"], use_index="never", query_type="read_optimized"
        )
        assert [row] == never.to_arrow().to_pylist()


def test_a_table_is_checked_and_sized_without_a_trace(
    copies: Copies, s3: S3Server, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in s3.options.items():
        monkeypatch.setenv(f"AWS_{key.upper()}", value)
    storage = Storage(copies.uri)
    before = sorted(each.path for each in storage.files())

    checks = {each.name: each for each in table_checks(copies.uri)}
    proposal = open_table(copies.uri, settings=settings).propose()
    local = open_table(copies.local, settings=settings).propose()

    assert all(each.status is Status.OK for each in checks.values())
    assert "never replaces one" in checks["writing"].detail
    assert [each.reason for each in proposal.columns] == [each.reason for each in local.columns]
    assert proposal.estimate.index_bytes == local.estimate.index_bytes
    assert sorted(each.path for each in storage.files()) == before


def test_warm_query_requests_only_listings_and_pages(remote: IndexedTable, s3: S3Server) -> None:
    remote.create_index("of_another_column", ["id"])
    where = "amount = 900 AND dt = '2026-01-01'"
    assert remote.scan(where, columns=["id"]).to_arrow().num_rows == 1
    s3.forget()

    assert remote.scan(where, columns=["id"]).to_arrow().num_rows == 1

    # No manifest, definition or index data: they are immutable and cached.
    assert [request for request in s3.requests if "/.hoodie/.index/" in request] == []
    covered = [request for request in s3.requests if "/2026-01-01/" in request]
    # A page of each column, and nothing in between.
    assert 1 <= len(covered) <= 3
    assert all(request.startswith("GET ") for request in covered)
    # One listing each of the timeline, the definitions and the segments, which name the entries.
    assert sorted(s3.listed) == [
        "tables/t/.hoodie/.index/_service/definitions/",
        "tables/t/.hoodie/.index/_service/segments/lucene/",
        "tables/t/.hoodie/timeline/",
    ]


def test_each_log_file_is_requested_once(remote: IndexedTable, s3: S3Server) -> None:
    s3.forget()

    scan = remote.scan("amount = 900", columns=["id"])
    scan.to_arrow()

    assert [each.log_rows for each in scan.statistics.slices].count(1) == 1
    about_logs = [request for request in s3.requests if ".log." in request]
    assert len(about_logs) == 1, about_logs
    s3.forget()
    scan.to_arrow()
    assert [request for request in s3.requests if ".log." in request] == []


def test_unused_index_folder_gets_no_requests(
    remote: IndexedTable, s3: S3Server, settings: Settings
) -> None:
    off = settings.model_copy(update={"read": ReadSettings(enabled=False)})
    switched_off = open_table(remote.uri, storage_options=s3.options, settings=off)
    where = "amount = 900"
    for scan in (
        switched_off.scan(where),
        remote.scan(where, use_index="never"),
        remote.scan(),
    ):
        s3.forget()
        assert scan.count() > 0
        assert not [path for path in (*s3.listed, *s3.requests) if "/.hoodie/.index" in path]

    storage = Storage(remote.uri, s3.options)
    properties = storage.read(".hoodie/hoodie.properties")
    storage.replace(
        ".hoodie/hoodie.properties", properties + b"\nhoodie.index.read.enabled=false\n"
    )
    by_table = open_table(remote.uri, storage_options=s3.options, settings=settings)
    s3.forget()
    assert by_table.scan(where).count() == 1
    assert not [path for path in (*s3.listed, *s3.requests) if "/.hoodie/.index" in path]
    assert "hoodie.index.read.enabled=false" in str(by_table.scan(where).explain())


def test_contradictions_are_answered_without_the_index(remote: IndexedTable, s3: S3Server) -> None:
    assert remote.scan("amount = 900").count() == 1  # the schema is cached from now on
    for where in (
        "amount = 1 AND amount = 2",
        "msg = 'Buying car 3' AND amount > 9 AND amount < 3",
        "amount = NULL",
    ):
        s3.forget()
        scan = remote.scan(where)
        assert scan.to_arrow().num_rows == scan.count() == 0
        assert not [path for path in (*s3.listed, *s3.requests) if "/.hoodie/.index" in path]
        assert s3.listed == ["tables/t/.hoodie/timeline/"] * 2
        assert [each for each in s3.requests if each.endswith(".parquet")] == []


def test_write_with_a_lost_response_counts(
    copies: Copies, s3: S3Server, settings: Settings
) -> None:
    table = open_table(copies.uri, storage_options=s3.options, settings=settings)
    s3.losing = 1
    assert table.create_index("by_amount", ["amount"]).version == 1
    assert s3.losing == 0
    s3.losing = 1
    assert len(table.build(strategy="all").raise_for_failures().built) == 2
    assert s3.losing == 0
    assert [record.state for record in table.builds()] == ["finished"]


def test_reading_needs_read_permission_only(remote: IndexedTable, s3: S3Server) -> None:
    s3.forbid(remote.uri.split("/")[2], "s3:PutObject", "s3:DeleteObject")
    assert remote.scan("amount = 900", use_index="auto").count() == 1
    with pytest.raises(PermissionDenied):
        remote.create_index("another", ["id"])


def test_locations_without_a_table_are_refused(copies: Copies, s3: S3Server) -> None:
    with pytest.raises(TableNotFound):
        open_table(copies.uri.replace("tables/t", "none"), storage_options=s3.options)
    with pytest.raises(NotAHudiTable):
        open_table(copies.uri.removesuffix("/t"), storage_options=s3.options)
