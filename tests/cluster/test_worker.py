"""A cluster worker's part, in a separate process: it gets a task as pickled by the driver, and has
none of the packages that `hudi-index pack` leaves out. test_standalone.py starts a real cluster.
"""

import json
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from pyspark import cloudpickle

from hudi_index_service.build.entry.task import TaskStatus
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.storage.store import Storage
from hudi_index_service.submit.pack import needed_distributions
from tests.build.base_files import build_task, numbered_rows, write_base_file

WORKER = """
import json, pickle, sys
from importlib.abc import MetaPathFinder

class NotPacked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in left_out:
            raise ModuleNotFoundError(f"{name} is not in the packed environment")

left_out = frozenset(json.loads(sys.argv[1]))
sys.meta_path.insert(0, NotPacked())
from hudi_index_service.build.entry.task import run_task
outcome = run_task(pickle.load(sys.stdin.buffer))
sys.stdout.buffer.write(pickle.dumps(outcome))
"""


def left_out() -> list[str]:
    """The top-level modules of installed distributions that are not packed."""
    packed = {each.name.lower().replace("_", "-") for each in needed_distributions()}
    return sorted(
        module
        for module, distributions in packages_distributions().items()
        if not packed & {name.lower().replace("_", "-") for name in distributions}
    )


def test_task_needs_only_packed_modules(tmp_path: Path) -> None:
    assert {"pyspark", "py4j", "pytest", "airflow"} <= set(left_out())
    storage, rows = Storage(tmp_path), numbered_rows(500)
    base_file = write_base_file(storage, rows)
    task = build_task(storage, base_file, rows.schema, part_bytes=2**30)

    done = subprocess.run(
        [sys.executable, "-c", WORKER, json.dumps(left_out())],
        input=cloudpickle.dumps(task),
        capture_output=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr.decode()
    outcome = cloudpickle.loads(done.stdout)
    assert (outcome.status, outcome.error) == (TaskStatus.BUILT, None)
    entry = EntryListing(storage, "lucene", fresh=True).find(base_file)
    assert entry.manifest.base_file.path == base_file.path
