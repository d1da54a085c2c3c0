"""`hudi-index doctor`: what it finds in an installation and a table, and the exit status."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hudi_index_service import config
from hudi_index_service.doctor import Check, diagnose
from hudi_index_service.doctor.check import Status
from hudi_index_service.errors import PermissionDenied
from hudi_index_service.hudi.bundle import bundle_of_spark, downloaded_bundle
from hudi_index_service.storage.store import Storage
from tests.edited_tables import make_unreadable
from tests.golden.table import Golden
from tests.index.plug_in import install
from tests.programs import Command

Doctor = Callable[..., str]


@pytest.fixture
def doctor(command: Command) -> Doctor:
    """Runs the command, and returns its output."""
    return partial(command, "doctor")


@pytest.fixture
def table(golden: Golden, tmp_path: Path) -> Path:
    return golden("two_partitions").put(tmp_path / "table")


def found(name: str, table: Path | None = None) -> Check:
    """The check of that name."""
    diagnosis = diagnose(None if table is None else str(table))
    (check,) = (each for each in diagnosis.checks if each.name == name)
    return check


def test_this_installation_is_well(doctor: Doctor) -> None:
    lines = doctor().splitlines()
    assert any(line.startswith("ok             Java: 17.") for line in lines)
    assert "ok             index type lucene: hudi-index-pylucene 0.1.0." in lines
    assert "ok             index type hbase (optional): hudi-index-hbase 0.1.0." in lines

    report = json.loads(doctor("-o", "json"))
    assert report["ok"] is True
    assert {each["status"] for each in report["checks"]} == {"ok"}


def test_a_wrong_java_is_named_with_its_version(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert f"missing        Java: {tmp_path} has no bin/java. Install JDK 17" in doctor(status=1)

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    (tmp_path / "release").write_text('JAVA_VERSION="26.0.1"\n')
    assert f"wrong version  Java: 26.0.1 in {tmp_path}, not 17 to 25." in doctor(status=1)


def test_what_was_not_tested_is_named_and_not_wrong(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyarrow.__version__", "127.0.0")
    (line,) = (each for each in doctor().splitlines() if "tested versions (optional)" in each)
    assert line.startswith("ok             tested versions (optional): Not tested: pyarrow 127.0.0")


def test_a_python_that_pyspark_does_not_run_on_is_named(
    doctor: Doctor, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.python_version", lambda: "3.14.10")
    line = "wrong version  Python for Spark (optional): 3.14.10, not <3.14: PySpark 3.5 "
    assert any(each.startswith(line) for each in doctor().splitlines())

    refused = command("demo", "--folder", str(tmp_path / "demo"), status=1)
    assert "Python for Spark: 3.14.10" in refused
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    ("requirement", "line"),
    [
        ("pyarrow>=999", "wrong version  HBase client (optional): pyarrow is "),
        ("no-such-package>=1", "missing        HBase client (optional): no-such-package is not "),
    ],
)
def test_an_optional_part_does_not_fail(
    requirement: str, line: str, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hudi_index_service.doctor.check.requires",
        lambda name: [f'{requirement}; extra == "hbase"'],
    )
    (printed,) = (each for each in doctor().splitlines() if each.startswith(line))
    assert printed.endswith("pip install 'hudi-index-service[hbase]'.")


def test_an_index_type_of_another_distribution_says_what_it_lacks(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "odd", "import no_such_client")
    monkeypatch.syspath_prepend(str(tmp_path))
    (line,) = (each for each in doctor().splitlines() if "index type odd" in each)
    assert line.startswith("failed         index type odd (optional): Index type 'odd' ")
    assert "No module named 'no_such_client'" in line


def test_a_wrong_version_of_a_needed_package_fails(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_index_service.doctor.check.requires", lambda name: ["pyarrow<1"])
    printed = doctor(status=1)
    assert "wrong version  packages: pyarrow is " in printed
    assert "not <1. Fix: pip install hudi-index-service." in printed


def test_hudis_bundle_has_to_exist_and_to_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUDI_INDEX_CACHE_FOLDER", str(tmp_path))  # where the demo left nothing
    config.settings.cache_clear()
    jar = tmp_path / "hudi-spark3.4-bundle_2.12-1.2.0.jar"
    monkeypatch.setenv("HUDI_INDEX_HUDI_JAR", str(jar))
    assert found("Hudi's Spark bundle").status is Status.MISSING
    jar.touch()
    assert found("Hudi's Spark bundle").status is Status.WRONG_VERSION
    monkeypatch.delenv("HUDI_INDEX_HUDI_JAR")
    missing = found("Hudi's Spark bundle")
    assert (missing.status, missing.required) == (Status.MISSING, False)
    assert "Download org.apache.hudi:hudi-spark3.5-bundle_2.12" in missing.remedy
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "scala-library-2.13.8.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    other = found("Hudi's Spark bundle")
    assert "Download org.apache.hudi:hudi-spark3.5-bundle_2.13:1.1.1" in other.remedy
    config.settings.cache_clear()


def test_the_bundle_is_sought_where_a_session_would_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HUDI_INDEX_HUDI_JAR", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    jar = tmp_path / "jars" / "hudi-spark3.5-bundle_2.12-1.2.0.jar"
    jar.parent.mkdir()
    jar.touch()
    assert bundle_of_spark() == jar


def test_a_bundle_that_the_demo_has_downloaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HUDI_INDEX_HUDI_JAR", raising=False)
    monkeypatch.setenv("HUDI_INDEX_CACHE_FOLDER", str(tmp_path))
    config.settings.cache_clear()
    downloaded_bundle().parent.mkdir(parents=True)
    downloaded_bundle().touch()
    remedy = found("Hudi's Spark bundle").remedy
    assert remedy.endswith(f"export HUDI_INDEX_HUDI_JAR={downloaded_bundle()}.")
    config.settings.cache_clear()


def test_another_spark_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert found("SPARK_HOME").status is Status.MISSING
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.4.1.jar").touch()
    assert found("SPARK_HOME").detail.startswith(f"{tmp_path} has Spark 3.4.1; PySpark is 3.5.")


def test_a_table_is_read_listed_and_left_as_it_was(doctor: Doctor, table: Path) -> None:
    before = sorted(table.rglob("*"))
    printed = doctor(str(table))
    assert "2 base files, 0 slices with log files." in printed
    assert "ok             writing: .hoodie/.index takes files, and never replaces one." in printed
    assert sorted(table.rglob("*")) == before


def test_a_table_that_only_spark_reads_fails(doctor: Doctor, table: Path) -> None:
    with (table / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("hoodie.table.shape=round\n")
    assert "failed         table: TABLE_FEATURE_UNSUPPORTED: " in doctor(str(table), status=1)
    assert "missing        table: TABLE_NOT_FOUND: " in doctor(f"{table}/nothing", status=1)


def test_a_reader_needs_no_write_access(
    doctor: Doctor, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(storage: Storage, path: str, data: bytes) -> None:
        raise PermissionDenied(f"{storage.uri}/{path} cannot be written: denied.")

    monkeypatch.setattr(Storage, "create", refuse)
    assert "Queries work; only building an index needs it." in doctor(str(table))


def test_a_store_that_replaces_files_fails(
    doctor: Doctor, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Storage, "create", Storage.replace)
    assert "failed         writing: STORAGE_FAILED: " in doctor(str(table), status=1)
    assert not (table / ".hoodie" / ".index").exists()


def test_a_damaged_base_file_fails(table: Path) -> None:
    for base_file in table.glob("*/*.parquet"):
        make_unreadable(base_file)
    assert found("base files", table).status is Status.FAILED
