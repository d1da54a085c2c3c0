"""The wheels on another machine: without a compiler, without packages, with a moved JDK."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from platform import machine

import pytest

from dev import crate_licenses
from dev.bootstrap import VENV
from dev.environment import Environment, generous
from dev.native import AIRFLOW, HBASE, PARQUET_ROWS, PYLUCENE, SPARK_RULE, Project
from dev.paths import CONSTRAINTS, ROOT
from dev.prerequisites import find_jdk
from dev.steps import Steps
from dev.wheels import build_all, build_row_reader, build_sdists
from tests.programs import output_of

OLD_GLIBC = (2, 28)

READ_ROWS = """
import hudi_index_parquet, numpy, pyarrow, pyarrow.parquet
table = pyarrow.table({"msg": ["Summer is coming", "Buying a new car"], "n": [1, 2]})
pyarrow.parquet.write_table(table, "messages.parquet")
rows = numpy.array([1])
found, _ = hudi_index_parquet.read_rows("messages.parquet", rows, ["msg"])
print(found.to_pydict())
"""
FOUND = "{'msg': ['Buying a new car']}\n"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels that `make wheels` builds, by distribution name."""
    built = build_all(tmp_path_factory.mktemp("dist"), Steps(tmp_path_factory.mktemp("log")))
    return {wheel.name.partition("-")[0]: wheel for wheel in built}


class Host:
    """A machine with a Python environment and a JDK, and without any program on PATH."""

    def __init__(self, folder: Path, jdk: Path) -> None:
        self._bin = folder / "environment" / "bin"
        no_programs = folder / "no programs"
        no_programs.mkdir()
        self._environ = {**generous(), "PATH": str(no_programs), "JAVA_HOME": str(jdk)}
        for name in ("VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH", "CC", "CXX"):
            self._environ.pop(name, None)
        subprocess.run([VENV / "bin" / "python", "-m", "venv", self._bin.parent], check=True)

    def install(self, *wheels: Path) -> None:
        uv = VENV / "bin" / "uv"
        command: list[str | Path] = [self._bin / "python", "-m", "pip", "install"]
        if uv.exists():
            command = [uv, "pip", "install", "--python", self._bin / "python"]
        command += ["--only-binary", ":all:", "--constraint", CONSTRAINTS / "dev.txt", *wheels]
        subprocess.run(command, env=self._environ, check=True)

    def python(self, program: str, cwd: Path) -> str:
        """The output of a program."""
        return output_of([self._bin / "python", "-c", program], self._environ, cwd=cwd)


@pytest.fixture(scope="module")
def host(
    wheels: dict[str, Path], moved_jdk: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("host")
    host = Host(folder, moved_jdk)
    # Airflow is large, and test_way_in installs its provider.
    host.install(*(wheel for name, wheel in wheels.items() if not name.startswith("airflow")))
    yield host
    shutil.rmtree(folder)  # half a gigabyte, maybe in memory


def test_there_are_six_wheels_of_which_those_with_libraries_have_a_platform(
    wheels: dict[str, Path],
) -> None:
    tags = {name: wheel.stem.split("-", 2)[2] for name, wheel in wheels.items()}

    assert set(tags) == {
        "hudi_index_service",
        "hudi_index_pylucene",
        "hudi_index_parquet",
        "hudi_index_spark",
        "hudi_index_hbase",
        "airflow_provider_hudi_index",
    }
    for name in tags.keys() - {"hudi_index_parquet", "hudi_index_pylucene"}:
        assert tags[name] == "py3-none-any"
    assert tags["hudi_index_parquet"].startswith("cp311-abi3-manylinux_2_")
    assert tags["hudi_index_pylucene"].startswith("cp311-cp311-manylinux_2_")
    assert oldest_glibc(wheels["hudi_index_pylucene"]) <= OLD_GLIBC


def oldest_glibc(wheel: Path) -> tuple[int, int]:
    """The oldest C library that the wheel's tag allows."""
    found = re.search(r"manylinux_(\d+)_(\d+)_\w+$", wheel.stem)
    assert found, wheel.name
    return int(found[1]), int(found[2])


@pytest.mark.slow
@pytest.mark.timeout(1800)  # five minutes of one processor
def test_released_row_reader_runs_on_older_linux(tmp_path: Path) -> None:
    steps = Steps(tmp_path / "log")
    wheel = build_row_reader(machine(), tmp_path, Environment(VENV, steps, "uv"), steps)

    assert oldest_glibc(wheel) == OLD_GLIBC
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "package")
    (library,) = (tmp_path / "package").rglob("*.so")
    needed = subprocess.run(
        ["readelf", "--version-info", library], capture_output=True, text=True, check=True
    ).stdout
    versions = {tuple(map(int, each)) for each in re.findall(r"GLIBC_(\d+)\.(\d+)", needed)}
    assert max(versions) <= OLD_GLIBC
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "package")}
    python = VENV / "bin" / "python"
    assert output_of([python, "-c", READ_ROWS], environ, cwd=tmp_path) == FOUND


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("hudi_index_service", {"LICENSE", "NOTICE"}),
        ("hudi_index_spark", {"LICENSE", "NOTICE"}),
        ("hudi_index_hbase", {"LICENSE", "NOTICE"}),
        ("airflow_provider_hudi_index", {"LICENSE", "NOTICE"}),
        ("hudi_index_parquet", {"LICENSE", "NOTICE", "CRATES.txt"}),
        ("hudi_index_pylucene", {"LICENSE.txt", "NOTICE.txt", "NOTICE"}),
    ],
)
def test_wheels_contain_the_licenses_of_what_is_in_them(
    wheels: dict[str, Path], name: str, texts: set[str]
) -> None:
    with zipfile.ZipFile(wheels[name]) as archive:
        files = [each for each in archive.namelist() if not each.endswith("/")]
    found = {Path(each).name for each in files if "/licenses/" in each}
    assert found == texts


def test_service_contains_the_dag_and_the_configs(host: Host, tmp_path: Path) -> None:
    program = """if True:
        from hudi_index_service import files
        for name in ("DAG", "SERVICE_SETTINGS", "WRITE_OPTIONS", "ALERT_RULES", "DASHBOARD"):
            print(len(getattr(files, name).read_bytes()))
    """
    configs = ("service.yaml", "hudi-write.properties", "prometheus/alerts.yaml")
    sources = (
        "dags/hudi_index.py",
        *(f"configs/{each}" for each in (*configs, "grafana/dashboard.json")),
    )
    sizes = [str((ROOT / each).stat().st_size) for each in sources]
    assert host.python(program, tmp_path).split() == sizes


@pytest.fixture(scope="module")
def sdists(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdists by the name in their file names."""
    folder = tmp_path_factory.mktemp("sdists")
    built = build_sdists(folder, Steps(folder / "log"))
    return {path.name.partition("-")[0]: path for path in built}


@pytest.mark.slow
@pytest.mark.parametrize(
    "project",
    [PARQUET_ROWS, PYLUCENE, SPARK_RULE, HBASE, AIRFLOW],
    ids=lambda each: each.distribution,
)
def test_sdist_holds_all_that_the_wheel_is_built_from(
    sdists: dict[str, Path], project: Project
) -> None:
    """A set-up builds from a copy of just these files, so that what holds them builds, too."""
    with tarfile.open(sdists[project.distribution.replace("-", "_")]) as archive:
        members = {each.name.partition("/")[2]: each for each in archive.getmembers()}

    for path in project.inputs():
        assert members[path.relative_to(project.folder).as_posix()].isreg()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["hudi_index_service", "hudi_index_spark", "hudi_index_hbase", "airflow_provider_hudi_index"],
)
def test_sdist_builds_its_wheel(sdists: dict[str, Path], tmp_path: Path, name: str) -> None:
    environment = Environment(VENV, Steps(tmp_path / "log"), "uv")

    environment.build_wheel(sdists[name], tmp_path, log=name, constrained=True)

    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {"LICENSE", "NOTICE"} <= {Path(each).name for each in archive.namelist()}


def test_spark_rule_is_compiled_against_the_spark_that_is_installed() -> None:
    project = tomllib.loads((SPARK_RULE.folder / "pyproject.toml").read_text())
    hook = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    assert set(hook["jars"]) < set((CONSTRAINTS / "demo.txt").read_text().splitlines())


def test_list_of_crates_has_the_versions_that_are_compiled() -> None:
    manifest = tomllib.loads((PARQUET_ROWS.folder / "Cargo.toml").read_text())
    listed = crate_licenses.LIST.read_text()
    for name, wanted in manifest["workspace"]["dependencies"].items():
        version = wanted if isinstance(wanted, str) else wanted["version"]
        assert f"\n{name} {version.removeprefix('=')}: " in listed, "run dev.crate_licenses"


def test_lucene_runs_on_the_jdk_in_java_home(host: Host, moved_jdk: Path, tmp_path: Path) -> None:
    program = """if True:
        import lucene
        lucene.initVM(vmargs=["-Xrs"])
        from org.apache.lucene.util import Version
        print(Version.LATEST)
        with open("/proc/self/maps") as maps:
            paths = {line.split(maxsplit=5)[5].strip() for line in maps if "libjvm" in line}
        print(*paths, sep=chr(10))
    """
    version, *libraries = host.python(program, tmp_path).splitlines()

    assert version == "9.12.3"
    assert libraries == [str(moved_jdk / "lib" / "server" / "libjvm.so")]


def test_row_reader_reads_rows_by_position(host: Host, tmp_path: Path) -> None:
    assert host.python(READ_ROWS, tmp_path) == FOUND


def test_jars_for_spark_have_the_class_that_is_named(host: Host, tmp_path: Path) -> None:
    program = """if True:
        import hudi_index_spark, zipfile
        for scala in hudi_index_spark.SCALA:
            with zipfile.ZipFile(hudi_index_spark.jar_path(scala)) as jar:
                print(hudi_index_spark.EXTENSIONS.replace(".", "/") + ".class" in jar.namelist())
                print(jar.read("hudiindex/spark/versions.properties").decode().split())
    """
    assert host.python(program, tmp_path).splitlines() == [
        *("True", "['spark=3.5', 'scala=2.12']"),
        *("True", "['spark=3.5', 'scala=2.13']"),
    ]


def test_service_finds_its_index_types(host: Host, tmp_path: Path) -> None:
    program = """if True:
        from hudi_index_service.index.factory import index_type, index_type_names
        index_type("hbase").check_runtime()
        print(*(type(index_type(name)).__name__ for name in index_type_names()))
    """
    assert host.python(program, tmp_path) == "BTreeIndexType HBaseIndexType LuceneIndexType\n"


@pytest.mark.parametrize("name", ["hudi_index_pylucene", "hudi_index_parquet"])
def test_libraries_contain_no_path_of_the_build_machine(
    wheels: dict[str, Path], tmp_path: Path, name: str
) -> None:
    with zipfile.ZipFile(wheels[name]) as archive:
        archive.extractall(tmp_path)
    libraries = [path for path in tmp_path.rglob("*.so*") if path.is_file()]
    assert libraries

    for library in libraries:
        dynamic = subprocess.run(
            ["readelf", "--dynamic", library], capture_output=True, text=True, check=True
        ).stdout
        assert "RPATH" not in dynamic
        assert "RUNPATH" not in dynamic
        assert str(find_jdk().home).encode() not in library.read_bytes()
