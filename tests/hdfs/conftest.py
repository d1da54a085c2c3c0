"""A real HDFS for the test run."""

from collections.abc import Iterator
from itertools import count

import pytest

from dev.hdfs import Hdfs, running_hdfs
from hudi_index_service.storage.store import Storage

_numbers = count(1)


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """The test run's HDFS."""
    with running_hdfs(tmp_path_factory.mktemp("hdfs")) as running:
        yield running


@pytest.fixture
def storage(hdfs: Hdfs) -> Storage:
    """A folder of this test's own, which does not exist yet."""
    return Storage(f"{hdfs.uri}/tests/{next(_numbers)}")
