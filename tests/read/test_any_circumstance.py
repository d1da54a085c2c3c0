"""An answer hangs neither on how a query is cut into windows, nor on what earlier commits left in
memory, nor on which entries fail, nor on whether PyLucene is installed."""

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow as pa
import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.index.contract import ManyReaders
from hudi_index_service.index.factory import index_type
from hudi_index_service.optimizer import decide
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read import parallel
from hudi_index_service.read.scan import Scan
from hudi_index_service.read.slices.open_slices import COUNTED
from tests.read.damage import overwrite, touch, truncate
from tests.same_rows import assert_same_rows

SLICES = 100
WHERES = [
    "id IN ('3', '77', '123', '180')",
    "amount BETWEEN 20 AND 90",
    "amount >= 20 AND msg = 'Buying car 1' AND amount < 160",
    "amount < 40 AND (msg = 'Buying car 1' OR id = '23')",
    "amount = 22 OR id = '57' OR msg = 'no such message'",
    "NOT msg = 'Buying car 0' AND amount > 100",
    "part > 'p050' AND msg LIKE '%car 1'",
]


Expected = dict[str, tuple[pa.Table, Any]]
"""Condition → rows, and their number, existence and row ids."""


def answers(table: IndexedTable, where: str, use_index: Any = "auto") -> tuple[pa.Table, Any]:
    """The rows, and their number, existence and row ids."""
    scan = table.scan(where, use_index=use_index)
    found = scan.count(), scan.exists(), {name: set(rows) for name, rows in scan.row_ids().items()}
    return scan.to_arrow(), found


def assert_answers(table: IndexedTable, where: str, expected: tuple[pa.Table, Any]) -> None:
    rows, others = answers(table, where)
    assert_same_rows(rows, expected[0])
    assert others == expected[1], where
    some = table.scan(where, limit=3).to_arrow()
    assert some.num_rows == min(3, rows.num_rows)
    assert set(some.column("id").to_pylist()) <= set(rows.column("id").to_pylist())


@pytest.fixture(scope="module", params=["lucene", "btree"])
def built(golden_index, request) -> Path:
    """A table of a hundred base files with an index."""
    return golden_index("hundred_base_files", ["id", "amount", "msg"], using=request.param)


@pytest.fixture(scope="module")
def expected(built) -> Expected:
    with open_table(built) as table:
        return {where: answers(table, where, "never") for where in WHERES}


@pytest.fixture
def hundred(built, tmp_path) -> Iterator[IndexedTable]:
    """A copy of the table with its entries open."""
    with open_table(shutil.copytree(built, tmp_path / "table")) as table:
        table.scan("msg = 'Buying car 1'", use_index="require").row_ids()
        yield table


@pytest.mark.parametrize("size", [3])
def test_windows_of_any_size(hundred, expected, size, monkeypatch):
    monkeypatch.setattr(parallel, "WINDOW", size)
    for where in WHERES:
        assert_answers(hundred, where, expected[where])


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("compacted_twice", ["id", "ts", "name"]),
        ("half_compacted", ["id", "ts", "msg"]),
        ("clustered_then_upserted", ["id", "ts", "msg"]),
    ],
)
def test_an_open_table_follows_each_commit(name, columns, golden, tmp_path):
    """Entries, pages, log rows and statistics that are kept serve no other snapshot."""
    recipe, path = golden(name), tmp_path / "table"
    text = columns[-1]
    wheres = ["ts > 0", "id IN ('1', '3', '8')", f"{text} LIKE '%1'", f"ts <= 5 OR {text} > 'C'"]
    with open_table(recipe.put(path, recipe.steps[0])) as kept:
        kept.create_index("i", columns)
        for number, step in enumerate(recipe.steps):
            recipe.put(path, step)
            for built in (False, True) if number % 2 else (True,):
                if built:
                    kept.build(strategy="all").raise_for_failures()
                for where in wheres:
                    with open_table(path) as fresh:
                        scan = fresh.scan(where, use_index="never")
                        expected = scan.to_arrow(), scan.count(), scan.exists()
                    found = kept.scan(where)
                    assert_same_rows(found.to_arrow(), expected[0])
                    assert (found.count(), found.exists()) == expected[1:]


HARM = [overwrite, truncate, Path.unlink, touch]


def data_files(table: IndexedTable) -> list[Path]:
    return sorted(Path(table.uri, ".hoodie/.index").rglob("*.pack"))


@pytest.mark.parametrize(("share", "opened"), [(0.01, False), (0.3, True)])
def test_some_entries_that_fail_harm_no_other(hundred, expected, share, opened):
    dice = random.Random(f"{share} {opened}")
    files = data_files(hundred)
    assert len(files) == SLICES
    harmed = dice.sample(files, int(share * SLICES))
    for data in harmed:
        dice.choice(HARM)(data)
    with open_table(hundred.uri) as fresh:
        table = hundred if opened else fresh
        for where in WHERES[::2]:
            assert_answers(table, where, expected[where])
        scan = table.scan("msg = 'Buying car 1'")
        assert scan.count() == SLICES
        assert_the_others_are_read_by_index(scan, len(harmed))


def assert_the_others_are_read_by_index(scan: Scan, harmed: int) -> None:
    read = scan.statistics
    assert read is not None
    scanned = [each for each in read.slices if each.access is Access.SCAN]
    unopened = "opening its entry takes longer than a scan"
    assert sum(each.note != unopened for each in scanned) <= harmed
    reasons = {each.slice_name: each.note for each in scanned if each.note}
    planned = {each.file_slice.name: each.reason for each in read.plans}
    assert all(reasons.get(each.slice_name) or planned[each.slice_name] for each in scanned)


@pytest.mark.parametrize("call", range(2))
def test_entries_that_change_while_many_are_asked(hundred, expected, call, monkeypatch):
    """At one of a query's calls, a third of the entries change once they have answered."""
    dice, files = random.Random(call), data_files(hundred)
    name = hundred.indexes()[0].index_types[0]
    readers = type(many_readers(hundred, name))
    calls = 0

    def changing(asked):
        def ask(self, *arguments):
            nonlocal calls
            answer = asked(self, *arguments)
            calls += 1
            if calls == call + 1:
                for data in dice.sample(files, SLICES // 3):
                    touch(data)
            return answer

        return ask

    for method in ("few_rows", "without_rows", "rows_of_values", "counts", "narrowed"):
        monkeypatch.setattr(readers, method, changing(getattr(readers, method)))
    for where in WHERES:
        calls = 0
        assert_answers(hundred, where, expected[where])


def many_readers(table: IndexedTable, name: str) -> ManyReaders:
    (plan, *_) = table.scan("msg = 'Buying car 1'").planned().plan.slices
    (serving,) = plan.entries
    run = table.scan("msg = 'Buying car 1'").planned()
    with run.reader.pool.lease(serving) as opened:
        made = index_type(name).together([opened.reader])
    assert made is not None
    return made


def test_answers_are_the_same_without_pylucene(built, expected):
    program = dedent(f"""
        import sys
        sys.modules["lucene"] = None
        from hudi_index_service import open_table
        table = open_table({str(built)!r})
        for where in {WHERES!r}:
            scan = table.scan(where)
            rows = sorted(scan.to_arrow().column("id").to_pylist())
            print(scan.count(), scan.exists(), *rows)
        """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        " ".join(map(str, (count, exists, *sorted(rows.column("id").to_pylist()))))
        for rows, (count, exists, _) in expected.values()
    ]


@pytest.mark.parametrize(
    ("where", "is_counted"),
    [
        ("msg = 'Buying car 1'", True),
        ("amount BETWEEN 20 AND 160", True),
        ("msg IN ('Buying car 1', 'Buying car 0')", True),
        ("msg = 'Buying car 1' AND amount > 20", True),
        ("msg = 'Buying car 1' AND amount > 20 AND NOT amount = 90", False),
        ("NOT msg = 'Buying car 1'", False),
        ("msg LIKE 'Buying%'", False),
    ],
)
def test_one_call_counts_the_rows_of_all_open_entries(golden_index, where, is_counted):
    path = golden_index("hundred_base_files", ["amount", "msg"])
    with open_table(path) as table:
        expected = table.scan(where, use_index="never").count()
        table.scan("msg = 'Buying car 1'", use_index="require").row_ids()
        table.scan("amount > 0", use_index="require").row_ids()
        scan = table.scan(where)
        assert scan.count() == expected
        assert scan.exists() == (expected > 0)
        assert scan.count() == expected
        read = scan.statistics
        counted = [each for each in read.plans if each.rule == COUNTED]
        assert bool(counted) is is_counted
        assert read.rows_returned == expected
        assert read.count(Access.INDEX) + read.count(Access.SKIP) == SLICES


def test_few_entries_count_by_one_call_too(golden_index):
    with open_table(golden_index("four_base_files", ["amount", "id"])) as table:
        where = "amount BETWEEN 20 AND 5000"
        rows = table.scan(where, use_index="require").to_arrow().num_rows  # opens the entries
        scan = table.scan(where)
        assert scan.count() == rows > 0
        counted = [each for each in scan.statistics.plans if each.rule == COUNTED]
        assert counted


@pytest.mark.parametrize("name", ["half_compacted", "seven_partitions"])
def test_slices_with_log_files_and_values_of_paths_are_not_counted_by_entries(
    name, golden_index, monkeypatch
):
    monkeypatch.setattr(decide, "ASKED_WHILE_OPEN", 1)
    columns = {"half_compacted": ["amount", "msg"], "seven_partitions": ["amount", "digit"]}[name]
    with open_table(golden_index(name, columns)) as table:
        for column in columns:
            table.scan(f"{column} IS NOT NULL", use_index="require").count()
        for column in columns:
            value = table.scan(f"{column} IS NOT NULL").to_arrow().column(column)[0].as_py()
            where = f"{column} = {value!r}"
            expected = table.scan(where, use_index="never").count()
            assert table.scan(where).count() == expected
