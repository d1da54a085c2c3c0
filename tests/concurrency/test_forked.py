"""A process that was forked after log files were merged uses neither hudi-rs nor its parent's
folders; it reads base files. Of object stores: `tests/remote/test_s3_storage.py`."""

import subprocess
from pathlib import Path

import pytest

from hudi_index_service import open_table
from hudi_index_service.storage.temporary_folder import OwnedFolder
from tests.forked_child import status_of_child
from tests.golden.table import Golden
from tests.programs import Running, ended

pytestmark = pytest.mark.fast


def test_a_child_is_refused_at_once_where_log_files_are_merged(
    golden: Golden, tmp_path: Path
) -> None:
    path = golden("half_compacted").put(tmp_path)
    with open_table(path) as table:
        rows = table.scan("amount >= 0").to_arrow().num_rows
        assert status_of_child(lambda: open_table(path).scan("amount >= 0").to_arrow()) == 2
        assert table.scan("amount >= 0").to_arrow().num_rows == rows, "the parent goes on"


def test_a_child_reads_base_files(golden: Golden, tmp_path: Path) -> None:
    path = golden("colours_in_two_partitions").put(tmp_path)

    def expect(rows: int) -> None:
        scan = open_table(path).scan("size >= 500")
        if not scan.to_arrow().num_rows == scan.count() == rows:
            raise AssertionError("the child reads other rows")

    with open_table(path) as table:
        rows = table.scan("size >= 500").to_arrow().num_rows
        assert status_of_child(lambda: expect(rows)) == 0
        assert status_of_child(lambda: expect(rows + 1)) != 0
        assert status_of_child(lambda: open_table(path).status()) == 0
        assert table.scan("size >= 500").count() == rows, "the parent goes on"


def test_a_child_does_not_remove_its_parents_folder(tmp_path: Path) -> None:
    folder = OwnedFolder("hudi-index-merge-")
    assert status_of_child(folder.close) == 0
    assert Path(folder.name).is_dir()
    folder.close()
    assert not Path(folder.name).exists()


def test_a_folder_that_is_gone_already_is_no_error(tmp_path: Path) -> None:
    folder = OwnedFolder("hudi-index-merge-")
    Path(folder.name).rmdir()
    folder.close()


def test_a_child_that_exits_does_not_remove_its_parents_folder(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from hudi_index_service.storage.temporary_folder import OwnedFolder\n"
        "folder = OwnedFolder('hudi-index-merge-')\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit(0)\n"
        "os.waitpid(child, 0)\n"
        "sys.exit(0 if Path(folder.name).is_dir() else 3)\n"
    )
    assert ended(program, TMPDIR=str(tmp_path)).returncode == 0
    assert list(tmp_path.iterdir()) == [], "the parent removes it"


HOLD_A_FOLDER = """
import sys
from hudi_index_service.storage.temporary_folder import OwnedFolder
folder = OwnedFolder("hudi-index-merge-")
print(folder.name, flush=True)
sys.stdin.read()
"""


def test_what_sigterm_leaves_is_removed_by_the_next_process(
    tmp_path: Path, running: Running
) -> None:
    def start() -> tuple[subprocess.Popen[str], Path]:
        process = running(HOLD_A_FOLDER, TMPDIR=str(tmp_path))
        return process, Path(process.stdout.readline().strip())

    others = tmp_path / "hudi-index-demo-x"
    others.mkdir()
    killed, left = start()
    living, in_use = start()
    killed.terminate()
    killed.wait()
    assert left.is_dir()
    last, own = start()
    assert set(tmp_path.iterdir()) == {others, in_use, own}
    for process in (living, last):
        process.communicate("")
    assert set(tmp_path.iterdir()) == {others}
