"""Which tests a landing runs, and in which order."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import order, turns
from tests.turns import (
    ALWAYS,
    EVERYWHERE,
    FAMILIES,
    HARMLESS,
    SHARES,
    changes_what_tests_run_on,
    family_of,
    matches,
    share_of,
    touched,
)

ALL = set(FAMILIES)
IN_SPARK = {"TPC-H", "generated queries"}
FOLDER = Path(__file__).parent


@pytest.mark.parametrize(
    ("changed", "whole"),
    [
        ([], set()),
        (["README.md", "docs/design.md", ".ci/turn"], set()),
        (["hudi_index_service/cli/output.py"], set()),
        (["hudi_index_service/sql/session.py"], {"writes"}),
        (["hudi_index_service/submit/pack.py"], {"cluster"}),
        (["hudi_index_service/errors.py", "hudi_index_service/table.py"], set()),
        (["hudi_index_service/hudi/gate.py"], {"Hudi releases", "partition values"}),
        (["hudi_index_service/storage/hdfs.py"], {"HDFS", "faults"}),
        (
            ["hudi_index_service/predicate/cast.py"],
            {"texts", "proof", "partition values", "engines", *IN_SPARK},
        ),
        (["hudi_index_service/index/btree/tree.py"], {"proof"}),
        (["hudi_index_service/index/metadata/entry.py"], {"faults", "proof"}),
        (["hudi_index_service/index/contract.py"], {"HBase", "proof"}),
        (["native/parquet_rows/src/lib.rs"], {"proof", *IN_SPARK}),
        (["native/parquet_rows/Cargo.toml"], {"wheels", "proof", *IN_SPARK}),
        (
            ["native/spark_rule/java/Rule.java"],
            {"writes", "partition values", "cluster", "Spark 4", *IN_SPARK},
        ),
        (["native/pylucene/java/Helper.java"], {"proof"}),
        (["native/pylucene/jars.txt"], {"wheels", "proof"}),
        (["tests/hdfs/test_kerberos.py"], {"HDFS"}),
        (["pyproject.toml"], {"wheels"}),
        (["constraints/java-tools.txt"], set()),
        (["constraints/hbase-jars.txt"], {"HBase"}),
        (["constraints/dev.txt"], ALL),
        (["constraints/test.txt"], ALL),
        (["a_new_folder/module.py"], ALL),
        (None, ALL),
    ],
)
def test_what_a_change_touches_runs_whole(changed: list[str] | None, whole: set[str]) -> None:
    assert set(touched(changed)) == whole


def test_the_reason_names_the_path() -> None:
    assert touched(["docs/design.md", "hudi_index_service/sql/session.py"]) == {
        "writes": "hudi_index_service/sql/session.py has changed"
    }


@pytest.mark.parametrize(
    ("lines", "changes"),
    [
        ("-ruff==0.12.1\n+ruff==0.12.2\n+types-pyyaml==6.0", False),
        ("--- a/constraints/dev.txt\n+++ b/constraints/dev.txt\n+pytest-cov==6.0", False),
        ("-ruff==0.12.1\n-pyarrow==26.0\n+ruff==0.12.2\n+pyarrow==27.0", True),
        ("-grpcio-status==1.85.1\n+mcp==2.3.0", False),
        ("", False),
    ],
)
def test_packages_of_another_version_touch_all_tests(lines: str, changes: bool) -> None:
    assert changes_what_tests_run_on(lines.splitlines()) == changes


def test_the_first_commit_after_a_landing_raises_the_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def commit(path: str, text: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
        git("add", ".")
        git("commit", "-m", path)

    monkeypatch.setattr(turns, "ROOT", tmp_path)
    monkeypatch.setattr(turns, "TURN", tmp_path / ".ci" / "turn")
    git("init", "-q")
    commit(".ci/turn", "1\n")
    assert turns.changed_paths() is None
    commit("landed.py", "")
    commit(".ci/turn", "2\n")
    commit(turns.PINS, "mcp==2.3.0\n")
    commit("new.py", "")
    assert turns.changed_paths() == [".ci/turn", "new.py"]


def test_every_pattern_names_files() -> None:
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True)
    tracked = listed.stdout.splitlines()
    families = [pattern for each in FAMILIES.values() for pattern in (*each.tests, *each.about)]
    for pattern in {*families, *ALWAYS, *EVERYWHERE, *HARMLESS, *order.SHARED_OUT_BY_TEST}:
        assert any(matches(path, [pattern]) for path in tracked), pattern


def test_three_landings_run_each_shared_out_test_once() -> None:
    shares = {share_of(nodeid) for nodeid in order.recorded()["tests"] if family_of(nodeid)}
    assert shares == set(range(SHARES))
    queries = [f"tests/tpch/test_queries.py::test_answers[cow-q{n}]" for n in range(1, 23)]
    proof = "tests/proof/test_proof.py::test_index_scan_and_spark_give_the_same_rows"
    for tests in (queries, [f"{proof}[{each}]" for each in ("first", "second", "third")]):
        assert {share_of(nodeid) for nodeid in tests} == shares


@pytest.mark.parametrize(
    ("folder", "files"), [("spark_rule", turns.on_scala_2_13), ("index", turns.on_java_25)]
)
def test_three_landings_run_each_file_with_the_other_version_once(
    folder: str, files: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(turns, "TURN", tmp_path / "turn")
    ran: list[str] = []
    for number in range(7, 10):
        turns.TURN.write_text(f"{number}\n")
        of_this_landing = files()
        assert of_this_landing, "without a file, pytest would run all tests"
        ran += of_this_landing
    tests = FOLDER.joinpath(folder).rglob("test_*.py")
    assert sorted(ran) == sorted(str(each.relative_to(FOLDER.parent)) for each in tests)


def test_one_landing_in_three_measures_coverage(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(turns, "TURN", tmp_path / "turn")
    measured = []
    for number in range(7, 10):
        turns.TURN.write_text(f"{number}\n")
        measured.append("--cov" in turns.options())
    assert measured == [False, False, True]


def test_tests_of_a_server_stay_together() -> None:
    first, second = (f"tests/hbase/test_{name}.py::test_it" for name in ("store", "build"))
    assert order.scope_of(first, fast=False) == order.scope_of(second, fast=False)


def test_tests_of_a_release_stay_together() -> None:
    one = "tests/versions/test_tables.py::test_due[1.2.0-archived]"
    other = "tests/versions/test_races.py::test_files[1.2.0-before]"
    older = "tests/versions/test_races.py::test_files[1.0.2-before]"
    assert order.scope_of(one, fast=False) == order.scope_of(other, fast=False)
    assert order.scope_of(one, fast=False) != order.scope_of(older, fast=False)


def test_the_longest_begin_first_test_by_test_where_a_file_is_shared_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long, short = order.SHARED_OUT_BY_TEST[0], "tests/read/test_short.py"
    tests = {f"{long}::test_{n}": 100.0 + n for n in range(2)}
    monkeypatch.setattr(
        order, "recorded", lambda: {"fast": {short: 1.0}, "slow": {long: 201.0}, "tests": tests}
    )
    nodeids = [f"{short}::test_it", *tests]
    assert [order.scope_of(each, fast=False) for each in nodeids] == [short, *tests]
    assert order.longest_first(nodeids, fast=False) == [2, 1, 0]


def test_a_file_that_did_not_run_keeps_its_seconds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept, ran = "tests/test_turns.py", "tests/conftest.py"
    known = {"fast": {kept: 3.0, ran: 1.0, "tests/gone.py": 9.0}, "slow": {}, "tests": {}}
    monkeypatch.setattr(order, "recorded", lambda: known)
    monkeypatch.setattr(order, "RECORDED", tmp_path / "seconds.json")
    order.record(fast={f"{ran}::test_a": 20.0, f"{ran}::test_b": 0.5}, slow={})
    assert json.loads((tmp_path / "seconds.json").read_text()) == {
        "fast": {kept: 3.0, ran: 20.5},
        "slow": {},
        "tests": {f"{ran}::test_a": 20.0},
    }
