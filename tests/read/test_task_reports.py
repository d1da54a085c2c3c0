"""Statistics of what Spark's tasks read reach the query history."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import HistorySettings, Settings
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.spark import task_reports as module
from hudi_index_service.read.spark.task_reports import TaskReports
from hudi_index_service.read.statistics import SliceStatistics
from tests.read.spark_jobs import jobs_so_far

ROWS = 20_000
ROWS_PER_ZIP = ROWS // 100


@pytest.fixture(scope="module")
def path(golden_index) -> Path:
    """Two partitions with a base file and an entry each; `city` follows from `zip`."""
    return golden_index("zips_in_two_partitions", ["zip", "city"])


@pytest.fixture
def table(path, tmp_path) -> Iterator[IndexedTable]:
    with open_table(path, settings=Settings(state_folder=tmp_path / "state")) as table:
        yield table


@pytest.mark.usefixtures("keeps_no_pages")
def test_the_history_learns_the_same_from_tasks_as_from_the_driver(
    spark, path, tmp_path, monkeypatch
):
    """As to rows, pages and bytes; times depend on the machine."""
    counted = []
    # Workers of another environment are other processes.
    monkeypatch.setitem(spark.sparkContext.environment, "HUDI_INDEX_READ__PAGE_CACHE_MB", "0")
    for name in ("tasks", "driver"):
        settings = Settings(state_folder=tmp_path / name)
        with open_table(path, settings=settings) as table:
            for number in range(3):
                where = f"zip = 'zip{number}' AND city = 'city{number}'"
                scan = table.scan(where, columns=["id", "text"])
                if name == "tasks":
                    scan.to_spark(spark).collect()
                else:
                    scan.to_arrow()
            (shape,) = table.history()
        assert (shape.shape, shape.queries) == ("city = ? AND zip = ?", 3)
        assert shape.used == {"zip", "city"}
        assert shape.mean("index_ms") + shape.mean("scan_ms") > 0
        sums = shape.sums.items()
        counted.append({name: amount for name, amount in sums if "ms" not in name})
        counted[-1].pop("asked", None)  # of slices whose entries were open
    assert counted[0] == pytest.approx(counted[1], rel=1e-4)  # they fade with time
    assert counted[0]["rows.n"] == pytest.approx(3, abs=0.2)


def test_reports_take_no_extra_job(spark, path, tmp_path):
    jobs = []
    for enabled in (True, False):
        settings = Settings(state_folder=tmp_path, history=HistorySettings(enabled=enabled))
        with open_table(path, settings=settings) as table:
            before = jobs_so_far(spark)
            table.scan("zip = 'zip8'", columns=["id"]).to_spark(spark).collect()
            jobs.append(jobs_so_far(spark) - before)
    assert jobs[0] == jobs[1] > 0


@pytest.mark.parametrize(
    ("use", "queries"),
    [
        (lambda frame: [frame.collect(), frame.collect()], 2),
        (lambda frame: None, 0),
        (lambda frame: frame.take(1), 0),
    ],
    ids=["twice", "never", "not to the end"],
)
def test_only_queries_read_to_the_end_are_counted(spark, table, use, queries):
    use(table.scan("zip IN ('zip8', 'zip9')", columns=["id"]).to_spark(spark))  # in each partition
    assert sum(each.queries for each in table.history()) == queries


def test_scans_that_say_nothing_about_a_shape_are_not_kept(spark, table):
    for scan in (
        table.scan("zip = 'zip8'", columns=["id"], limit=5),
        table.scan(columns=["id"]),
        table.scan("zip = 'zip8'", columns=["id"], use_index="never"),
    ):
        assert scan.to_spark(spark).count() > 0
    assert table.history() == []


def slice_read(rows: int) -> SliceStatistics:
    return SliceStatistics("p0/file.parquet", Access.INDEX, rows_returned=rows)


def test_each_run_receives_only_its_own_slices(spark):
    received: dict[str, list[tuple[int, int]]] = {"first": [], "second": []}
    reports = TaskReports(spark.sparkContext)
    runs = [
        reports.expect(2, [lambda number, read, of=of: of.append((number, read.rows_returned))])
        for of in received.values()
    ]

    def send(number):
        for run, send_of_run in enumerate(runs[: number + 1], 1):
            send_of_run(number, slice_read(10 * run + number))

    spark.sparkContext.parallelize([0, 1], 2).foreach(send)

    assert sorted(received["first"]) == [(0, 10), (1, 11)]
    assert received["second"] == [(1, 21)]


def test_the_least_recently_active_runs_are_dropped(spark, monkeypatch):
    monkeypatch.setattr(module, "MOST_SLICES", 10)
    reports = TaskReports(spark.sparkContext)
    received: list[int] = []
    runs = [reports.expect(4, [lambda number, read: received.append(number)]) for _ in range(2)]
    runs[0](0, slice_read(1))
    runs.append(reports.expect(4, [lambda number, read: received.append(number)]))

    for number, each in enumerate(runs, 1):
        each(number, slice_read(1))

    assert received == [0, 1, 3]  # the second run was dropped
    assert reports._slices == 8


def test_a_failing_report_is_only_logged(spark, caplog):
    def fails(number, read):
        raise ValueError("nothing fits")

    send = TaskReports(spark.sparkContext).expect(1, [fails])
    own = spark.sparkContext.accumulator(0)

    def work(number):
        send(number, slice_read(1))
        own.add(1)

    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            spark.sparkContext.parallelize([0], 1).foreach(work)

    assert own.value == 2
    assert caplog.messages == ["The statistics of a task are not counted."] * 2
