"""The archive of Lucene's Java classes: processes use it if it fits, and say nothing if not."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from errno import ENOSPC, EROFS
from pathlib import Path
from typing import NoReturn
from zipfile import ZipFile

import lucene
import pytest

from hudi_index_service.errors import IndexServiceError, PermissionDenied, StorageFailed
from hudi_index_service.index.lucene import class_archive, jvm
from tests.programs import ended

QUERY = """
import sys
from pathlib import Path
import pyarrow as pa
from hudi_index_service.index.factory import index_type
from hudi_index_service.predicate import parse_predicate
from tests.index.conftest import building

data = pa.table({"c": ["a", "b", "a"]})
indexed = building(index_type("lucene"), Path(sys.argv[1]))(data)
print(list(indexed.reader.row_ids(parse_predicate("c = 'a'", data.schema))))
"""

ARCHIVED, IN_A_JAR = "shared objects file (top)", "file:"


class Installation:
    """A copy of the installed PyLucene, with an archive of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive = folder / "hudi_index_pylucene.jsa"
        self.jar = folder / "lucene" / "hudiindex.jar"
        shutil.copytree(Path(lucene.__file__).parent, folder / "lucene")

    def prepare(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Makes the archive."""
        path = {"PYTHONPATH": str(self.folder)}
        return ended("hudi_index_service", "prepare", module=True, **path, **environment)

    def sources_of_classes(self, work: Path) -> set[str]:
        """Where a process that builds and reads an index takes Lucene's classes from, apart from
        those that its jar has for later Javas only, which Java does not archive. Requires that its
        answer is right."""
        log = work / "classes"
        options = f"-Xlog:class+load:file={log}"
        done = ended(QUERY, work, PYTHONPATH=str(self.folder), JAVA_TOOL_OPTIONS=options)
        assert done.stdout == "[0, 2]\n", done.stderr
        assert done.stderr == f"Picked up JAVA_TOOL_OPTIONS: {options}\n"
        loaded = re.findall(r"\] (org\.apache\.lucene\.\S+) source: (.*)", log.read_text())
        of_later_javas = self._classes_of_later_javas()
        sources = [source for name, source in loaded if name not in of_later_javas]
        known = (ARCHIVED, IN_A_JAR)
        return {each for source in sources for each in known if source.startswith(each)}

    def _classes_of_later_javas(self) -> set[str]:
        (jar,) = (self.folder / "lucene").glob("lucene-core-*.jar")
        with ZipFile(jar) as content:
            entries = content.namelist()
        found = [re.fullmatch(r"META-INF/versions/\d+/(.+)\.class", each) for each in entries]
        return {each[1].replace("/", ".") for each in found if each}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An installation after `hudi-index prepare`."""
    installation = Installation(tmp_path_factory.mktemp("prepared"))
    done = installation.prepare()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{installation.archive}: Lucene's Java classes, ")
    return installation


@pytest.fixture
def archive(prepared: Installation) -> Iterator[Path]:
    """The archive of `prepared`, which the test may change."""
    content = prepared.archive.read_bytes()
    yield prepared.archive
    prepared.archive.write_bytes(content)


def test_only_the_archive_is_added_to_the_installation(prepared: Installation) -> None:
    names = sorted(path.name for path in prepared.folder.iterdir())
    assert names == ["hudi_index_pylucene.jsa", "lucene"]


def test_all_of_lucene_comes_from_the_archive(prepared: Installation, tmp_path: Path) -> None:
    assert prepared.sources_of_classes(tmp_path) == {ARCHIVED}


@pytest.mark.slow
def test_without_an_archive_classes_come_from_the_jars(tmp_path: Path) -> None:
    assert Installation(tmp_path / "new").sources_of_classes(tmp_path) == {IN_A_JAR}


@pytest.mark.slow
def test_an_archive_of_other_jars_is_ignored(prepared: Installation, tmp_path: Path) -> None:
    copied = Installation(tmp_path / "copied")
    os.utime(copied.jar, (0, 0))  # later Javas take equal ones from whatever folder
    shutil.copy(prepared.archive, copied.archive)
    assert copied.sources_of_classes(tmp_path) == {IN_A_JAR}


@pytest.mark.slow
def test_a_changed_jar_is_used_and_a_new_archive_fits(
    prepared: Installation, tmp_path: Path
) -> None:
    os.utime(prepared.jar, (0, 0))
    assert prepared.sources_of_classes(tmp_path) == {IN_A_JAR}

    assert prepared.prepare().returncode == 0
    again = tmp_path / "again"
    again.mkdir()
    assert prepared.sources_of_classes(again) == {ARCHIVED}


def emptied(content: bytes) -> bytes:
    return b""


def cut_short(content: bytes) -> bytes:
    return content[: len(content) // 2]


def changed_within(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes(1000) + content[middle + 1000 :]


def nothing_of_java(content: bytes) -> bytes:
    return content[::-1]


@pytest.mark.parametrize("damage", [emptied, cut_short, changed_within, nothing_of_java])
def test_a_damaged_archive_is_not_given_to_java(
    damage: Callable[[bytes], bytes], archive: Path
) -> None:
    assert jvm.shared_classes(archive)

    archive.write_bytes(damage(archive.read_bytes()))
    assert jvm.shared_classes(archive) == ()


@pytest.mark.slow
def test_what_is_no_archive_of_java_is_ignored(
    prepared: Installation, archive: Path, tmp_path: Path
) -> None:
    jvm.store_classes(b"not Java's" * 10_000, archive)
    assert prepared.sources_of_classes(tmp_path) == {IN_A_JAR}


def test_a_java_that_writes_no_archive_is_reported(prepared: Installation, archive: Path) -> None:
    before = archive.read_bytes()
    done = prepared.prepare(JAVA_TOOL_OPTIONS="-Xshare:off")

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("NATIVE_MODULE_MISSING: Java wrote no archive")
    assert "Use a JDK with an archive of its own classes" in done.stderr
    assert archive.read_bytes() == before


@pytest.mark.parametrize(("errno", "error"), [(EROFS, PermissionDenied), (ENOSPC, StorageFailed)])
def test_a_folder_that_cannot_be_written_is_reported(
    errno: int, error: type[IndexServiceError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> NoReturn:
        raise OSError(errno, os.strerror(errno))

    monkeypatch.setattr(class_archive, "TemporaryDirectory", refuse)

    with pytest.raises(error, match=os.strerror(errno)) as raised:
        class_archive.make_class_archive()
    assert raised.value.remedy.startswith("Run it as the user who installed hudi-index-pylucene")
