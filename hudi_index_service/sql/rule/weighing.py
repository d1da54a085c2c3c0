"""Estimates how many rows of a relation match, until that decides its reader
(`optimizer/decide.py`): first by the row estimates of manifests, then by the opened index's bounds,
and by look-ups only if neither decides.

Of the rows that have the keys of a join, which are not known yet, it estimates by the numbers of
distinct values in manifests. What is likely decides who reads: the decision is made anew once the
keys are known. What is possible is the number of rows that Spark plans with, lest it sends many
rows to all executors.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from hudi_index_service.optimizer.column_values import Values
from hudi_index_service.optimizer.cost.constants import (
    DRIVER_SLICES,
    LOG_FILE_BYTES,
    SLICES_UNLIKE,
    TOO_HIGH,
)
from hudi_index_service.optimizer.cost.in_spark import (
    NOTHING,
    Reader,
    SessionReaders,
    SparkCosts,
    Work,
)
from hudi_index_service.optimizer.cost.model import CostModel
from hudi_index_service.optimizer.decide import (
    RelationCosts,
    driver_may_count,
    enough_is_indexed,
    matches_most,
)
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.plan import (
    BY_ENTRY,
    OTHERS,
    Access,
    QueryPlan,
    SlicePlan,
    base_file_bytes,
)
from hudi_index_service.optimizer.serving import values_of
from hudi_index_service.predicate.expression import Match
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.slices.counting import may_have_few_values
from hudi_index_service.read.slices.index_estimates import narrowed_rows
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.wording import counted


@dataclass(frozen=True, slots=True)
class Candidates:
    """The rows to read for a query.

    Attributes:
        rows: Upper bound of matching rows in indexed slices.
        exact: Whether the bound is the exact number.
        few: Whether the driver reads them rather than Spark tasks.
        by_tasks: Whether tasks read them faster than Spark's scan, if they are too large for the
            driver.
        scanned: Number of slices without an index.
    """

    rows: int
    exact: bool
    few: bool
    by_tasks: bool
    scanned: int

    def with_estimates(self, plan: QueryPlan) -> "Candidates":
        """These candidates with a plan's expected rows, which the decision did not need."""
        estimates = [each.expected for each in plan.slices if each.access is Access.INDEX]
        bounds = [each.rows for each in estimates if each is not None]
        if self.exact or len(bounds) < len(estimates):
            return self
        exact = all(each.least == each.most for each in bounds)
        return replace(self, rows=sum(each.most for each in bounds), exact=exact)


def candidates(run: Execution, readers: SessionReaders) -> Candidates | str:
    """Estimates the matching rows as precisely as needed to choose the reader, if the index serves
    at least half of the table."""
    plan = run.plan
    reason = _without_use(plan)
    if reason is not None:
        return reason
    if plan.predicate is not None and matches_most(plan.predicate):
        return "a negated pattern matches most of the rows"
    estimates = _Estimates(run, readers, searched=_searches(plan))
    for _ in estimates.refine():
        decision = estimates.decision()
        if decision is not None:
            return decision
    return estimates.at_most()


class _Estimates:
    """The current estimates of a relation's rows and of the cost of reading them."""

    def __init__(self, run: Execution, readers: SessionReaders, *, searched: bool) -> None:
        plan, reader = run.plan, run.reader
        self._run = run
        model = CostModel.of(plan, reader.settings)
        self._costs = SparkCosts.of(plan, model, len(reader.query.output), readers)
        # Includes slices that are scanned because many rows match; their entries give the number.
        slices = [each.for_counting() for each in plan.slices]
        self._indexed = [each for each in slices if each.access is Access.INDEX]
        others = [each for each in slices if each.access in OTHERS]
        self._scan_count = len(others)
        with_logs = [each for each in slices if each.is_merged_in_part]
        self._merges = bool(with_logs)
        indexed_bytes, other_bytes = base_file_bytes(self._indexed), base_file_bytes(others)
        self._readers = RelationCosts(self._costs, indexed_bytes, other_bytes, searched)
        self._all = not others and not self._merges and not plan.count(Access.SKIP)
        self._rows = [each.total for each in self._indexed]
        self._total = sum(self._rows)
        self._row_estimates = [_by_manifest(each) for each in self._indexed]
        self._work = [self._cost_range(n, rows) for n, rows in enumerate(self._row_estimates)]
        self._others = self._costs.scanning(others) + self._costs.merging(with_logs)
        self._least = self._most = self._others
        for least, most in self._work:
            self._least += least
            self._most += most
        self._start()

    def refine(self) -> Iterator[None]:
        """Refines the estimates step by step; after each step `decision` may have a result."""
        yield
        if len(self._indexed) > DRIVER_SLICES:
            return
        for look in (_by_bounds, _by_lookup):
            self._start()
            for number, each in enumerate(self._indexed):  # several threads would not be faster
                rows = self._row_estimates[number]
                if rows.least < rows.most:
                    rows = look(self._run, each, rows)
                self._update(number, rows)
                yield

    def decision(self) -> Candidates | str | None:
        """The decision, if no further look-up can change it; else None."""
        if self._all and self._least.rows == self._total:
            return "the index rules out no row"
        likely = self._likely() if self._seen_rows else None
        reader = self._readers.settled(self._least, self._most, likely)
        if reader is not Reader.SPARK:
            return None if reader is None else self._accept(reader)
        if self._readers.reader(self._least) is Reader.SPARK:
            return self._decline(f"at least {round(self._least.rows):,}")
        return self._decline(f"about {round(self._guess * self._total / self._seen_rows):,}")

    def at_most(self) -> Candidates | str:
        """The decision by upper bounds, when no further look-up is possible."""
        reader = self._readers.reader(self._most)
        if reader is Reader.SPARK:
            return self._decline(f"at most {round(self._most.rows):,}")
        return self._accept(reader)

    def of_keys(self, column: str, keys: int) -> Candidates | str:
        """The decision if rows are wanted that have one of some keys in a column."""
        if not self._indexed:
            return "no entry serves its files"
        values = [values_of(each.entries, column) for each in self._indexed]
        share = _likely_share([each for each in values if each is not None], keys)
        work, rows = self._others, 0
        for each, own in zip(self._indexed, values, strict=True):
            count = each.total if own is None else own.count
            work += self._costs.reading(each, share * count)
            rows += count if own is None else min(count, math.ceil(keys * own.equal))
        chosen = self._readers.reader(work)
        if chosen is Reader.SPARK:
            return (
                f"{counted(keys, 'key')} of a join have about {counted(round(work.rows), 'row')}, "
                "and Spark scans them faster"
            )
        return self._candidates(rows, chosen, work, exact=False)

    def _start(self) -> None:
        """Starts a new pass over the slices."""
        self._seen_rows, self._low, self._guess = 0, NOTHING, 0.0

    def _update(self, number: int, rows: RowEstimate) -> None:
        """Updates the estimates with a slice's rows."""
        if rows is not self._row_estimates[number]:
            before, now = self._work[number], self._cost_range(number, rows)
            self._row_estimates[number], self._work[number] = rows, now
            self._least += now[0] - before[0]
            self._most += now[1] - before[1]
        self._seen_rows += self._rows[number]
        self._guess += rows.expected
        low, least = rows.expected / TOO_HIGH, self._work[number][0]
        self._low += least if low <= rows.least else self._costs.reading(self._indexed[number], low)

    def _cost_range(self, number: int, rows: RowEstimate) -> tuple[Work, Work]:
        """The minimum and maximum cost of reading a slice."""
        plan, costs = self._indexed[number], self._costs
        least = costs.reading(plan, rows.least)
        return least, least if rows.least == rows.most else costs.reading(plan, rows.most)

    def _likely(self) -> Work:
        """The cost of all slices, extrapolated from those seen; biased low."""
        unseen = (self._total - self._seen_rows) / self._seen_rows / SLICES_UNLIKE
        return self._low * (1 + unseen)

    def _decline(self, rows: str) -> str:
        if all(each.least == each.most for each in self._row_estimates):
            rows = f"{sum(each.most for each in self._row_estimates):,}"
        if not self._least.rows and not self._guess:
            return "Spark scans the table faster than the index finds rows"
        return (
            f"the index finds {rows} of {counted(self._total, 'row')}, and Spark scans them faster"
        )

    def _accept(self, reader: Reader) -> Candidates:
        exact = all(each.least == each.most for each in self._row_estimates)
        exact = exact and not self._merges
        rows = sum(each.most for each in self._row_estimates)
        return self._candidates(rows, reader, self._most, exact=exact)

    def _candidates(self, rows: int, reader: Reader, work: Work, *, exact: bool) -> Candidates:
        by_tasks = self._readers.reader(work, driver=False) is Reader.TASKS
        return Candidates(rows, exact, reader is Reader.DRIVER, by_tasks, self._scan_count)


def _by_manifest(plan: SlicePlan) -> RowEstimate:
    if plan.expected is not None:
        return plan.expected.rows
    return RowEstimate(0, plan.total, plan.total)


def _by_bounds(run: Execution, plan: SlicePlan, estimate: RowEstimate) -> RowEstimate:
    """The rows by the opened index's bounds, without a look-up."""
    predicate = run.plan.predicate
    assert predicate is not None, "without predicate there is no index access"
    narrower = narrowed_rows(plan, predicate, estimate, run.reader.pool)
    return estimate if narrower is None else narrower


def _by_lookup(run: Execution, plan: SlicePlan, estimate: RowEstimate) -> RowEstimate:
    """The rows by look-ups: at most the candidates."""
    statistics = SliceStatistics.of(plan)
    (exact,) = run.reader.exact_rows([(plan, statistics)])
    count = statistics.candidates
    if count is None:
        return estimate
    return RowEstimate(min(estimate.least, count) if exact is None else count, count, count)


def _searches(plan: QueryPlan) -> bool:
    """Whether a full-text search is among the conditions."""
    predicate = plan.predicate
    return predicate is not None and any(isinstance(each, Match) for each in predicate.leaves())


def scanned_alone(run: Execution, column: str | None) -> bool:
    """Whether row counts, in total or by the values of a column, come from the index alone, except
    for a few bytes that the driver scans."""
    index_only, scan_bytes = 0, 0
    for each in run.plan.slices:
        file_slice = each.file_slice
        scan_bytes += len(file_slice.log_files) * LOG_FILE_BYTES
        if run.reader.is_index_only(each) and (column is None or may_have_few_values(each, column)):
            index_only += 1
        else:
            scan_bytes += file_slice.base_file.size
    return index_only > 0 and driver_may_count(scan_bytes, len(run.plan.slices))


def _without_use(plan: QueryPlan) -> str | None:
    """Why the index is of no use for a plan, whatever its cost; None if it may be."""
    if not any(each.access in BY_ENTRY for each in plan.slices):
        reasons = dict.fromkeys(each.reason for each in plan.slices)
        return "; ".join(list(reasons)[:3]) or "the table is empty"
    return too_little_indexed(plan)


def too_little_indexed(plan: QueryPlan) -> str | None:
    """Why the index serves too little of the table; None if it serves enough."""
    indexed = [each.for_counting().access in BY_ENTRY for each in plan.slices]
    other_bytes = base_file_bytes(
        each for each, is_indexed in zip(plan.slices, indexed, strict=True) if not is_indexed
    )
    indexed_bytes = base_file_bytes(plan.slices) - other_bytes
    if not enough_is_indexed(indexed_bytes, other_bytes):
        share = round(100 * other_bytes / (other_bytes + indexed_bytes))
        return f"no index serves {share} % of the table's bytes"
    return None


def candidates_of_keys(
    run: Execution, session: SessionReaders, column: str, keys: int
) -> Candidates | str:
    """Who reads the rows that have one of some keys, if the index is worth it.

    Args:
        run: The query without the keys, on rows where the column is not NULL.
        column: The column that has to have one of the keys.
        keys: The most keys.
    """
    reason = too_little_indexed(run.plan)
    if reason is not None:
        return reason
    return _Estimates(run, session, searched=False).of_keys(column, keys)


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
