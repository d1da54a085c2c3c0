"""Hudi 0.15 appends to log files in HDFS: a file of the same name grows with each commit."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dev import jars
from dev.paths import ROOT
from hudi_index_service.config import Settings
from hudi_index_service.storage.store import Storage
from tests.indexed import indexed
from tests.same_rows import assert_same_rows


@pytest.fixture
def write_next(storage: Storage, tmp_path: Path) -> Iterator[Callable[[], pa.Table]]:
    """Takes the writer's next step; returns the table's rows as Spark then reads them."""
    bundle = jars.fetch(jars.hudi_bundle("0.15.0"))
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.hdfs.appending", bundle, storage.uri, tmp_path],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "TZ": "UTC"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def step() -> pa.Table:
        writer.stdin.write("next\n")
        writer.stdin.flush()
        line = next(each for each in writer.stdout if each.startswith("written"))
        return pq.read_table(tmp_path / f"{line.split()[1]}.parquet")

    yield step
    writer.stdin.close()
    writer.stdout.close()
    assert writer.wait(60) == 0


def test_answers_are_sparks_while_a_log_file_grows(
    write_next: Callable[[], pa.Table], storage: Storage, settings: Settings
) -> None:
    write_next()
    table = indexed(storage.uri, ["amount", "ts"], settings=settings)
    sizes = []
    for commit in (1, 2, 3):
        rows = write_next()
        (log_file,) = (each for each in storage.files_in() if ".log." in each.path)
        sizes.append(log_file.size)
        for use_index in ("auto", "never"):
            assert_same_rows(table.scan(use_index=use_index).to_arrow(), rows)
            for number in range(10):
                found = table.scan(f"amount = {15 + 3 * number + commit}", use_index=use_index)
                expected = rows.filter(pa.compute.equal(rows["amount"], 15 + 3 * number + commit))
                assert_same_rows(found.to_arrow(), expected)
    assert sizes == sorted(set(sizes)), "the only log file has grown"
