"""Whether a relation is read through the index: what the optimizer's model says is decided, first
by what manifests say of its rows, then by what the opened index bounds, and by look-ups only where
neither tells."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hudi_index_service.optimizer.cost import CostModel
from hudi_index_service.optimizer.cost.in_spark import NOTHING, Reader, SparkCosts, Work
from hudi_index_service.optimizer.expected import RowEstimate
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan, base_file_bytes
from hudi_index_service.predicate.expression import And, Like, Match, Not, Predicate, RLike
from hudi_index_service.read.counted_values import may_have_few_values
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.index_estimates import narrowed_rows
from hudi_index_service.read.statistics import SliceStatistics

MOST_BYTES_SCANNED_HERE = 16 * 1024 * 1024
"""Of base files that no index serves: more are not read by the driver."""

_MOST_VALUES_HERE = 250_000  # of rows that are handed over: about `rows.MOST_BYTES`
_LOG_FILE_BYTES = 1024 * 1024  # how large one is, the timeline does not say; to merge it takes long
_MOST_SLICES_HERE = 1_000
_GUESSED = 4  # a guess may be so many times too high
_UNLIKE = 2  # slices differ


@dataclass(frozen=True, slots=True)
class Declined:
    """Why the index does not pay, in one sentence without full stop."""

    reason: str


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is to be read for a query.

    Attributes:
        rows: The rows of indexed slices that may match, at most.
        exact: Whether so many do, by the index.
        few: Whether they are read here rather than by Spark tasks.
        by_tasks: Whether tasks read them sooner than Spark's scan, should they be too large to be
            handed over by the driver.
        scanned: Slices that no index serves.
    """

    rows: int
    exact: bool
    few: bool
    by_tasks: bool
    scanned: int

    def as_told_by(self, plan: QueryPlan) -> "Candidates":
        """The same with the rows that a plan expects, which nobody had to know to decide."""
        told = [each.expected for each in plan.slices if each.access is Access.INDEX]
        bounds = [each.rows for each in told if each is not None]
        if self.exact or len(bounds) < len(told):
            return self
        exact = all(each.least == each.most for each in bounds)
        return replace(self, rows=sum(each.most for each in bounds), exact=exact)


def candidates(run: Execution, cores: int) -> Candidates | Declined:
    """Asks the index how many rows may match, as far as that decides who reads them, where it
    serves at least half of the table.

    Args:
        cores: Tasks that Spark runs at once.
    """
    plan = run.plan
    declined = _without_use(plan)
    if declined is not None:
        return declined
    if plan.predicate is not None and _leaves_most(plan.predicate):
        return Declined("what is unlike a pattern is most of the rows")
    found = _Found(run, cores)
    for _ in found.looks():
        decision = found.decision()
        if decision is not None:
            return decision
    return found.at_most()


class _Found:
    """What is known by now of a relation's rows, and what reading them takes."""

    def __init__(self, run: Execution, cores: int) -> None:
        plan, reader = run.plan, run.reader
        self._run = run
        model = CostModel.of(plan, reader.settings)
        self._costs = SparkCosts.of(plan, model, len(reader.query.output), cores)
        # Also those that are scanned since so many rows match: how many, their entries tell.
        covered = [each.for_counting() for each in plan.slices]
        self._asked = [each for each in covered if each.access is Access.INDEX]
        others = [each for each in covered if each.access in (Access.SCAN, Access.MERGE)]
        self._scanned = len(others)
        self._many_bytes = base_file_bytes(others) > MOST_BYTES_SCANNED_HERE
        # Where no index tells, as many rows are taken to match in as many bytes.
        self._beside = base_file_bytes(others) / max(1, base_file_bytes(self._asked))
        self._all = not others and not plan.count(Access.SKIP)
        self._searched = _searches(plan)
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
        """Finds out more and more; after each step a decision may be there."""
        yield
        if len(self._asked) > _MOST_SLICES_HERE:
            return
        for look in (_bounded, _looked_up):
            self._start()
            for number, each in enumerate(self._asked):  # several threads would not be faster
                self._tell(number, look(self._run, each, self._told[number]))
                yield

    def decision(self) -> Candidates | Declined | None:
        """What is decided, whatever else might be found; None if that could turn it."""
        least, most = self._reader(self._least), self._reader(self._most)
        if self._all and self._least.rows == self._total:
            return Declined("the index rules out no row")
        if least is Reader.SPARK:
            return self._declined(f"at least {round(self._least.rows)}")
        if least is most:
            return self._accepted(most)
        if self._seen and self._reader(self._likely()) is Reader.SPARK:
            return self._declined(f"about {round(self._guess * self._total / self._seen)}")
        return None

    def at_most(self) -> Candidates | Declined:
        """The decision where nothing more is to be found out."""
        reader = self._reader(self._most)
        if reader is Reader.SPARK:
            return self._declined(f"at most {round(self._most.rows)}")
        return self._accepted(reader)

    def _start(self) -> None:
        """From now on slices are looked at anew."""
        self._seen, self._low, self._guess = 0, NOTHING, 0.0

    def _tell(self, number: int, rows: RowEstimate) -> None:
        """Takes in what is known of a slice's rows now."""
        if rows is not self._told[number]:
            before, now = self._work[number], self._between(number, rows)
            self._told[number], self._work[number] = rows, now
            self._least += now[0] - before[0]
            self._most += now[1] - before[1]
        self._seen += self._rows[number]
        self._guess += rows.expected
        low, least = rows.expected / _GUESSED, self._work[number][0]
        self._low += least if low <= rows.least else self._costs.reading(self._asked[number], low)

    def _between(self, number: int, rows: RowEstimate) -> tuple[Work, Work]:
        """The least that reading a slice takes, and the most."""
        plan, costs = self._asked[number], self._costs
        least = costs.reading(plan, rows.least)
        return least, least if rows.least == rows.most else costs.reading(plan, rows.most)

    def _likely(self) -> Work:
        """Of all slices, by those that were looked at: rather too little than too much."""
        others = (self._total - self._seen) / self._seen / _UNLIKE
        return self._low * (1 + others)

    def _reader(self, work: Work, *, driver: bool = True) -> Reader:
        """Who reads so much for the least.

        Args:
            work: Of the slices that an index serves, and scanning the others.
        """
        work += Work(rows=work.rows * self._beside)
        among = [Reader.TASKS]
        if driver and not self._many_bytes and self._costs.values(work) <= _MOST_VALUES_HERE:
            among.insert(0, Reader.DRIVER)
        if not self._searched:  # without the index, the words of every text would have to be found
            among.append(Reader.SPARK)
        return self._costs.cheapest(work, among)

    def _declined(self, rows: str) -> Declined:
        if all(each.least == each.most for each in self._told):
            rows = str(sum(each.most for each in self._told))
        if not self._least.rows and not self._guess:
            return Declined("Spark scans the table faster than the index would be asked")
        found = f"the index finds {rows} of {self._total} rows"
        return Declined(f"{found}, and Spark scans them faster")

    def _accepted(self, reader: Reader) -> Candidates:
        exact = all(each.least == each.most for each in self._told)
        rows = sum(each.most for each in self._told)
        by_tasks = self._reader(self._most, driver=False) is Reader.TASKS
        return Candidates(rows, exact, reader is Reader.DRIVER, by_tasks, self._scanned)


def _by_manifest(plan: SlicePlan) -> RowEstimate:
    if plan.expected is not None:
        return plan.expected.rows
    return RowEstimate(0, plan.total, plan.total)


def _bounded(run: Execution, plan: SlicePlan, known: RowEstimate) -> RowEstimate:
    """By what the opened index says without a look-up."""
    predicate = run.plan.predicate
    assert predicate is not None, "without predicate there is no index access"
    if known.least == known.most:
        return known
    told = narrowed_rows(plan, predicate, known, run.reader)
    return known if told is None else told


def _looked_up(run: Execution, plan: SlicePlan, known: RowEstimate) -> RowEstimate:
    """By look-ups, where these are not made for nothing."""
    if known.least == known.most:
        return known
    statistics = SliceStatistics(plan.file_slice.name, plan.access)
    run.reader.settled_rows(plan, statistics)
    found = statistics.candidates
    return known if found is None else RowEstimate(found, found, found)


def _searches(plan: QueryPlan) -> bool:
    """Whether a full-text search is among the conditions."""
    predicate = plan.predicate
    return predicate is not None and any(isinstance(each, Match) for each in predicate.leaves())


def scanned_alone(run: Execution, column: str | None) -> bool:
    """Whether numbers of rows, by the values of a column or altogether, come from the index alone
    but for a few bytes that are read here."""
    served, scanned = 0, 0
    for each in run.plan.slices:
        file_slice = each.file_slice
        if run.reader.may_settle(each) and (column is None or may_have_few_values(each, column)):
            served += 1
            continue
        scanned += len(file_slice.log_files) * _LOG_FILE_BYTES
        if file_slice.base_file is not None:
            scanned += file_slice.base_file.size
    few = scanned <= MOST_BYTES_SCANNED_HERE and len(run.plan.slices) <= _MOST_SLICES_HERE
    return served > 0 and few


def _leaves_most(predicate: Predicate) -> bool:
    """Whether finding out how many rows are left would take going through most of the index."""
    match predicate:
        case And(operands):
            return all(map(_leaves_most, operands))
        case Not(Like() | RLike()):
            return True
    return False


def _without_use(plan: QueryPlan) -> Declined | None:
    """Why a plan is not even weighed."""
    served = (Access.INDEX, Access.SKIP)
    if not any(each.access in served for each in plan.slices):
        reasons = dict.fromkeys(each.reason for each in plan.slices)
        return Declined("; ".join(list(reasons)[:3]) or "the table is empty")
    covered = [each.for_counting().access in served for each in plan.slices]
    others = base_file_bytes(
        each for each, has in zip(plan.slices, covered, strict=True) if not has
    )
    by_index = base_file_bytes(plan.slices) - others
    if others > max(by_index, MOST_BYTES_SCANNED_HERE):
        share = round(100 * others / (others + by_index))
        return Declined(f"no index serves {share} % of the table's bytes")
    return None
