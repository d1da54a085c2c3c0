"""What goes into a packed environment, and what cannot be packed; tests/cluster runs one."""

from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.submit import pack
from hudi_index_service.submit.pack import needed_distributions, pack_environment


def test_needed_is_the_closure_of_what_runs_without_spark() -> None:
    names = {each.name.lower().replace("_", "-") for each in needed_distributions()}

    assert {"hudi-index-service", "hudi-index-pylucene", "hudi-index-parquet"} <= names
    assert {"hudi", "pyarrow", "numpy", "obstore", "pydantic", "pydantic-core"} <= names
    assert not names & {"pyspark", "py4j", "apache-airflow", "uvicorn", "pytest"}


def test_a_name_that_spark_does_not_unpack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"environment\.7z: Spark would not know"):
        pack_environment(tmp_path / "environment.7z")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"cannot be written: .*No such file"):
        pack_environment(tmp_path / "none" / "environment.tar.gz")


def test_a_distribution_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_arrow(name: str) -> Distribution:
        if name == "pyarrow":
            raise PackageNotFoundError(name)
        return Distribution.from_name(name)

    monkeypatch.setattr(pack, "distribution", without_arrow)
    with pytest.raises(ConfigInvalid, match="needs the package pyarrow, which is not installed"):
        needed_distributions()


def test_a_failure_leaves_no_half_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk_full(needed: object) -> Iterator[tuple[str, bytes]]:
        yield "bin/python", b"#!/bin/sh"
        raise OSError("No space left on device")

    monkeypatch.setattr(pack, "_files", disk_full)
    with pytest.raises(ConfigInvalid, match="No space left on device"):
        pack_environment(tmp_path / "environment.tar.gz")
    assert list(tmp_path.iterdir()) == []
