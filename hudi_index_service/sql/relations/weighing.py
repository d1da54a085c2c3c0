"""Finds how many rows of a relation match, until that decides who reads it (`optimizer/decide.py`):
first by the row estimates of manifests, then by the opened index's bounds, and by look-ups only if
neither decides."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hudi_index_service.optimizer.cost import CostModel
from hudi_index_service.optimizer.cost.constants import (
    DRIVER_SLICES,
    LOG_FILE_BYTES,
    SLICES_UNLIKE,
    TOO_HIGH,
)
from hudi_index_service.optimizer.cost.in_spark import NOTHING, Reader, SparkCosts, Work
from hudi_index_service.optimizer.decide import (
    RelationCosts,
    driver_may_count,
    enough_is_indexed,
    matches_most,
)
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan, base_file_bytes
from hudi_index_service.predicate.expression import Match
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.slices.index_estimates import narrowed_rows
from hudi_index_service.read.slices.value_counts import may_have_few_values
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.wording import counted


@dataclass(frozen=True, slots=True)
class KeepSparkScan:
    """The reason why the index does not pay, in one sentence without full stop."""

    reason: str


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

    def as_told_by(self, plan: QueryPlan) -> "Candidates":
        """These candidates with a plan's expected rows, which the decision did not need."""
        told = [each.expected for each in plan.slices if each.access is Access.INDEX]
        bounds = [each.rows for each in told if each is not None]
        if self.exact or len(bounds) < len(told):
            return self
        exact = all(each.least == each.most for each in bounds)
        return replace(self, rows=sum(each.most for each in bounds), exact=exact)


def candidates(run: Execution, cores: int) -> Candidates | KeepSparkScan:
    """Estimates the matching rows as precisely as needed to choose the reader, if the index serves
    at least half of the table.

    Args:
        cores: Number of tasks that Spark runs at once.
    """
    plan = run.plan
    declined = _without_use(plan)
    if declined is not None:
        return declined
    if plan.predicate is not None and matches_most(plan.predicate):
        return KeepSparkScan("a negated pattern matches most of the rows")
    found = _Found(run, cores)
    for _ in found.looks():
        decision = found.decision()
        if decision is not None:
            return decision
    return found.at_most()


class _Found:
    """The current estimates of a relation's rows and of the cost of reading them."""

    def __init__(self, run: Execution, cores: int) -> None:
        plan, reader = run.plan, run.reader
        self._run = run
        model = CostModel.of(plan, reader.settings)
        self._costs = SparkCosts.of(plan, model, len(reader.query.output), cores)
        # Includes slices that are scanned because many rows match; their entries give the number.
        covered = [each.for_counting() for each in plan.slices]
        self._asked = [each for each in covered if each.access is Access.INDEX]
        others = [each for each in covered if each.access in (Access.SCAN, Access.MERGE)]
        self._scanned = len(others)
        indexed, unindexed = base_file_bytes(self._asked), base_file_bytes(others)
        self._readers = RelationCosts.of(self._costs, indexed, unindexed, searched=_searches(plan))
        self._all = not others and not plan.count(Access.SKIP)
        self._rows = [each.total for each in self._asked]
        self._total = sum(self._rows)
        self._told = [_by_manifest(each) for each in self._asked]
        self._work = [self._between(n, rows) for n, rows in enumerate(self._told)]
        self._least = self._most = self._costs.scanning(others)
        for least, most in self._work:
            self._least += least
            self._most += most
        self._start()

    def looks(self) -> Iterator[None]:
        """Refines the estimates step by step; after each step `decision` may have a result."""
        yield
        if len(self._asked) > DRIVER_SLICES:
            return
        for look in (_bounded, _looked_up):
            self._start()
            for number, each in enumerate(self._asked):  # several threads would not be faster
                self._tell(number, look(self._run, each, self._told[number]))
                yield

    def decision(self) -> Candidates | KeepSparkScan | None:
        """The decision, if no further look-up can change it; else None."""
        if self._all and self._least.rows == self._total:
            return KeepSparkScan("the index rules out no row")
        likely = self._likely() if self._seen else None
        reader = self._readers.settled(self._least, self._most, likely)
        if reader is not Reader.SPARK:
            return None if reader is None else self._accepted(reader)
        if self._readers.reader(self._least) is Reader.SPARK:
            return self._declined(f"at least {round(self._least.rows)}")
        return self._declined(f"about {round(self._guess * self._total / self._seen)}")

    def at_most(self) -> Candidates | KeepSparkScan:
        """The decision by upper bounds, when no further look-up is possible."""
        reader = self._readers.reader(self._most)
        if reader is Reader.SPARK:
            return self._declined(f"at most {round(self._most.rows)}")
        return self._accepted(reader)

    def _start(self) -> None:
        """Starts a new pass over the slices."""
        self._seen, self._low, self._guess = 0, NOTHING, 0.0

    def _tell(self, number: int, rows: RowEstimate) -> None:
        """Updates the estimates with a slice's rows."""
        if rows is not self._told[number]:
            before, now = self._work[number], self._between(number, rows)
            self._told[number], self._work[number] = rows, now
            self._least += now[0] - before[0]
            self._most += now[1] - before[1]
        self._seen += self._rows[number]
        self._guess += rows.expected
        low, least = rows.expected / TOO_HIGH, self._work[number][0]
        self._low += least if low <= rows.least else self._costs.reading(self._asked[number], low)

    def _between(self, number: int, rows: RowEstimate) -> tuple[Work, Work]:
        """The minimum and maximum cost of reading a slice."""
        plan, costs = self._asked[number], self._costs
        least = costs.reading(plan, rows.least)
        return least, least if rows.least == rows.most else costs.reading(plan, rows.most)

    def _likely(self) -> Work:
        """The cost of all slices, extrapolated from those seen; biased low."""
        others = (self._total - self._seen) / self._seen / SLICES_UNLIKE
        return self._low * (1 + others)

    def _declined(self, rows: str) -> KeepSparkScan:
        if all(each.least == each.most for each in self._told):
            rows = str(sum(each.most for each in self._told))
        if not self._least.rows and not self._guess:
            return KeepSparkScan("Spark scans the table faster than the index finds rows")
        found = f"the index finds {rows} of {counted(self._total, 'row')}"
        return KeepSparkScan(f"{found}, and Spark scans them faster")

    def _accepted(self, reader: Reader) -> Candidates:
        exact = all(each.least == each.most for each in self._told)
        rows = sum(each.most for each in self._told)
        by_tasks = self._readers.reader(self._most, driver=False) is Reader.TASKS
        return Candidates(rows, exact, reader is Reader.DRIVER, by_tasks, self._scanned)


def _by_manifest(plan: SlicePlan) -> RowEstimate:
    if plan.expected is not None:
        return plan.expected.rows
    return RowEstimate(0, plan.total, plan.total)


def _bounded(run: Execution, plan: SlicePlan, known: RowEstimate) -> RowEstimate:
    """The rows by the opened index's bounds, without a look-up."""
    predicate = run.plan.predicate
    assert predicate is not None, "without predicate there is no index access"
    if known.least == known.most:
        return known
    told = narrowed_rows(plan, predicate, known, run.reader)
    return known if told is None else told


def _looked_up(run: Execution, plan: SlicePlan, known: RowEstimate) -> RowEstimate:
    """The rows by look-ups, unless they are known exactly."""
    if known.least == known.most:
        return known
    statistics = SliceStatistics(plan.file_slice.name, plan.access)
    run.reader.exact_rows(plan, statistics)
    found = statistics.candidates
    return known if found is None else RowEstimate(found, found, found)


def _searches(plan: QueryPlan) -> bool:
    """Whether a full-text search is among the conditions."""
    predicate = plan.predicate
    return predicate is not None and any(isinstance(each, Match) for each in predicate.leaves())


def scanned_alone(run: Execution, column: str | None) -> bool:
    """Whether row counts, in total or by the values of a column, come from the index alone, except
    for a few bytes that the driver scans."""
    served, scanned = 0, 0
    for each in run.plan.slices:
        file_slice = each.file_slice
        if run.reader.is_index_only(each) and (column is None or may_have_few_values(each, column)):
            served += 1
            continue
        scanned += len(file_slice.log_files) * LOG_FILE_BYTES
        if file_slice.base_file is not None:
            scanned += file_slice.base_file.size
    return served > 0 and driver_may_count(scanned, len(run.plan.slices))


def _without_use(plan: QueryPlan) -> KeepSparkScan | None:
    """The reason to decline a plan without cost estimates; None if there is none."""
    served = (Access.INDEX, Access.SKIP)
    if not any(each.access in served for each in plan.slices):
        reasons = dict.fromkeys(each.reason for each in plan.slices)
        return KeepSparkScan("; ".join(list(reasons)[:3]) or "the table is empty")
    covered = [each.for_counting().access in served for each in plan.slices]
    others = base_file_bytes(
        each for each, has in zip(plan.slices, covered, strict=True) if not has
    )
    by_index = base_file_bytes(plan.slices) - others
    if not enough_is_indexed(by_index, others):
        share = round(100 * others / (others + by_index))
        return KeepSparkScan(f"no index serves {share} % of the table's bytes")
    return None
