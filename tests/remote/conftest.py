"""An S3 server, and real Hudi tables in its buckets."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from tests.golden.table import Golden
from tests.indexed import GoldenIndex
from tests.remote.s3_server import S3Server, serving

# Three pages per base file: fetching one of them is less than fetching the file.
ROWS = 20_000


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """The server, until the end of the test run."""
    with serving() as server:
        yield server


@dataclass(frozen=True)
class Copies:
    """The same table in a bucket and on the local disk."""

    uri: str
    local: Path


@pytest.fixture
def copies(golden: Golden, s3: S3Server, tmp_path: Path) -> Copies:
    """A merge-on-read table of two partitions with one base file each; the base file with the odd
    ids has a log file."""
    local = golden("three_pages_with_logs").put(tmp_path / "table")
    return Copies(s3.put(local), local)


@pytest.fixture
def remote(golden_index: GoldenIndex, s3: S3Server, settings: Settings) -> IndexedTable:
    """The same in another bucket, with the index ``by_msg`` on msg and amount."""
    local = golden_index("three_pages_with_logs", ["msg", "amount"], name="by_msg")
    return open_table(s3.put(local), storage_options=s3.options, settings=settings)
