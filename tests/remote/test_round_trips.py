"""How often a query asks a remote store, and how often it has to wait for an answer before it can
ask on, over a table of a hundred base files."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.documents import DocumentCache
from hudi_index_service.index import entry
from hudi_index_service.index.manifest import Manifest
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.storage import Storage
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.remote.conftest import S3Server

FILES = 100
# Requests of a cold query that do not grow with the files: properties, timeline, commit metadata,
# definitions, listings of up to a thousand files each, the schema.
FIXED = 20


@pytest.fixture(scope="module")
def hundred(spark: SparkSession, s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An indexed table of a hundred partitions of one base file each, in a bucket. Each file has
    amounts of its own, and the same messages as all others."""
    path = tmp_path_factory.mktemp("hundred") / "table"
    rows = spark.range(0, 2 * FILES, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "concat('Buying car ', id % 2) AS msg",
        "id AS amount",
        "cast(0 AS bigint) AS ts",
        "concat('p', lpad(cast(id AS int) div 2, 3, '0')) AS part",
    )
    options = hudi_options("t", partition_column="part", **NO_METADATA_TABLE)
    write(rows, path, options, "bulk_insert")
    with open_table(path) as local:
        local.create_index("by_amount", ["amount", "msg"])
        local.build(strategy="all").raise_for_failures()
    storage = Storage(f"s3://{s3.make_bucket()}/t", s3.options)
    for file in sorted(path.rglob("*")):
        if file.is_file() and not file.name.endswith(".crc"):
            storage.upload(str(file.relative_to(path)), file)
    return storage.uri


@pytest.fixture
def cold(
    hundred: str, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[IndexedTable]:
    """The table, of which nothing is known yet; each answer of the store takes its time."""
    monkeypatch.setattr(entry, "_manifests", DocumentCache(Manifest, capacity=4096))
    settings = Settings(cache_folder=tmp_path / "cache", read=ReadSettings(parallelism=16))
    s3.forget()
    s3.latency = 0.05
    with open_table(hundred, storage_options=s3.options, settings=settings) as table:
        yield table
    s3.latency = 0.0


def asked(s3: S3Server) -> Counter[str]:
    """The requests, by what they are for."""
    kinds = {
        "/manifest-": "manifest",
        "/_service/instants/": "summary",
        ".pack": "data",
        ".parquet": "base file",
    }
    return Counter(
        next((kind for sign, kind in kinds.items() if sign in request), "other")
        for request in s3.requests
    )


def test_a_cold_query_for_one_value_opens_one_file(cold: IndexedTable, s3: S3Server) -> None:
    scan = cold.scan("amount = 55", columns=["amount"])
    assert scan.to_arrow().column("amount").to_pylist() == [55]

    requests = asked(s3)
    instants, opened = 1, 1
    assert len(s3.requests) <= FIXED + instants + 2 * opened
    assert (requests["summary"], requests["manifest"]) == (1, 0), "all manifests in one"
    assert (requests["data"], requests["base file"]) == (1, 1), "of the one file that is opened"
    assert scan.statistics is not None
    assert scan.statistics.index_requests == 1
    assert scan.statistics.index_bytes == sum(s3.sent[r] for r in s3.requests if ".pack" in r)
    assert scan.statistics.bytes_read == sum(s3.sent[r] for r in s3.requests if ".parquet" in r)
    assert {r.split("/")[3] for r in s3.requests if ".parquet" in r} == {"p027"}
    assert requests["other"] <= FIXED
    assert s3.rounds < FILES / 2
    plan = scan.explain().plan
    assert plan is not None
    assert (plan.count(Access.INDEX), plan.count(Access.SKIP)) == (1, FILES - 1)
    assert {each.rule for each in plan.slices if each.access is Access.SKIP} == {
        "excluded_by_statistics"
    }
    assert "statistics rule the predicate out" in str(scan.explain())


def test_a_cold_query_that_opens_every_file(cold: IndexedTable, s3: S3Server) -> None:
    assert cold.scan("msg <> 'Buying car 0'").count() == FILES

    requests = asked(s3)
    assert (requests["summary"], requests["manifest"], requests["data"]) == (1, 0, FILES)
    assert requests["base file"] == 0, "the index alone knows"
    assert requests["other"] <= FIXED
    assert s3.rounds < FILES


def test_partitions_left_out_are_not_asked_for(cold: IndexedTable, s3: S3Server) -> None:
    scan = cold.scan("part = 'p010' AND amount < 1000", columns=["id"])
    assert sorted(scan.to_arrow().column("id").to_pylist()) == ["20", "21"]

    requests = asked(s3)
    assert (requests["summary"], requests["manifest"], requests["data"]) == (0, 1, 1)
    assert requests["other"] <= FIXED
    assert "the partition's path rules the predicate out" in str(scan.explain())


def test_a_warm_query_lists_three_folders_at_once(cold: IndexedTable, s3: S3Server) -> None:
    scan = cold.scan("amount = 55", columns=["id"])
    assert scan.count() == 1
    s3.forget()
    assert scan.count() == cold.scan("amount = 56").count() == 1
    assert asked(s3) == {"other": 6, "data": 1}, "of the second file"
    s3.forget()
    assert scan.count() == 1
    assert len(s3.requests) == len(s3.listed) == 3
    assert s3.rounds <= 3


def test_a_small_base_file_is_read_whole_by_one_request(cold: IndexedTable, s3: S3Server) -> None:
    scan = cold.scan("part = 'p010' AND amount < 1000", columns=["id"], use_index="never")
    assert sorted(scan.to_arrow().column("id").to_pylist()) == ["20", "21"]
    assert [r.split()[0] for r in s3.requests if ".parquet" in r] == ["GET"]
