"""Memory of workers: too little is refused by name before anything runs; just enough suffices."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build.entry.worker import (
    RESERVED_MB,
    RESERVED_WITHOUT_JVM_MB,
    RESIDENT_MB,
    Needs,
    check_address_space,
    check_held,
)
from hudi_index_service.errors import WorkerMemoryTooSmall
from hudi_index_service.process import control_group_limits
from tests.programs import ended, lines_of

HEAP_MB = 256

IN_A_WORKER = """
import resource, sys
import pyarrow as pa
from hudi_index_service.build.entry.worker import prepare_worker
limit = int(sys.argv[1]) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
prepare_worker(int(sys.argv[2]), runs_jvm=sys.argv[3:] == ["jvm"])
print(pa.default_memory_pool().backend_name)
"""

WITHOUT_JVM = """
import sys
from hudi_index_service import open_table

with open_table(sys.argv[1]) as table:
    for each in table.indexes():
        table.drop_index(each.name)
    table.create_index("amounts", ["amount"], using="btree")
    table.build(strategy="all").raise_for_failures()
    print(table.scan("amount < 30", use_index="require").count(), "lucene" in sys.modules)
"""

ON_SPARK = """
import json, resource, sys
from pyspark.sql import SparkSession
from hudi_index_service import open_table
from hudi_index_service.errors import WorkerMemoryTooSmall

path, memory, cores = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.executor.pyspark.memory", memory)
    .config("spark.executor.cores", cores)
    .getOrCreate()
)
table = open_table(path, spark=spark)
try:
    build = table.build(strategy="all").raise_for_failures()
    found = {"built": len(build.built)}
except WorkerMemoryTooSmall as refusal:
    found = {"refused": str(refusal)}
limit = spark.sparkContext.parallelize([0], 1).map(
    lambda _: resource.getrlimit(resource.RLIMIT_AS)[0] >> 20
)
print(json.dumps({**found, "limit_mb": limit.first()}))
"""


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    heap = {"HUDI_INDEX_LUCENE__HEAP_MB": str(HEAP_MB)}
    return ended(script, *arguments, PYSPARK_PYTHON=sys.executable, **heap)


def on_spark(path: str, memory: str, cores: int) -> dict[str, object]:
    done = run(ON_SPARK, path, memory, str(cores))
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_spark_workers_with_too_little_memory_are_refused_before_a_task_runs(
    cow: IndexedTable,
) -> None:
    # Two cores share the memory: each worker gets 900 MiB.
    found = on_spark(cow.uri, "1800m", cores=2)

    assert found == {
        "refused": "WORKER_MEMORY_TOO_SMALL: A Python worker may reserve 900 MiB (RLIMIT_AS; Spark "
        "sets it to spark.executor.pyspark.memory divided by spark.executor.cores), but needs "
        "1536 MiB: lucene.heap_mb of 256 and 1280 more. Set spark.executor.pyspark.memory to "
        "1536m or more for each core, leave it out, or lower lucene.heap_mb "
        "(for the workers too: HUDI_INDEX_LUCENE__HEAP_MB).",
        "limit_mb": 900,
    }
    assert cow.builds()[0].state == "failed"
    assert not Path(cow.uri, ".hoodie/.index/lucene").exists()


@pytest.mark.slow
def test_spark_workers_with_just_enough_memory_build(cow: IndexedTable) -> None:
    found = on_spark(cow.uri, f"{HEAP_MB + RESERVED_MB}m", cores=1)

    assert found == {"built": 2, "limit_mb": HEAP_MB + RESERVED_MB}
    table = open_table(cow.uri)
    assert table.scan("amount < 30", use_index="require").count() == 10


def test_a_worker_checks_its_own_limit() -> None:
    refused = run(IN_A_WORKER, str(HEAP_MB + RESERVED_MB - 1), "16", "jvm")
    assert refused.returncode == 1
    assert "WORKER_MEMORY_TOO_SMALL: A Python worker may reserve 1535 MiB" in refused.stderr

    allowed = run(IN_A_WORKER, str(HEAP_MB + RESERVED_MB), "16", "jvm")
    assert allowed.stdout == "system\n", allowed.stderr


def test_a_worker_without_a_jvm_needs_no_heap() -> None:
    least = 16 + RESERVED_WITHOUT_JVM_MB
    refused = run(IN_A_WORKER, str(least - 1), "16")
    assert f"needs {least} MiB: build.memory_mb of 16 and" in refused.stderr
    assert "HUDI_INDEX_BUILD__MEMORY_MB" in refused.stderr

    allowed = run(IN_A_WORKER, str(least), "16")
    assert allowed.stdout == "system\n", allowed.stderr


def test_a_btree_is_built_and_queried_without_a_jvm(cow: IndexedTable) -> None:
    done = run(WITHOUT_JVM, cow.uri)

    assert done.stdout == "10 False\n", done.stderr


def test_limits_are_compared_with_the_sum_of_all_needs() -> None:
    heap, writer = Needs.of_heap(768), Needs.of_writer(384)
    check_address_space(768 + RESERVED_MB, heap)
    with pytest.raises(WorkerMemoryTooSmall, match="needs 2048"):
        check_address_space(768 + RESERVED_MB - 1, heap)
    check_held(768 + RESIDENT_MB, heap)
    with pytest.raises(WorkerMemoryTooSmall, match=r"limit of 1000 MiB.* needs 1068"):
        check_held(1000, heap)
    check_held(1000, writer)
    with pytest.raises(WorkerMemoryTooSmall, match=r"needs 684 MiB: build.memory_mb of 384"):
        check_held(683, writer)


def test_container_limits_are_read_from_both_cgroup_versions(tmp_path: Path) -> None:
    groups, mount = tmp_path / "cgroup", tmp_path / "mount"

    def limit(path: str, text: str) -> None:
        file = mount / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    groups.write_text("4:cpu,memory:/job/7\n1:cpu:/other\n0::/scope\n")
    limit("memory/job/7/memory.limit_in_bytes", "9223372036854771712")
    limit("memory/job/memory.limit_in_bytes", "3000")
    limit("scope/memory.max", "max")
    limit("memory.max", "2000")
    limit("other/memory.max", "1")

    assert min(control_group_limits(groups, mount)) == 2000
    assert list(control_group_limits(tmp_path / "none", mount)) == []


def test_imports_take_nothing_from_arrows_allocator() -> None:
    """The default one reserves 1 GiB of addresses at first use: `prepare_worker` comes first."""
    program = (
        "import pyarrow as pa\n"
        "import hudi_index_service, hudi_index_service.build.entry.task\n"
        "import hudi_index_service.build.spark, hudi_index_service.read.spark.slice_task\n"
        "import hudi_index_service.read.keys.spark, hudi_index_service.index.lucene.reader\n"
        "print(pa.default_memory_pool().max_memory())\n"
    )
    assert lines_of(program) == ["0"]
