"""Estimates how many rows of a relation have the keys of a join, before the keys are known, by the
numbers of distinct values in manifests.

What is likely decides who reads: the decision is made anew once the keys are known. What is
possible is the number of rows that Spark plans with, lest it sends many rows to all executors.
"""

import math
from collections.abc import Collection

from hudi_index_service.optimizer.cost import CostModel
from hudi_index_service.optimizer.cost.in_spark import Reader, SessionReaders, SparkCosts
from hudi_index_service.optimizer.decide import RelationCosts
from hudi_index_service.optimizer.estimates.values import Values
from hudi_index_service.optimizer.plan import OTHERS, Access, SlicePlan, base_file_bytes
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.slices.slice_reader import is_merged_in_part
from hudi_index_service.sql.relations.weighing import (
    Candidates,
    KeepSparkScan,
    too_little_indexed,
)
from hudi_index_service.wording import counted


def candidates_of_keys(
    run: Execution, session: SessionReaders, column: str, keys: int
) -> Candidates | KeepSparkScan:
    """Who reads the rows that have one of some keys, if the index is worth it.

    Args:
        run: The query without the keys, on rows where the column is not NULL.
        session: What can read for the session.
        column: The column that has to have one of the keys.
        keys: The most keys.
    """
    plan, reader = run.plan, run.reader
    reason = too_little_indexed(plan)
    if reason is not None:
        return reason
    costs = SparkCosts.of(
        plan, CostModel.of(plan, reader.settings), len(reader.query.output), session
    )
    slices = [each.for_counting() for each in plan.slices]
    indexed = [each for each in slices if each.access is Access.INDEX]
    others = [each for each in slices if each.access in OTHERS]
    if not indexed:
        return KeepSparkScan("no entry serves its files")
    values = [_values(each, column) for each in indexed]
    share = _likely_share([each for each in values if each is not None], keys)
    work = costs.scanning(others) + costs.merging(filter(is_merged_in_part, slices))
    rows = 0
    for each, own in zip(indexed, values, strict=True):
        count = each.total if own is None else own.count
        work += costs.reading(each, share * count)
        rows += count if own is None else min(count, math.ceil(keys * own.equal))
    indexed_bytes, other_bytes = base_file_bytes(indexed), base_file_bytes(others)
    readers = RelationCosts.of(costs, indexed_bytes, other_bytes, searched=False)
    chosen = readers.reader(work)
    if chosen is Reader.SPARK:
        return KeepSparkScan(
            f"{counted(keys, 'key')} of a join have about {counted(round(work.rows), 'row')}, "
            "and Spark scans them faster"
        )
    by_tasks = readers.reader(work, driver=False) is Reader.TASKS
    return Candidates(
        rows, exact=False, few=chosen is Reader.DRIVER, by_tasks=by_tasks, scanned=len(others)
    )


def _values(plan: SlicePlan, column: str) -> Values | None:
    """The values of a column in a slice, by the first entry with it; None if none has it."""
    found = (entry.values.get(column) for entry in plan.entries)
    return next((each for each in found if each is not None), None)


def _likely_share(values: Collection[Values], keys: int) -> float:
    """The share of the table's rows that are likely to have one of the keys: as many of its
    distinct values as there are keys. A value is taken to be in one slice, unless whole numbers
    within the bounds of all slices are too few for that."""
    distinct = sum(each.count / each.equal for each in values if each.equal)
    bounds = [(each.least, each.greatest) for each in values if each.count]
    if bounds and all(isinstance(least, int) for least, _ in bounds):
        least, greatest = min(each for each, _ in bounds), max(each for _, each in bounds)
        distinct = min(distinct, greatest - least + 1)
    return min(1.0, keys / max(1.0, distinct))
