"""Building, watching and cancelling on the command line: what is printed, and the exit status."""

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hudi_index_service import open_table
from hudi_index_service.build.run import Details
from hudi_index_service.index.metadata.build_records import BuildProgress, BuildRecords
from hudi_index_service.storage.store import Storage
from tests.edited_tables import make_unreadable
from tests.golden.table import Golden
from tests.indexed import OwnTable
from tests.programs import Command


@pytest.fixture
def table(own_table: OwnTable) -> str:
    """Two partitions, an index, and no entries."""
    return own_table(
        "two_partitions", ["amount"], name="by_amount", step="written", build=False
    ).uri


def test_a_budgeted_build_leaves_the_rest_to_the_next(table: str, command: Command) -> None:
    build = ("build", table, "--strategy", "all")
    printed = command(*build, "--dry-run")
    assert "lucene  2026-01-02/" in printed
    assert "Would build 2 of 2 due entries from " in printed
    assert re.search(r"; time: about .* s .*with 2 tasks, size: about [\d,]+ bytes", printed)
    assert re.search(r"\n  amount \(lucene\): [\d.]+ s on one core, [\d,]+ bytes\n", printed)
    assert re.search(r"\nEstimated by indexing \d+ rows in a temporary folder\.\n", printed)

    printed = command(*build, "--max-files", "1")
    assert "Build 000001 stopped: 2 due, 1 built, 0 failed" in printed
    assert "Budget spent: files; 1 left for the next build." in printed

    report = json.loads(command(*build, "--dry-run", "-o", "json"))
    assert (report["build"], report["due"], report["estimate"]["builds"]) == (None, 1, ["000001"])
    assert report["entries"][0]["status"] == "due"

    limits = ("--max-bytes", "1", "--max-minutes", "5", "--requests-per-second", "1000")
    report = json.loads(command(*build, *limits, "-o", "json"))
    assert (report["build"], report["state"], report["built"]) == ("000002", "finished", 1)
    assert report["entries"][0]["status"] == "built"


def test_a_dry_run_uses_the_keys_and_creates_no_index(table: str, command: Command) -> None:
    build = ("build", table, "--hoodie-conf", "hoodie.index.strategy=all", "-o", "json")
    dry = json.loads(command(*build, "--dry-run"))
    more = ("--hoodie-conf", "hoodie.index.columns=msg")
    command(*build, *more, "--dry-run")
    assert [each.name for each in open_table(table).indexes()] == ["by_amount"]
    wrong = ("--hoodie-conf", "hoodie.index.colums=msg", "--dry-run")
    assert "hoodie.index.colums is neither a key" in command(*build, *wrong, status=1)

    report = json.loads(command(*build))
    assert (report["due"], report["strategy"]) == (dry["due"], dry["strategy"]) == (2, "all")
    assert report["built"] == 2


def test_a_build_can_be_limited_to_partitions(table: str, command: Command) -> None:
    build = ("build", table, "--strategy", "all", "--dry-run", "-o", "json")
    due = json.loads(command(*build, "--partition", "*-02"))["entries"]
    assert [entry["path"].split("/")[0] for entry in due] == ["2026-01-02"]
    printed = command(*build, "--partition", "2027-*", status=1)
    assert "CONFIG_INVALID: The table has no base files in a partition '2027-*'." in printed
    assert "'2026-01-01', '2026-01-02'" in printed


def test_a_table_is_disabled_and_enabled(table: str, command: Command) -> None:
    command("build", table, "--strategy", "all")
    explain = ("explain", table, "amount = 3")
    assert "switches its indexes off" not in command(*explain)

    command("disable", table)

    assert "the table switches its indexes off (hudi-index disable" in command(*explain)
    assert f"No query uses them: `hudi-index enable {table}` ends that." in command("show", table)
    with open_table(table) as opened:
        planner = opened._queries.planner
        entries = planner.base_file_entries(planner.base_files())  # as tag_location does
        assert not any(each.entries for each in entries.slices)

    command("enable", table)
    assert "switches its indexes off" not in command(*explain)
    assert "No query uses them" not in command("show", table)


def test_status_alerts_set_the_exit_status(table: str, command: Command) -> None:
    command("build", table, "--strategy", "all", "--max-files", "1")
    report = json.loads(command("status", table, "-o", "json"))
    assert (report["indexes"][0]["coverage"], report["builds"][0]["state"]) == (0.5, "stopped")
    limits = ("--max-lag", "0", "--max-lag-instants", "0", "--min-coverage", "50")
    command("status", table, *limits, "--max-outliving", "0", "--failed-build")

    printed = command("status", table, "--min-coverage", "50.5", status=3)
    assert "ALERT: Index by_amount (lucene) covers 1 of 2 base files, less than 50.5%." in printed
    report = json.loads(command("status", table, "--min-coverage", "99", "-o", "json", status=3))
    assert len(report["alerts"]) == 1
    assert "000001" in printed


def test_status_alerts_if_an_index_falls_behind(
    golden: Golden, table: str, command: Command
) -> None:
    golden("two_partitions").put(Path(table), "clustered")
    hundred_years = str(100 * 365 * 24 * 3600)  # the table was written long ago
    command("status", table, "--max-lag", hundred_years, "--max-lag-instants", "1")

    printed = command("status", table, "--max-lag", "0", "--max-lag-instants", "0", status=3)
    assert re.search(r"ALERT: Index by_amount \(lucene\) is \d+ s behind, more than 0\.", printed)
    assert "ALERT: Index by_amount (lucene) is 1 instant behind, more than 0." in printed


def test_a_build_names_base_files_that_stay_unindexed(table: str, command: Command) -> None:
    printed = command("build", table)
    assert "0 due, 0 built" in printed
    assert "Not indexed and not due: 2 of 2 base files for by_amount (lucene)." in printed
    assert f"`hudi-index build {table} --strategy all` indexes them." in printed
    assert "Not indexed and not due" in command("status", table)
    (hint,) = json.loads(command("build", table, "-o", "json"))["hints"]
    assert "--strategy all" in hint

    command("build", table, "--strategy", "all")
    assert "Not indexed" not in command("build", table) + command("status", table)

    command("drop", table, "by_amount")
    assert "The table has no index: `hudi-index create" in command("build", table)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_cancel_a_build_in_good_order(
    number: int, status: int, table: str, command: Command, monkeypatch: pytest.MonkeyPatch
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

    printed = command("build", table, "--strategy", "all", status=status)

    assert "Stopping" in printed
    (record,) = open_table(table).builds()
    (index,) = open_table(table).status()
    built = record.to_dict()["built"]
    assert built == index.covered
    assert f"Build 000001 cancelled (interrupted): 2 due, {built} built" in printed
    assert printed.endswith("Interrupted.\n")


def test_failures_are_shown_and_fail_the_build(table: str, command: Command) -> None:
    (base_file,) = Path(table, "2026-01-01").glob("*.parquet")
    make_unreadable(base_file)

    printed = command("build", table, "--strategy", "all", status=1)
    assert "Build 000001 failed: 2 due, 1 built, 1 failed" in printed
    assert "BUILD_FAILED" in printed

    printed = command("status", table, "--failed-build", status=3)
    assert f"Failed 1 time: 2026-01-01/{base_file.name}: " in printed
    assert "ALERT: Build 000001 failed." in printed


def test_a_running_build_is_shown_and_cancelled(table: str, command: Command) -> None:
    assert "No build is running." in command("cancel", table)
    running = BuildRecords(Storage(table), stale_seconds=60).start({"strategy": "all", "due": 2})
    running.beat()
    assert "Build 000001 runs and has not reported progress yet." in command("status", table)

    assert "Requested that build 000001 stop." in command("cancel", table)
    assert running.cancel_requested()


def test_names_in_the_index_folder_cannot_control_the_terminal(
    table: str, command: Command
) -> None:
    command("build", table, "--strategy", "all")
    data = next(Path(table).rglob("data-*.pack"))
    data.with_name("data-000009-\x1b[2J\nforged.pack").write_bytes(b"")
    for output in ("text", "json"):
        printed = command("clean", table, "--dry-run", "--grace", "0", "-o", output)
        assert "forged.pack" in printed
        assert "\x1b" not in printed
        assert not any(line.startswith("forged") for line in printed.splitlines())
