"""The contents of a packed environment, and what cannot be packed; tests/cluster runs one."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.index.factory import ENTRY_POINT_GROUP
from hudi_index_service.submit.pack import needed_distributions, pack_environment


def test_needed_distributions_are_the_closure_without_spark() -> None:
    names = {each.name.lower().replace("_", "-") for each in needed_distributions()}

    assert {"hudi-index-service", "hudi-index-pylucene", "hudi-index-parquet"} <= names
    assert {"hudi", "pyarrow", "numpy", "obstore", "pydantic", "pydantic-core"} <= names
    assert {"hudi-index-hbase", "happybase"} <= names, "index types that are installed here"
    assert "hdfs-native" in names, "clients of extras that are installed here"
    assert not names & {"pyspark", "py4j", "apache-airflow", "uvicorn", "pytest"}


def test_an_archive_that_spark_cannot_unpack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"Spark cannot unpack a file named .*environment\.7z"):
        pack_environment(tmp_path / "environment.7z")


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"cannot be written: .*No such file"):
        pack_environment(tmp_path / "none" / "environment.tar.gz")


def test_a_missing_distribution_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index type is installed without a package that it requires."""
    installed = tmp_path / "odd_type-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: odd-type\nVersion: 1.0\nRequires-Dist: never-installed\n"
    )
    (installed / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\nodd = odd_type:Odd\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigInvalid, match="the package never-installed, which is not installed"):
        needed_distributions()


@pytest.fixture
def files_up_to_a_megabyte() -> Iterator[None]:
    """Limits the file size of this process, which has the effect of a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("files_up_to_a_megabyte")
def test_a_failure_leaves_no_partial_archive(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="File too large"):
        pack_environment(tmp_path / "environment.tar.gz")
    assert list(tmp_path.iterdir()) == []
