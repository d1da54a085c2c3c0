"""Cost of a relation in a Spark query, computed without files."""

from dataclasses import replace

import pytest

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.cost.constants import Constants
from hudi_index_service.optimizer.cost.in_spark import (
    NOTHING,
    Reader,
    SessionReaders,
    SparkCosts,
    Work,
)
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.decide import RelationCosts
from hudi_index_service.optimizer.plan import QueryPlan
from tests.optimizer.tables import PaperTable

ROWS = 4_000_000
FILE = {"rows": ROWS, "mb": 100, "index": {"a": {"distinct": ROWS}}}
TABLE = PaperTable({"a": "int64", "b": "string"}, [FILE] * 8)
ALL_READERS = tuple(Reader)


def costs(plan: QueryPlan, cores: int = 2, **constants: float) -> SparkCosts:
    plan = replace(plan, share=0.5)
    model = replace(CostModel.of(plan, Settings()), constants=Constants(**constants))
    return SparkCosts.of(plan, model, 2, SessionReaders(cores))


def reader(rows: int, cores: int = 2, **constants: float) -> Reader:
    """The cheapest reader of a table in which this many rows of each file match."""
    plan = TABLE.plan("a >= 0", ["a", "b"], use_index="require")
    spark_costs = costs(plan, cores, **constants)
    work = sum((spark_costs.reading(each, rows) for each in plan.slices), NOTHING)
    assert work.rows == rows * len(plan.slices)
    return RelationCosts(spark_costs, 1, 0, searched=False).cheapest(work, ALL_READERS)


def test_few_rows_are_read_by_the_driver_and_most_by_spark():
    assert reader(0) is reader(100) is Reader.DRIVER
    assert reader(ROWS) is Reader.SPARK


def test_tasks_read_if_many_cores_share_the_work():
    assert reader(20, cores=8, tasks_ms=1, task_slice_ms=1) is Reader.TASKS
    assert reader(20, cores=1, tasks_ms=1, task_slice_ms=1) is Reader.DRIVER


def test_costly_row_transfer_favors_spark():
    assert reader(200) is Reader.DRIVER
    assert reader(200, handed_row_ms=10) is Reader.SPARK


def test_spark_skips_partitions_but_opens_files_excluded_by_statistics():
    every = TABLE.first_plan("a = 1", ["a"])
    first, *others = every.slices
    excluded = replace(
        every, slices=(first, *(each.skipped("", "excluded_by_statistics") for each in others))
    )
    pruned = replace(
        every, slices=(first, *(each.skipped("", "partition_pruning") for each in others))
    )
    known = Constants()
    alone = known.spark_scan_ms + known.spark_file_ms + 50 * known.spark_mib_ms
    assert costs(pruned).spark_ms == pytest.approx(alone)
    together = known.spark_scan_ms + (8 * known.spark_file_ms + 50 * known.spark_mib_ms) / 2
    assert costs(excluded).spark_ms == pytest.approx(together)
    full = known.spark_scan_ms + 8 * (known.spark_file_ms + 50 * known.spark_mib_ms) / 2
    assert costs(every).spark_ms == pytest.approx(full)
    assert costs(every, cores=100).spark_ms == pytest.approx(alone), "no more tasks than files"


def test_tasks_share_a_large_file():
    table = PaperTable({"a": "int64", "b": "string"}, [{**FILE, "mb": 2_000}])
    known, plan = Constants(), table.plan("a >= 0", ["a", "b"], use_index="require")
    one, many = costs(plan, cores=1), costs(plan, cores=100)
    for reader, fixed in ((Reader.SPARK, known.spark_scan_ms), (Reader.TASKS, known.tasks_ms)):
        alone, together = (each.milliseconds(Work(5_000), reader) - fixed for each in (one, many))
        assert together == pytest.approx(alone / 16), "no more tasks than row groups"


def test_work_adds_up():
    some = Work(2, 3) + Work(1, 1)
    assert some - Work(1, 1) == Work(2, 3)
    assert some * 2 == Work(6, 8)
    assert costs(TABLE.first_plan("a = 1", ["a", "b"])).values(some) == 8
