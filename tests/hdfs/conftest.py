"""A real HDFS for the test run, and tables in it."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from dev.hdfs import Hdfs, running_hdfs
from hudi_index_service.storage.store import Storage

_numbers = count(1)

SERVICE = "cluster"


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """The test run's HDFS."""
    with running_hdfs(tmp_path_factory.mktemp("hdfs")) as running:
        yield running


@pytest.fixture
def storage(hdfs: Hdfs) -> Storage:
    """A folder of this test's own, which does not exist yet."""
    return Storage(f"{hdfs.uri}/tests/{next(_numbers)}")


def name_service(*name_nodes: str) -> dict[str, str]:
    """Options that make `SERVICE` the name of several name nodes, each ``host:port``."""
    numbered = {f"nn{number}": each for number, each in enumerate(name_nodes, 1)}
    addresses = {f"dfs.namenode.rpc-address.{SERVICE}.{n}": at for n, at in numbered.items()}
    return {
        "dfs.nameservices": SERVICE,
        f"dfs.ha.namenodes.{SERVICE}": ",".join(numbered),
        **addresses,
    }


def configure(monkeypatch: pytest.MonkeyPatch, file: Path, options: Mapping[str, str]) -> None:
    """Writes options to a file of Hadoop's configuration, in whose folder clients look."""
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in options.items()
    )
    file.write_text(f"<configuration>{properties}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(file.parent))


def mirror(table: Path, storage: Storage) -> None:
    """Makes a folder in HDFS equal to a local one, apart from the service's own folder."""
    local = {str(file.relative_to(table)): file for file in table.rglob("*") if file.is_file()}
    index = ".hoodie/.index/"
    there = {file.path: file.size for file in storage.files() if not file.path.startswith(index)}
    storage.delete([path for path in there if path not in local])

    def upload(path: str) -> None:
        content = local[path].read_bytes()
        if there.get(path) != len(content) or storage.read(path) != content:
            storage.upload(path, content)

    with ThreadPoolExecutor(8) as uploads:
        list(uploads.map(upload, local))
