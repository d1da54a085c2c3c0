"""Records a finished query for the history: sums over its slices, without literals."""

from collections.abc import Iterable

from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.history.history import History
from hudi_index_service.optimizer.history.record import Observation
from hudi_index_service.optimizer.history.shape import query_shape
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.statistics import SliceStatistics

_READ = (Access.INDEX, Access.SCAN)

_answered: dict[str, tuple[tuple[ServingEntry, ...], frozenset[str]]] = {}
"""Shape → entries, and the columns of the shape's leaves that they answer; reused for the next
query of the shape if its entries have the same columns."""
_MOST_ANSWERED = 1_000


def is_remembered(plan: QueryPlan) -> bool:
    """Whether a query is worth remembering: it has a predicate, and its plan took indexes into
    account."""
    return not (
        plan.predicate is None
        or plan.switched_off
        or plan.use_index == "never"
        or not plan.slices
        or not plan.predicate.columns()  # TRUE or FALSE, whatever the rows
    )


def observation(
    plan: QueryPlan, read: Iterable[SliceStatistics], *, whole: bool, pace: float
) -> Observation | None:
    """The observation of a query for the history; None if `is_remembered` is false.

    Args:
        read: The slices in the plan's order; slices that were not started may be missing at the
            end.
        whole: Whether all matching rows were read, so that their number and cost are known.
        pace: The time of a slice read alone, as a share of its time in parallel to others.
    """
    predicate = plan.predicate
    if predicate is None or not is_remembered(plan):
        return None
    columns, shape = predicate.columns(), plan.shape or query_shape(predicate)
    answered, told_by_path = _answered_columns(predicate, shape, plan.slices)
    asked = any(
        each.access is Access.INDEX or each.rule == "excluded_by_statistics" for each in plan.slices
    )
    amounts: dict[str, float] = {}
    guess, found = None, 0
    for planned, did in zip(plan.slices, read, strict=False):
        if planned.access in _READ:
            _add_amounts(amounts, did, pace)
            if whole and planned.expected is not None:
                guess = (guess or 0.0) + planned.expected.guess
                found += did.rows_returned
    return Observation(
        shape,
        columns,
        columns - answered - told_by_path,
        answered if asked else frozenset(),
        None if guess is None else (guess, found),
        amounts,
    )


class ReadByTasks:
    """Collects the statistics of Spark tasks for a plan's slices. Each time all slices have been
    read, the history gets one more query, since a DataFrame may be evaluated several times.

    Not safe to use from several threads: Spark reports its tasks in one.
    """

    def __init__(self, plan: QueryPlan, history: History) -> None:
        self._plan = plan
        self._history = history
        self._awaited = sum(each.access is not Access.SKIP for each in plan.slices)
        self._read: dict[int, SliceStatistics] = {}

    def add(self, number: int, read: SliceStatistics) -> None:
        """Adds the statistics of a slice, by its number among the slices that are not skipped. A
        repeated task replaces the statistics of the first one."""
        self._read[number] = read
        if len(self._read) < self._awaited:
            return
        told = iter([self._read[each] for each in range(self._awaited)])
        self._read = {}
        every = [
            SliceStatistics(each.file_slice.name, each.access)
            if each.access is Access.SKIP
            else next(told)
            for each in self._plan.slices
        ]
        # Which tasks ran in parallel, and on which cores, is not known.
        seen = observation(self._plan, every, whole=True, pace=1.0)
        if seen is not None:
            self._history.record(self._plan.table, seen)


def _answered_columns(
    predicate: Predicate, shape: str, slices: Iterable[SlicePlan]
) -> tuple[frozenset[str], frozenset[str]]:
    """The columns of leaves that the entries of the first slice with entries answer, and the
    columns whose value is in the partitions' paths."""
    by_path: frozenset[str] = frozenset()
    for each in slices:
        by_path = by_path or frozenset(each.values)
        entries = each.entries or each.rejected_entries
        if entries:
            return _answered_by(entries, predicate, shape), frozenset(each.values)
    return frozenset(), by_path


def _answered_by(
    entries: tuple[ServingEntry, ...], predicate: Predicate, shape: str
) -> frozenset[str]:
    known = _answered.get(shape)
    if known is not None and _are_alike(known[0], entries):
        return known[1]
    leaves = (
        leaf.columns()
        for leaf in predicate.leaves()
        if any(entry.answer(leaf) is not Answer.NONE for entry in entries)
    )
    answered: frozenset[str] = frozenset().union(*leaves)
    if len(_answered) >= _MOST_ANSWERED:
        _answered.clear()
    _answered[shape] = entries, answered
    return answered


def _are_alike(some: tuple[ServingEntry, ...], others: tuple[ServingEntry, ...]) -> bool:
    return len(some) == len(others) and all(
        one.columns is other.columns and one.index_type is other.index_type
        for one, other in zip(some, others, strict=True)
    )


def _add_amounts(amounts: dict[str, float], did: SliceStatistics, pace: float) -> None:
    def add(name: str, amount: float) -> None:
        amounts[name] = amounts.get(name, 0.0) + amount

    add("rows", did.rows_returned)
    if did.access is Access.INDEX:
        amounts["by_index"] = 1.0  # of queries, not of slices
        add("bytes", did.bytes_read)
        add("index_ms", did.ms * pace)
    else:
        amounts["scanned"] = 1.0
        add("scan_rows", did.rows_checked)
        add("scan_bytes", did.bytes_read)
        add("scan_ms", (did.ms - did.lookup_ms) * pace)
