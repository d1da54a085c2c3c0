"""Records a finished query, without literals: for the history sums over its slices, and what it
took for whoever counts this process's queries."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.history.history import History
from hudi_index_service.optimizer.history.record import Observation
from hudi_index_service.optimizer.history.shape import query_shape
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.optimizer.rules import EXCLUDED
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.slices.open_slices import COUNTED, NO_ROW_FOUND
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics

_READ = (Access.INDEX, Access.SCAN)


@dataclass(frozen=True, slots=True)
class QueryTaken:
    """What a query of this process took.

    Attributes:
        path: How its slices were read, by the first of these that any was: ``index``, ``merge``,
            ``scan``, ``logs``; ``skip`` if none was read.
        rule: The rule that decided so for most of these slices; "" if it had no slice.
        seconds: From its beginning to its end.
        data_bytes, index_bytes: Bytes read from base files and stored values, and fetched for the
            index from remote stores.
        entries_used, entries_opened: The index entries used, and those of them that had to be
            opened first.
    """

    path: str
    rule: str
    seconds: float
    data_bytes: int
    index_bytes: int
    entries_used: int
    entries_opened: int


QueryListener = Callable[[QueryTaken], None]

_PATHS = (Access.INDEX, Access.MERGE, Access.SCAN, Access.LOGS)
_listeners: tuple[QueryListener, ...] = ()


def listen(listener: QueryListener) -> None:
    """From now on calls a function, in any thread, with each query that ends in this process. It
    should take no time, and may raise no error."""
    global _listeners
    _listeners = (*_listeners, listener)


def stop_listening(listener: QueryListener) -> None:
    """Undoes `listen`."""
    global _listeners
    _listeners = tuple(each for each in _listeners if each != listener)


def tell(plan: QueryPlan, statistics: ReadStatistics, seconds: float) -> None:
    """Tells the listeners of a query that has ended."""
    if not _listeners:
        return
    # Of ten thousand slices few are read: the others are not looked at.
    read = statistics.begun
    accesses = {each.access for each in read.values()}
    path = next((each for each in _PATHS if each in accesses), Access.SKIP)
    rules = Counter(plan.slices[number].rule for number in read if read[number].access is path)
    if path is Access.SKIP:
        rules.update(each.rule for each in plan.slices[:1])
    opened = sum(each.opened for each in read.values())
    used = sum(len(plan.slices[n].entries) for n in read if read[n].access is Access.INDEX)
    taken = QueryTaken(
        path.value,
        next((rule for rule, _ in rules.most_common(1)), ""),
        seconds,
        statistics.bytes_read,
        statistics.index_bytes,
        max(used, opened),
        opened,
    )
    for listener in _listeners:
        listener(taken)


def is_remembered(plan: QueryPlan) -> bool:
    """Whether a query is worth remembering: it has a predicate, and its plan took indexes into
    account."""
    return not (
        plan.predicate is None
        or plan.switched_off
        or plan.use_index == "never"
        or not plan.slices
        or not plan.predicate.columns()  # a constant, whatever the rows
    )


def uses_index(plan: QueryPlan) -> bool:
    """Whether any slice is read through an index, or skipped by an index or its statistics."""
    return any(
        each.access is Access.INDEX or each.rule in (EXCLUDED, NO_ROW_FOUND, COUNTED)
        for each in plan.slices
    )


def record(
    history: History,
    plan: QueryPlan,
    read: Iterable[tuple[SlicePlan, Sequence[SliceStatistics]]],
    *,
    whole: bool,
    pace: float,
) -> None:
    """Adds a query to the history, if it `is_remembered`.

    Args:
        read: The slices that were read, with the statistics of each of their parts.
        whole: Whether all matching rows were read, so that their number and cost are known.
        pace: The time of a slice read alone, as a share of its time in parallel to others.
    """
    predicate = plan.predicate
    if predicate is None or not is_remembered(plan):
        return
    columns, shape = predicate.columns(), plan.shape or query_shape(predicate)
    answered_columns, path_columns = _answered_columns(predicate, plan.slices)
    # What log files add is not the index's, and not known when rows are estimated.
    of_base_files = [
        (planned, parts)
        for planned, parts in read
        if (planned.access in _READ or planned.rule == COUNTED) and not planned.file_slice.log_files
    ]
    guesses = [
        (planned.expected.guess, sum(each.rows_returned for each in parts))
        for planned, parts in of_base_files
        if whole and planned.expected is not None
    ]
    seen = Observation(
        shape,
        columns,
        columns - answered_columns - path_columns,
        answered_columns if uses_index(plan) else frozenset(),
        (sum(guess for guess, _ in guesses), sum(rows for _, rows in guesses)) if guesses else None,
        _amounts([each for _, parts in of_base_files for each in parts], pace),
    )
    history.record(plan.table, seen)


def recorder_of_tasks(
    history: History, plan: QueryPlan, parts: Sequence[int]
) -> Callable[[int, SliceStatistics], None]:
    """Takes the statistics of the parts in which Spark tasks read a plan's slices, by number. A
    repeated task replaces the statistics of the first one. Each time all slices have been read, the
    history gets one more query, since a DataFrame may be evaluated several times.

    Not safe to use from several threads: Spark reports its tasks in one.

    Args:
        parts: For each, the number of its slice among those that are not skipped.
    """
    slices = [plan.slices[number] for number in plan.left()]
    by_part: dict[int, SliceStatistics] = {}

    def add(number: int, statistics: SliceStatistics) -> None:
        by_part[number] = statistics
        if len(by_part) < len(parts):
            return
        by_slice: list[list[SliceStatistics]] = [[] for _ in slices]
        for part, slice_number in enumerate(parts):
            by_slice[slice_number].append(by_part[part])
        by_part.clear()
        # Which tasks ran in parallel, and on which cores, is not known.
        record(history, plan, zip(slices, by_slice, strict=True), whole=True, pace=1.0)

    return add


def _answered_columns(
    predicate: Predicate, slices: Sequence[SlicePlan]
) -> tuple[frozenset[str], frozenset[str]]:
    """The columns of leaves that the entries of the first slice with entries answer, and the
    columns whose value is in the partitions' paths. Where segments have excluded every slice that
    has entries, no entry was asked: all columns then count as answered."""
    for each in slices:
        entries = each.known_entries
        if entries:
            answered = (
                leaf.columns()
                for leaf in predicate.leaves()
                if any(entry.answer(leaf) is not Answer.NONE for entry in entries)
            )
            return frozenset().union(*answered), frozenset(each.values)
    path_columns = (frozenset(each.values) for each in slices if each.values)
    excluded = any(each.rule == EXCLUDED for each in slices)
    return predicate.columns() if excluded else frozenset(), next(path_columns, frozenset())


def _amounts(parts: Sequence[SliceStatistics], pace: float) -> dict[str, float]:
    """The sums over what was read; see `HistoryShape`."""
    by_index = [each for each in parts if each.access is Access.INDEX]
    scanned = [each for each in parts if each.access is not Access.INDEX]
    amounts: dict[str, float] = {}
    if parts:
        amounts["rows"] = sum(each.rows_returned for each in parts)
    if by_index:
        amounts["by_index"] = 1.0  # of queries, not of slices
        amounts["bytes"] = sum(each.bytes_read for each in by_index)
        amounts["index_ms"] = sum(each.ms for each in by_index) * pace
    if scanned:
        amounts["scanned"] = 1.0
        amounts["scan_rows"] = sum(each.rows_checked for each in scanned)
        amounts["scan_bytes"] = sum(each.bytes_read for each in scanned)
        amounts["scan_ms"] = sum(each.ms - each.lookup_ms for each in scanned) * pace
    return amounts
