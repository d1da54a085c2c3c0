"""Estimates how many rows of a relation have the keys of a join, before the keys are known, by the
numbers of distinct values in manifests."""

from hudi_index_service.optimizer.cost import CostModel
from hudi_index_service.optimizer.cost.in_spark import Reader, SparkCosts
from hudi_index_service.optimizer.decide import RelationCosts
from hudi_index_service.optimizer.plan import Access, SlicePlan, base_file_bytes
from hudi_index_service.read.execution import Execution
from hudi_index_service.sql.relations.weighing import Candidates, KeepSparkScan, without_use
from hudi_index_service.wording import counted


def candidates_of_keys(
    run: Execution, cores: int, column: str, keys: int
) -> Candidates | KeepSparkScan:
    """Who reads the rows that have one of some keys, if the index is worth it.

    Args:
        run: The query without the keys, on rows where the column is not NULL.
        cores: Number of tasks that Spark runs at once.
        column: The column that has to have one of the keys.
        keys: The most keys.
    """
    plan, reader = run.plan, run.reader
    reason = without_use(plan)
    if reason is not None:
        return reason
    costs = SparkCosts.of(
        plan, CostModel.of(plan, reader.settings), len(reader.query.output), cores
    )
    slices = [each.for_counting() for each in plan.slices]
    indexed = [each for each in slices if each.access is Access.INDEX]
    others = [each for each in slices if each.access in (Access.SCAN, Access.MERGE)]
    work, rows = costs.scanning(others), 0
    for each in indexed:
        expected = _rows(each, column, keys)
        rows += expected
        work += costs.reading(each, expected)
    indexed_bytes, other_bytes = base_file_bytes(indexed), base_file_bytes(others)
    readers = RelationCosts.of(costs, indexed_bytes, other_bytes, searched=False)
    chosen = readers.reader(work)
    if chosen is Reader.SPARK:
        return KeepSparkScan(
            f"{counted(keys, 'key')} of a join may have {counted(rows, 'row')}, "
            "and Spark scans them faster"
        )
    by_tasks = readers.reader(work, driver=False) is Reader.TASKS
    return Candidates(
        rows, exact=False, few=chosen is Reader.DRIVER, by_tasks=by_tasks, scanned=len(others)
    )


def _rows(plan: SlicePlan, column: str, keys: int) -> int:
    """The rows of a slice that are likely to have one of the keys, if it has all of them."""
    for entry in plan.entries:
        values = entry.values.get(column)
        if values is not None:
            return min(values.count, round(keys * values.equal))
    return plan.total
