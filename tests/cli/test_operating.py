"""Building, watching and cancelling on the command line: what is printed, and the exit status."""

import json
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hudi_index_service import open_table
from hudi_index_service.build.run import Details
from hudi_index_service.cli import main
from hudi_index_service.index.metadata.build_records import BuildProgress, BuildRecords
from hudi_index_service.storage.store import Storage
from tests.golden.table import Golden

Run = Callable[..., str]


@pytest.fixture(scope="module")
def written(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions, an index, and no entries."""
    path = golden("two_partitions").put(tmp_path_factory.mktemp("operating"), "written")
    open_table(path).create_index("by_amount", ["amount"])
    return path


@pytest.fixture
def table(written: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(written, tmp_path / "table"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command, and returns both its output and its errors."""

    def run_in_process(*arguments: str, status: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        assert (ended.value.code or 0) == status, captured.err
        return captured.out + captured.err

    return run_in_process


def test_a_budgeted_build_leaves_the_rest_to_the_next(table: str, run: Run) -> None:
    build = ("build", table, "--strategy", "all")
    printed = run(*build, "--dry-run")
    assert "lucene  2026-01-02/" in printed
    assert "Would build 2 of 2 due entries from " in printed
    assert re.search(r"; time: about .* s .*with 2 tasks, size: about [\d,]+ bytes", printed)
    assert re.search(r"\n  amount \(lucene\): [\d.]+ s on one core, [\d,]+ bytes\n", printed)
    assert re.search(r"\nEstimated by indexing \d+ rows in a temporary folder\.\n", printed)

    printed = run(*build, "--max-files", "1")
    assert "Build 000001 stopped: 2 due, 1 built, 0 failed" in printed
    assert "Budget spent: files; 1 left for the next build." in printed

    report = json.loads(run(*build, "--dry-run", "-o", "json"))
    assert (report["build"], report["due"], report["estimate"]["builds"]) == (None, 1, ["000001"])
    assert report["entries"][0]["status"] == "due"

    limits = ("--max-bytes", "1", "--max-minutes", "5", "--requests-per-second", "1000")
    report = json.loads(run(*build, *limits, "-o", "json"))
    assert (report["build"], report["state"], report["built"]) == ("000002", "finished", 1)
    assert report["entries"][0]["status"] == "built"


def test_a_dry_run_uses_the_keys_and_creates_no_index(table: str, run: Run) -> None:
    build = ("build", table, "--hoodie-conf", "hoodie.index.strategy=all", "-o", "json")
    dry = json.loads(run(*build, "--dry-run"))
    more = ("--hoodie-conf", "hoodie.index.columns=msg")
    run(*build, *more, "--dry-run")
    assert [each.name for each in open_table(table).indexes()] == ["by_amount"]
    wrong = ("--hoodie-conf", "hoodie.index.colums=msg", "--dry-run")
    assert "hoodie.index.colums is neither a key" in run(*build, *wrong, status=1)

    report = json.loads(run(*build))
    assert (report["due"], report["strategy"]) == (dry["due"], dry["strategy"]) == (2, "all")
    assert report["built"] == 2


def test_a_build_can_be_limited_to_partitions(table: str, run: Run) -> None:
    build = ("build", table, "--strategy", "all", "--dry-run", "-o", "json")
    due = json.loads(run(*build, "--partition", "*-02"))["entries"]
    assert [entry["path"].split("/")[0] for entry in due] == ["2026-01-02"]
    printed = run(*build, "--partition", "2027-*", status=1)
    assert "CONFIG_INVALID: The table has no base files in a partition '2027-*'." in printed
    assert "'2026-01-01', '2026-01-02'" in printed


def test_a_table_is_disabled_and_enabled(table: str, run: Run) -> None:
    run("build", table, "--strategy", "all")
    explain = ("explain", table, "amount = 3")
    assert "switches its indexes off" not in run(*explain)

    run("disable", table)

    assert "the table switches its indexes off (hudi-index disable" in run(*explain)
    assert f"No query uses them: `hudi-index enable {table}` ends that." in run("show", table)
    with open_table(table) as opened:
        planner = opened._queries.planner
        entries = planner.base_file_entries(planner.base_files())  # as tag_location does
        assert not any(each.entries for each in entries.slices)

    run("enable", table)
    assert "switches its indexes off" not in run(*explain)
    assert "No query uses them" not in run("show", table)


def test_status_alerts_set_the_exit_status(table: str, run: Run) -> None:
    run("build", table, "--strategy", "all", "--max-files", "1")
    report = json.loads(run("status", table, "-o", "json"))
    assert (report["indexes"][0]["coverage"], report["builds"][0]["state"]) == (0.5, "stopped")
    limits = ("--max-lag", "0", "--max-lag-instants", "0", "--min-coverage", "50")
    run("status", table, *limits, "--max-outliving", "0", "--failed-build")

    printed = run("status", table, "--min-coverage", "50.5", status=3)
    assert "ALERT: Index by_amount (lucene) covers 1 of 2 base files, less than 50.5%." in printed
    report = json.loads(run("status", table, "--min-coverage", "99", "-o", "json", status=3))
    assert len(report["alerts"]) == 1
    assert "000001" in printed


def test_status_alerts_if_an_index_falls_behind(golden: Golden, table: str, run: Run) -> None:
    golden("two_partitions").put(Path(table), "clustered")
    hundred_years = str(100 * 365 * 24 * 3600)  # the table was written long ago
    run("status", table, "--max-lag", hundred_years, "--max-lag-instants", "1")

    printed = run("status", table, "--max-lag", "0", "--max-lag-instants", "0", status=3)
    assert re.search(r"ALERT: Index by_amount \(lucene\) is \d+ s behind, more than 0\.", printed)
    assert "ALERT: Index by_amount (lucene) is 1 instant behind, more than 0." in printed


def test_a_build_names_base_files_that_stay_unindexed(table: str, run: Run) -> None:
    printed = run("build", table)
    assert "0 due, 0 built" in printed
    assert "Not indexed and not due: 2 of 2 base files for by_amount (lucene)." in printed
    assert f"`hudi-index build {table} --strategy all` indexes them." in printed
    assert "Not indexed and not due" in run("status", table)
    (hint,) = json.loads(run("build", table, "-o", "json"))["hints"]
    assert "--strategy all" in hint

    run("build", table, "--strategy", "all")
    assert "Not indexed" not in run("build", table) + run("status", table)

    run("drop", table, "by_amount")
    assert "The table has no index: `hudi-index create" in run("build", table)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_cancel_a_build_in_good_order(
    number: int, status: int, table: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressed = []

    @contextmanager
    def press_once(what: str) -> Iterator[Details]:
        def details(now: BuildProgress) -> None:
            if now.files_done and not pressed:
                pressed.append(now)
                signal.raise_signal(number)

        yield details

    monkeypatch.setattr("hudi_index_service.cli.maintain.progress_bar", press_once)

    printed = run("build", table, "--strategy", "all", status=status)

    assert "Stopping" in printed
    (record,) = open_table(table).builds()
    (index,) = open_table(table).status()
    built = record.to_dict()["built"]
    assert built == index.covered
    assert f"Build 000001 cancelled (interrupted): 2 due, {built} built" in printed
    assert printed.endswith("Interrupted.\n")


def test_failures_are_shown_and_fail_the_build(table: str, run: Run) -> None:
    (base_file,) = Path(table, "2026-01-01").glob("*.parquet")
    base_file.write_bytes(b"PAR1" + b"\0" * (base_file.stat().st_size - 8) + b"PAR1")

    printed = run("build", table, "--strategy", "all", status=1)
    assert "Build 000001 failed: 2 due, 1 built, 1 failed" in printed
    assert "BUILD_FAILED" in printed

    printed = run("status", table, "--failed-build", status=3)
    assert f"Failed 1 time: 2026-01-01/{base_file.name}: " in printed
    assert "ALERT: Build 000001 failed." in printed


def test_a_running_build_is_shown_and_cancelled(table: str, run: Run) -> None:
    assert "No build is running." in run("cancel", table)
    running = BuildRecords(Storage(table), stale_seconds=60).start({"strategy": "all", "due": 2})
    running.beat()
    assert "Build 000001 runs and has not reported progress yet." in run("status", table)

    assert "Requested that build 000001 stop." in run("cancel", table)
    assert running.cancel_requested()


def test_names_in_the_index_folder_cannot_control_the_terminal(table: str, run: Run) -> None:
    run("build", table, "--strategy", "all")
    data = next(Path(table).rglob("data-*.pack"))
    data.with_name("data-000009-\x1b[2J\nforged.pack").write_bytes(b"")
    for output in ("text", "json"):
        printed = run("clean", table, "--dry-run", "--grace", "0", "-o", output)
        assert "forged.pack" in printed
        assert "\x1b" not in printed
        assert not any(line.startswith("forged") for line in printed.splitlines())
