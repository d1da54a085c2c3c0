"""Counts what is read of a base file: the pages that contain the rows, and little more."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import Footer, RowPlan, stripped_footer

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from hudi_index_service.index.files import local_copy
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.storage.store import Storage
from tests.indexed import GoldenIndex
from tests.remote.s3_server import S3Server

pytestmark = pytest.mark.usefixtures("keeps_no_pages")

COLUMNS = ["id", "name", "text", "amount"]


@dataclass(frozen=True)
class Paged:
    """An indexed table of one base file, with many pages in each of its columns, on the local disk
    and in a bucket."""

    path: Path
    uri: str
    base_file: Path

    def minimum(self, where: Callable[[dict[str, list[object]]], list[bool]]) -> RowPlan:
        """The plan that reads only those pages of `COLUMNS` with rows for which `where` is true."""
        values = pq.read_table(self.base_file, columns=COLUMNS).to_pydict()
        rows = np.flatnonzero(where(values))
        return Footer(stripped_footer(self.base_file)).plan(rows.astype(np.int64), COLUMNS)


@pytest.fixture(scope="module")
def paged(golden_index: GoldenIndex, s3: S3Server) -> Paged:
    path = golden_index("names_in_small_pages", ["name"])
    (base_file,) = path.glob("*.parquet")
    return Paged(path, s3.put(path), base_file)


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
    """The statistics of a warm query, and the requests and bytes for the base file as counted by
    the server; for a local table, as in the statistics."""
    table.scan(where, columns=COLUMNS).to_arrow()
    s3.forget()
    scan = table.scan(where, columns=COLUMNS)
    scan.to_arrow()
    (statistics,) = scan.statistics.slices
    if not table.uri.startswith("s3"):
        return statistics, statistics.ranges, statistics.bytes_read
    fetches = [each for each in s3.requests if each.endswith(".parquet")]
    return statistics, len(fetches), sum(s3.sent[each] for each in set(fetches))


def test_few_rows_read_only_their_pages(table: IndexedTable, paged: Paged, s3: S3Server) -> None:
    minimum = paged.minimum(lambda values: [name == "name77" for name in values["name"]])

    statistics, requests, bytes_read = read(table, s3, "name = 'name77'")

    assert statistics.access is Access.INDEX
    assert statistics.rows_returned == 3
    assert statistics.pages == minimum.pages == 3 * len(COLUMNS)
    assert minimum.page_bytes < minimum.total_bytes / 20
    assert minimum.page_bytes <= bytes_read <= 1.05 * minimum.page_bytes
    assert requests <= minimum.ranges + 3


def test_many_rows_in_adjacent_pages(table: IndexedTable, paged: Paged, s3: S3Server) -> None:
    where = "name IN ({})".format(", ".join(f"'name{n}'" for n in range(3_000, 3_400)))
    wanted = {f"name{n}" for n in range(3_000, 3_400)}
    minimum = paged.minimum(lambda values: [name in wanted for name in values["name"]])

    statistics, requests, bytes_read = read(table, s3, where)

    assert statistics.rows_returned == 1_200
    assert minimum.ranges < minimum.pages
    assert minimum.page_bytes <= bytes_read <= 1.05 * minimum.page_bytes
    assert requests <= minimum.ranges + 3


def test_pages_are_skipped_by_the_bounds_of_an_unindexed_column(
    table: IndexedTable, paged: Paged, s3: S3Server
) -> None:
    minimum = paged.minimum(
        lambda values: [
            name == "name77" and amount < 1_000
            for name, amount in zip(values["name"], values["amount"], strict=True)
        ]
    )
    whole = paged.minimum(lambda values: [name == "name77" for name in values["name"]])

    statistics, requests, bytes_read = read(table, s3, "name = 'name77' AND amount < 1000")

    assert statistics.rows_returned == 1
    assert minimum.page_bytes < whole.page_bytes / 2
    assert minimum.page_bytes <= bytes_read <= 1.05 * minimum.page_bytes
    assert requests <= minimum.ranges + 3


@pytest.mark.parametrize(
    "where",
    [
        # The index finds no row.
        *("name = 'nobody'", "name = 'name77' AND name = 'name78'"),
        "name = 'name77' AND amount < 0",
        "name = 'name77' AND kind = '5'",
        "name = 'name77' AND text LIKE 'x%'",
        "name = 'name77' AND ts > 0",
        "name = 'name77' AND (kind > '8' OR amount BETWEEN 10300 AND 10400)",
        "name = 'name77' AND text IS NULL",
    ],
)
def test_pages_that_cannot_match_are_not_read(
    table: IndexedTable, s3: S3Server, where: str
) -> None:
    statistics, requests, bytes_read = read(table, s3, where)
    assert (statistics.pages, requests, bytes_read) == (0, 0, 0)
    assert table.scan(where).count() == 0


@pytest.mark.parametrize("whole_up_to", [0, 2**30])
def test_index_reads_and_base_file_reads_are_counted_separately(
    paged: Paged,
    s3: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    whole_up_to: int,
) -> None:
    monkeypatch.setattr(local_copy, "WHOLE_UP_TO", whole_up_to)
    monkeypatch.setattr(local_copy, "SMALL_MEMBER", 2**14)
    monkeypatch.setattr(local_copy, "NEAR", 2**16)
    settings = Settings(cache_folder=tmp_path / "cache")
    seen = []
    for _ in ("cold", "by another process"):
        with open_table(paged.uri, storage_options=s3.options, settings=settings) as table:
            s3.forget()
            scan = table.scan("name = 'name77'", columns=COLUMNS)
            assert scan.to_arrow().num_rows == 3
            (did,) = scan.statistics.slices
            index = [each for each in s3.requests if each.endswith(".pack")]
            data = [each for each in s3.requests if each.endswith(".parquet")]
            assert (did.index_requests, did.ranges) == (len(index), len(data))
            assert did.index_bytes == sum(s3.sent[each] for each in set(index))
            assert did.bytes_read == sum(s3.sent[each] for each in set(data))
            seen.append(did.index_bytes)

    size = sum(f.size for f in Storage(paged.path).files(".hoodie") if f.path.endswith(".pack"))
    assert seen[1] == 0, "the index is in the cache"
    assert seen[0] == size if whole_up_to else seen[0] <= size
