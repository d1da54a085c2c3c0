"""What a finished query had, for the history: sums over its slices, none of its literals."""

from collections.abc import Iterable

from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.history.history import History
from hudi_index_service.optimizer.history.record import Amount, Observation
from hudi_index_service.optimizer.history.shape import query_shape
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.statistics import SliceStatistics

_READ = (Access.INDEX, Access.SCAN)

_Guesses = dict[Amount, tuple[float, float]]

_answered: dict[str, tuple[tuple[ServingEntry, ...], frozenset[str]]] = {}
"""Shape → entries, and the columns of the shape's leaves that they answer. Where the next query of
the shape has entries with the same columns, these are not asked again."""
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
    """What is to be remembered of a query; None if that is nothing: see `is_remembered`.

    Args:
        read: The slices, in the plan's order; those that were not begun may be missing at the end.
        whole: Whether all matching rows were read: then their number is known, and what reading
            them took.
        pace: What a slice would have taken alone, as a part of what it took beside others.
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
    guesses: _Guesses = {}
    for planned, did in zip(plan.slices, read, strict=False):
        if planned.access in _READ:
            _add_amounts(amounts, did, pace)
            if whole:
                _add_guesses(guesses, amounts, planned, did, pace)
    return Observation(
        shape,
        columns,
        columns - answered - told_by_path,
        answered if asked else frozenset(),
        guesses,
        amounts,
    )


class ReadByTasks:
    """Gathers what Spark tasks read of a plan's slices. Whenever all of them have been read, the
    history has one query more: a DataFrame may be asked for its rows several times.

    Not safe to use from several threads: Spark tells of its tasks by one.
    """

    def __init__(self, plan: QueryPlan, history: History) -> None:
        self._plan = plan
        self._history = history
        self._awaited = sum(each.access is not Access.SKIP for each in plan.slices)
        self._read: dict[int, SliceStatistics] = {}

    def add(self, number: int, read: SliceStatistics) -> None:
        """Takes what was read of a slice, by its number among those that are read at all. What a
        task tells that Spark ran again stands for what the first one told."""
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
        # Which tasks ran beside each other, and on what, is not known.
        seen = observation(self._plan, every, whole=True, pace=1.0)
        if seen is not None:
            self._history.record(self._plan.table, seen)


def _answered_columns(
    predicate: Predicate, shape: str, slices: Iterable[SlicePlan]
) -> tuple[frozenset[str], frozenset[str]]:
    """The columns of leaves that the entries of a slice that has some answer, and those whose value
    partitions' paths tell."""
    by_path: frozenset[str] = frozenset()
    for each in slices:
        by_path = by_path or frozenset(each.values)
        entries = each.entries or each.unused
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
    add("lookup_ms", did.lookup_ms * pace)
    if did.access is Access.INDEX:
        amounts["by_index"] = 1.0  # of queries, not of slices
        add("candidates", did.candidates or 0)
        add("pages", did.pages)
        add("bytes", did.bytes_read)
        add("index_ms", did.ms * pace)
    else:
        amounts["scanned"] = 1.0
        add("scan_rows", did.rows_checked)
        add("scan_bytes", did.bytes_read)
        add("scan_ms", (did.ms - did.lookup_ms) * pace)


def _add_guesses(
    guesses: _Guesses,
    amounts: dict[str, float],
    planned: SlicePlan,
    did: SliceStatistics,
    pace: float,
) -> None:
    """What was expected of a slice that was read for all its rows, and what it had."""
    if planned.expected is None:
        return
    expected = planned.expected.before_history or planned.expected

    def add(name: Amount, guess: float, actual: float) -> None:
        known = guesses.get(name)
        guesses[name] = (guess, actual) if known is None else (known[0] + guess, known[1] + actual)

    add("rows", expected.rows.expected, did.rows_returned)
    scanned = did.access is Access.SCAN
    scan_ms = did.ms - did.lookup_ms
    if scanned and did.bytes_read:
        add("scan_ms", expected.scan_ms, scan_ms * pace)
    if planned.access is not Access.INDEX:
        return
    if not scanned and did.pages:
        add("pages", expected.pages, did.pages)
    if did.opened or did.index_requests:
        return  # opening comes once; the guess tells that apart
    # Counted by the index alone, rows are not read: of that, nothing is expected.
    if scanned or did.pages or not did.candidates:
        add("index_ms", expected.index_ms, did.ms * pace)
        amounts["asked"] = amounts.get("asked", 0.0) + 1.0
        amounts["asked_ms"] = amounts.get("asked_ms", 0.0) + did.ms
        unasked = scan_ms if scanned else max(did.ms, expected.scan_ms)
        amounts["unasked_ms"] = amounts.get("unasked_ms", 0.0) + unasked
        if scanned:
            amounts["in_vain"] = 1.0  # of queries, not of slices
