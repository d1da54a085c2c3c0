"""What is read of a base file, counted: the pages that hold the rows, and next to nothing more."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import Footer, RowPlan, stripped_footer
from pyspark.sql import SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from hudi_index_service.index import block_copy, local_copy
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage import Storage
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.remote.conftest import S3Server

ROWS = 60_000
COLUMNS = ["id", "name", "text", "amount"]


@dataclass(frozen=True)
class Paged:
    """An indexed table of one base file, with many pages in each of its columns, on the local disk
    and in a bucket."""

    path: Path
    uri: str
    base_file: Path

    def floor(self, where: Callable[[dict[str, list[object]]], list[bool]]) -> RowPlan:
        """What the pages of `COLUMNS` take that hold the rows for which `where` is true."""
        values = pq.read_table(self.base_file, columns=COLUMNS).to_pydict()
        rows = np.flatnonzero(where(values))
        return Footer(stripped_footer(self.base_file)).plan(rows.astype(np.int64), COLUMNS)


@pytest.fixture(scope="module")
def paged(spark: SparkSession, s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Paged:
    path = tmp_path_factory.mktemp("paged") / "table"
    rows = spark.range(0, ROWS, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "concat('name', id % 20000) AS name",
        "sha2(cast(id AS string), 256) AS text",
        "id AS amount",
        "if(id % 50 = 0, null, id % 1000) AS part_of",
        "cast(id % 4 AS string) AS kind",
        "cast(0 AS bigint) AS ts",
    )
    options = hudi_options("t", **NO_METADATA_TABLE)
    write(rows, path, options | {"hoodie.parquet.page.size": "8192"}, "bulk_insert")
    with open_table(path) as table:
        table.create_index("by_name", ["name"])
        table.build(strategy="all").raise_for_failures()
    storage = Storage(f"s3://{s3.make_bucket()}/t", s3.options)
    for file in sorted(path.rglob("*")):
        if file.is_file() and not file.name.endswith(".crc"):
            storage.upload(str(file.relative_to(path)), file)
    (base_file,) = path.glob("*.parquet")
    return Paged(path, storage.uri, base_file)


@pytest.fixture(params=["local", "s3"])
def table(
    request: pytest.FixtureRequest, paged: Paged, s3: S3Server, tmp_path: Path
) -> Iterator[IndexedTable]:
    settings = Settings(cache_folder=tmp_path / "cache")
    remote = request.param == "s3"
    uri, options = (paged.uri, s3.options) if remote else (str(paged.path), None)
    with open_table(uri, storage_options=options, settings=settings) as opened:
        yield opened


def read(table: IndexedTable, s3: S3Server, where: str) -> tuple[SliceStatistics, int, int]:
    """What a warm query says it read, and the requests and bytes that the server saw of the base
    file; of a local table, what it says itself."""
    table.scan(where, columns=COLUMNS).to_arrow()
    s3.forget()
    scan = table.scan(where, columns=COLUMNS)
    scan.to_arrow()
    assert scan.statistics is not None
    (statistics,) = scan.statistics.slices
    if not table.uri.startswith("s3"):
        return statistics, statistics.ranges, statistics.bytes_read
    asked = [each for each in s3.requests if each.endswith(".parquet")]
    return statistics, len(asked), sum(s3.sent[each] for each in set(asked))


def test_few_rows_take_the_pages_that_hold_them(
    table: IndexedTable, paged: Paged, s3: S3Server
) -> None:
    floor = paged.floor(lambda values: [name == "name77" for name in values["name"]])

    statistics, requests, bytes_read = read(table, s3, "name = 'name77'")

    assert statistics.access is Access.INDEX
    assert statistics.rows_returned == 3
    assert statistics.pages == floor.pages == 3 * len(COLUMNS)
    assert floor.page_bytes < floor.total_bytes / 20
    assert floor.page_bytes <= bytes_read <= 1.05 * floor.page_bytes
    assert requests <= floor.ranges + 3


def test_many_rows_in_neighbouring_pages(table: IndexedTable, paged: Paged, s3: S3Server) -> None:
    where = "name IN ({})".format(", ".join(f"'name{n}'" for n in range(3_000, 3_400)))
    wanted = {f"name{n}" for n in range(3_000, 3_400)}
    floor = paged.floor(lambda values: [name in wanted for name in values["name"]])

    statistics, requests, bytes_read = read(table, s3, where)

    assert statistics.rows_returned == 1_200
    assert floor.ranges < floor.pages
    assert floor.page_bytes <= bytes_read <= 1.05 * floor.page_bytes
    assert requests <= floor.ranges + 3


@pytest.mark.parametrize("where", ["name = 'nobody'", "name = 'name77' AND name = 'name78'"])
def test_for_no_rows_no_page_is_read(table: IndexedTable, s3: S3Server, where: str) -> None:
    statistics, requests, bytes_read = read(table, s3, where)
    assert (statistics.pages, requests, bytes_read) == (0, 0, 0)


def test_pages_are_passed_over_by_the_bounds_of_a_column_without_index(
    table: IndexedTable, paged: Paged, s3: S3Server
) -> None:
    floor = paged.floor(
        lambda values: [
            name == "name77" and amount < 1_000
            for name, amount in zip(values["name"], values["amount"], strict=True)
        ]
    )
    whole = paged.floor(lambda values: [name == "name77" for name in values["name"]])

    statistics, requests, bytes_read = read(table, s3, "name = 'name77' AND amount < 1000")

    assert statistics.rows_returned == 1
    assert floor.page_bytes < whole.page_bytes / 2
    assert floor.page_bytes <= bytes_read <= 1.05 * floor.page_bytes
    assert requests <= floor.ranges + 3


@pytest.mark.parametrize(
    "where",
    [
        "name = 'name77' AND amount < 0",
        "name = 'name77' AND kind = '5'",
        "name = 'name77' AND text LIKE 'x%'",
        "name = 'name77' AND ts > 0",
        "name = 'name77' AND (kind > '8' OR amount BETWEEN 10300 AND 10400)",
        "name = 'name77' AND text IS NULL",
    ],
)
def test_rows_in_pages_that_cannot_match_are_not_read(
    table: IndexedTable, s3: S3Server, where: str
) -> None:
    statistics, requests, bytes_read = read(table, s3, where)
    assert (statistics.pages, requests, bytes_read) == (0, 0, 0)
    assert table.scan(where).count() == 0


@pytest.mark.parametrize("whole_up_to", [0, 2**30])
def test_what_is_fetched_of_the_index_is_told_apart(
    paged: Paged,
    s3: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    whole_up_to: int,
) -> None:
    monkeypatch.setattr(local_copy, "WHOLE_UP_TO", whole_up_to)
    monkeypatch.setattr(block_copy, "_SMALL_MEMBER", 2**14)
    monkeypatch.setattr(block_copy, "_NEAR", 2**16)
    settings = Settings(cache_folder=tmp_path / "cache")
    seen = []
    for _ in ("cold", "by another process"):
        with open_table(paged.uri, storage_options=s3.options, settings=settings) as table:
            s3.forget()
            scan = table.scan("name = 'name77'", columns=COLUMNS)
            assert scan.to_arrow().num_rows == 3
            assert scan.statistics is not None
            (did,) = scan.statistics.slices
            index = [each for each in s3.requests if each.endswith(".pack")]
            data = [each for each in s3.requests if each.endswith(".parquet")]
            assert (did.index_requests, did.ranges) == (len(index), len(data))
            assert did.index_bytes == sum(s3.sent[each] for each in set(index))
            assert did.bytes_read == sum(s3.sent[each] for each in set(data))
            seen.append(did.index_bytes)

    size = sum(f.size for f in Storage(paged.path).files(".hoodie") if f.path.endswith(".pack"))
    assert seen[1] == 0, "it is in the cache"
    assert seen[0] == size if whole_up_to else seen[0] <= size
