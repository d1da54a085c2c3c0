"""Building, watching and cancelling from the command line: what is printed, and the exit status."""

import json
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_index_service import open_table
from hudi_index_service.build.progress import BuildProgress
from hudi_index_service.build.record import BuildRecords
from hudi_index_service.build.run import Details
from hudi_index_service.cli import main
from hudi_index_service.storage import Storage
from tests.hudi_tables import (
    NO_METADATA_TABLE,
    hudi_options,
    numbered_rows,
    run_clustering,
    write,
)

Run = Callable[..., str]


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions, an index, nothing built."""
    path = tmp_path_factory.mktemp("operating") / "table"
    options = hudi_options("operating", partition_column="dt", **NO_METADATA_TABLE)
    write(numbered_rows(spark, 0, 20).coalesce(1), path, options, "bulk_insert")
    open_table(path).create_index("by_amount", ["amount"])
    return path


@pytest.fixture
def table(written: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(written, tmp_path / "table"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command, and returns its output and what stands in its errors."""

    def run_in_process(*arguments: str, status: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["hudi-index", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert (ended.value.code or 0) == status, printed.err
        return printed.out + printed.err

    return run_in_process


def test_a_dry_run_a_budgeted_build_and_the_rest(table: str, run: Run) -> None:
    build = ("build", table, "--strategy", "all")
    said = run(*build, "--dry-run")
    assert "lucene  2026-01-02/" in said
    assert "Would build 2 of 2 due entries from " in said
    assert "time: unknown, size: unknown." in said

    said = run(*build, "--max-files", "1")
    assert "Build 000001 stopped: 2 due, 1 built, 0 failed" in said
    assert "Budget spent: files; 1 left for the next build." in said

    told = json.loads(run(*build, "--dry-run", "-o", "json"))
    assert (told["build"], told["due"], told["estimate"]["builds"]) == (None, 1, ["000001"])
    assert told["entries"][0]["status"] == "due"

    limits = ("--max-bytes", "1", "--max-minutes", "5", "--requests-per-second", "1000")
    told = json.loads(run(*build, *limits, "-o", "json"))
    assert (told["build"], told["state"], told["built"]) == ("000002", "finished", 1)
    assert told["entries"][0]["status"] == "built"


def test_a_dry_run_follows_the_keys_and_creates_nothing(table: str, run: Run) -> None:
    build = ("build", table, "--hoodie-conf", "hoodie.index.strategy=all", "-o", "json")
    dry = json.loads(run(*build, "--dry-run"))
    more = ("--hoodie-conf", "hoodie.index.columns=msg")
    run(*build, *more, "--dry-run")
    assert [each.name for each in open_table(table).indexes()] == ["by_amount"]
    wrong = ("--hoodie-conf", "hoodie.index.colums=msg", "--dry-run")
    assert "There is no key hoodie.index.colums" in run(*build, *wrong, status=1)

    told = json.loads(run(*build))
    assert (told["due"], told["strategy"]) == (dry["due"], dry["strategy"]) == (2, "all")
    assert told["built"] == 2


def test_partitions(table: str, run: Run) -> None:
    build = ("build", table, "--strategy", "all", "--dry-run", "-o", "json")
    due = json.loads(run(*build, "--partition", "*-02"))["entries"]
    assert [entry["path"].split("/")[0] for entry in due] == ["2026-01-02"]
    said = run(*build, "--partition", "2027-*", status=1)
    assert "CONFIG_INVALID: The table has no base files in a partition '2027-*'." in said
    assert "'2026-01-01', '2026-01-02'" in said


def test_status_and_its_alerts(table: str, run: Run) -> None:
    run("build", table, "--strategy", "all", "--max-files", "1")
    told = json.loads(run("status", table, "-o", "json"))
    assert (told["indexes"][0]["coverage"], told["builds"][0]["state"]) == (0.5, "stopped")
    fine = ("--max-lag", "0", "--max-lag-instants", "0", "--min-coverage", "50")
    run("status", table, *fine, "--max-outliving", "0", "--failed-build")

    said = run("status", table, "--min-coverage", "50.5", status=3)
    assert "ALERT: Index by_amount (lucene) covers 1 of 2 base files, less than 50.5%." in said
    told = json.loads(run("status", table, "--min-coverage", "99", "-o", "json", status=3))
    assert len(told["alerts"]) == 1
    assert "000001" in said


def test_an_index_that_falls_behind_alerts(spark: SparkSession, table: str, run: Run) -> None:
    run_clustering(spark, table)
    run("status", table, "--max-lag", "36000", "--max-lag-instants", "1")

    said = run("status", table, "--max-lag", "0", "--max-lag-instants", "0", status=3)
    assert re.search(r"ALERT: Index by_amount \(lucene\) is \d+ s behind, more than 0\.", said)
    assert "ALERT: Index by_amount (lucene) is 1 instants behind, more than 0." in said


def test_what_a_build_leaves_uncovered_is_said(table: str, run: Run) -> None:
    said = run("build", table)
    assert "0 due, 0 built" in said
    assert "Not indexed and not due: 2 of 2 base files for by_amount (lucene)." in said
    assert f"`hudi-index build {table} --strategy all` indexes them." in said
    assert "Not indexed and not due" in run("status", table)
    (hint,) = json.loads(run("build", table, "-o", "json"))["hints"]
    assert "--strategy all" in hint

    run("build", table, "--strategy", "all")
    assert "Not indexed" not in run("build", table) + run("status", table)

    run("drop", table, "by_amount")
    assert "The table has no index: `hudi-index create" in run("build", table)


def test_ctrl_c_ends_a_build_orderly(table: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pressed = []

    @contextmanager
    def presses_it_once(what: str) -> Iterator[Details]:
        def details(now: BuildProgress) -> None:
            if now.files_done and not pressed:
                pressed.append(now)
                signal.raise_signal(signal.SIGINT)

        yield details

    module = sys.modules["hudi_index_service.cli.build"]  # whose name in the package is a command
    monkeypatch.setattr(module, "progress_bar", presses_it_once)

    said = run("build", table, "--strategy", "all", status=130)

    assert "Stopping" in said
    (record,) = open_table(table).builds()
    (index,) = open_table(table).status()
    built = record.to_dict()["built"]
    assert built == index.covered
    assert f"Build 000001 cancelled (interrupted): 2 due, {built} built" in said
    assert said.endswith("Interrupted.\n")


def test_failures_are_shown_and_the_build_fails(table: str, run: Run) -> None:
    (base_file,) = Path(table, "2026-01-01").glob("*.parquet")
    base_file.write_bytes(b"PAR1" + b"\0" * (base_file.stat().st_size - 8) + b"PAR1")

    said = run("build", table, "--strategy", "all", status=1)
    assert "Build 000001 failed: 2 due, 1 built, 1 failed" in said
    assert "BUILD_FAILED" in said

    said = run("status", table, "--failed-build", status=3)
    assert f"Failed 1 times: 2026-01-01/{base_file.name}: " in said
    assert "ALERT: Build 000001 failed." in said


def test_a_running_build_is_shown_and_cancelled(table: str, run: Run) -> None:
    assert "No build is running." in run("cancel", table)
    running = BuildRecords(Storage(table), stale_seconds=60).start({"strategy": "all", "due": 2})
    running.beat()
    assert "Build 000001 runs and has not told yet how far it is." in run("status", table)

    assert "Build 000001 was asked to give up." in run("cancel", table)
    assert running.cancel_requested()


@pytest.mark.parametrize("limit", ["--max-files", "--max-bytes", "--max-minutes"])
def test_a_budget_of_nothing_is_refused(limit: str, table: str, run: Run) -> None:
    assert "CONFIG_INVALID: The budget's" in run("build", table, limit, "0", status=1)
