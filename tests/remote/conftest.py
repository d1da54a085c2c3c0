"""An S3 server, and real Hudi tables in its buckets."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hudi_index_service.storage.store import Storage
from tests.golden.table import Golden
from tests.remote.s3_server import S3Server, serving

# Three pages per base file: fetching one of them is less than fetching the file.
ROWS = 20_000


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """The server, until the end of the test run."""
    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def written(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A merge-on-read table on the local disk with two partitions of one base file each; the base
    file with the odd ids has a log file."""
    return golden("three_pages_with_logs").put(tmp_path_factory.mktemp("remote"))


@dataclass(frozen=True)
class Copies:
    """The same table in a bucket and on the local disk."""

    bucket: str
    uri: str
    local: Path


@pytest.fixture
def copies(written: Path, s3: S3Server, tmp_path: Path) -> Copies:
    bucket = s3.make_bucket()
    local = Path(shutil.copytree(written, tmp_path / "table"))
    storage = Storage(f"s3://{bucket}/tables/t", s3.options)
    for file in sorted(local.rglob("*")):
        if file.is_file():
            storage.upload(str(file.relative_to(local)), file)
    return Copies(bucket, storage.uri, local)
