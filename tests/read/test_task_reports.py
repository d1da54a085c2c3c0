"""Statistics of what Spark's tasks read reach the query history."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import HistorySettings, Settings
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.planner import ScanOptions
from hudi_index_service.read.spark import task_reports as module
from hudi_index_service.read.spark.task_reports import TaskReports
from hudi_index_service.read.statistics import SliceStatistics
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write
from tests.indexed import indexed
from tests.read.spark_jobs import jobs_so_far

ROWS = 20_000
ROWS_PER_ZIP = ROWS // 100


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions with a base file and an entry each; `city` follows from `zip`."""
    path = tmp_path_factory.mktemp("tasks") / "table"
    rows = spark.range(0, ROWS, 1, 1).selectExpr(
        "cast(id AS string) AS id",
        "concat('zip', id % 100) AS zip",
        "concat('city', id % 100) AS city",
        "sha2(cast(id AS string), 512) AS text",
        "cast(0 AS bigint) AS ts",
        "concat('p', id div 100 % 2) AS part",
    )
    options = hudi_options("t", partition_column="part", **NO_METADATA_TABLE)
    write(rows, path, options, "bulk_insert")
    indexed(path, ["zip", "city"])
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state_folder=tmp_path / "state")


@pytest.fixture
def table(path: Path, settings: Settings) -> Iterator[IndexedTable]:
    with open_table(path, settings=settings) as table:
        yield table


def by_city(number: int) -> str:
    return f"zip = 'zip{number}' AND city = 'city{number}'"


def guess(table: IndexedTable) -> float:
    """The rows that the optimizer expects of such a query."""
    plan = table._queries.planner.plan(table.scan(by_city(8))._binding, ScanOptions())[1]
    return sum(each.expected.rows.expected for each in plan.slices if each.expected is not None)


def test_reads_in_tasks_correct_the_next_estimate(
    spark: SparkSession, table: IndexedTable, path: Path, settings: Settings
) -> None:
    first = guess(table)
    for number in (8, 20, 44, 62, 80):
        frame = table.scan(by_city(number), columns=["id"]).to_spark(spark)
        assert frame.count() == ROWS_PER_ZIP

    (shape,) = table.history()
    assert (shape.shape, shape.queries) == ("city = ? AND zip = ?", 5)
    assert shape.mean("rows") == pytest.approx(ROWS_PER_ZIP)
    assert shape.mean("bytes") + shape.mean("scan_bytes") > 0
    assert shape.mean("index_ms") + shape.mean("scan_ms") > 0
    assert shape.used == {"zip", "city"}
    table.close()
    with open_table(path, settings=settings) as later:
        learnt = guess(later)
    assert first < ROWS_PER_ZIP / 2
    assert abs(learnt - ROWS_PER_ZIP) < abs(first - ROWS_PER_ZIP) / 2


@pytest.mark.usefixtures("keeps_no_pages")
def test_the_history_learns_the_same_from_tasks_as_from_the_driver(
    spark: SparkSession, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As to rows, pages and bytes; times depend on the machine."""
    counted = []
    # Workers of another environment are other processes.
    monkeypatch.setitem(spark.sparkContext.environment, "HUDI_INDEX_READ__PAGE_CACHE_MB", "0")
    for name in ("tasks", "driver"):
        settings = Settings(state_folder=tmp_path / name)
        with open_table(path, settings=settings) as table:
            for number in range(3):
                scan = table.scan(by_city(number), columns=["id", "text"])
                if name == "tasks":
                    scan.to_spark(spark).collect()
                else:
                    scan.to_arrow()
            (shape,) = table.history()
        sums = shape.sums.items()
        counted.append({name: amount for name, amount in sums if "ms" not in name})
        counted[-1].pop("asked", None)  # of slices whose entries were open
    assert counted[0] == pytest.approx(counted[1], rel=1e-4)  # they fade with time
    assert counted[0]["rows.n"] == pytest.approx(3, abs=0.2)


def test_reports_take_no_extra_job(spark: SparkSession, path: Path, tmp_path: Path) -> None:
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
def test_only_queries_read_to_the_end_are_counted(
    spark: SparkSession,
    table: IndexedTable,
    use: Callable[[DataFrame], object],
    queries: int,
) -> None:
    use(table.scan("zip = 'zip8'", columns=["id"]).to_spark(spark))
    assert sum(each.queries for each in table.history()) == queries


def test_scans_that_say_nothing_about_a_shape_are_not_kept(
    spark: SparkSession, table: IndexedTable
) -> None:
    for scan in (
        table.scan("zip = 'zip8'", columns=["id"], limit=5),
        table.scan(columns=["id"]),
        table.scan("zip = 'zip8'", columns=["id"], use_index="never"),
    ):
        assert scan.to_spark(spark).count() > 0
    assert table.history() == []


def slice_read(rows: int) -> SliceStatistics:
    return SliceStatistics("p0/file.parquet", Access.INDEX, rows_returned=rows)


def test_each_run_receives_only_its_own_slices(spark: SparkSession) -> None:
    received: dict[str, list[tuple[int, int]]] = {"first": [], "second": []}
    reports = TaskReports(spark.sparkContext)
    runs = [
        reports.expect(2, [lambda number, read, of=of: of.append((number, read.rows_returned))])
        for of in received.values()
    ]

    def send(number: int) -> None:
        for each in runs[: number + 1]:
            each.send(number, slice_read(10 * each.run + number))

    spark.sparkContext.parallelize([0, 1], 2).foreach(send)

    assert sorted(received["first"]) == [(0, 10), (1, 11)]
    assert received["second"] == [(1, 21)]


def test_the_least_recently_active_runs_are_dropped(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SLICES", 10)
    reports = TaskReports(spark.sparkContext)
    received: list[int] = []
    runs = [reports.expect(4, [lambda number, read: received.append(number)]) for _ in range(2)]
    runs[0].send(0, slice_read(1))
    runs.append(reports.expect(4, [lambda number, read: received.append(number)]))

    for number, each in enumerate(runs, 1):
        each.send(number, slice_read(1))

    assert received == [0, 1, 3]  # the second run was dropped
    assert reports._slices == 8


def test_a_failing_report_is_only_logged(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(number: int, read: SliceStatistics) -> None:
        raise ValueError("nothing fits")

    report = TaskReports(spark.sparkContext).expect(1, [fails])
    own = spark.sparkContext.accumulator(0)

    def work(number: int) -> None:
        report.send(number, slice_read(1))
        own.add(1)

    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            spark.sparkContext.parallelize([0], 1).foreach(work)

    assert own.value == 2
    assert caplog.messages == ["The statistics of a task are not counted."] * 2
