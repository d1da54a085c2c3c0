"""Rules that decline entries which narrow nothing, since every row of the slice remains a
candidate: they are not worth opening."""

from collections.abc import Iterator, Set
from dataclasses import replace
from functools import partial

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.narrowing import cached_by_layout, narrowed_slices, narrows
from hudi_index_service.optimizer.plan import Access, QueryPlan, SlicePlan
from hudi_index_service.predicate.expression import Or, Predicate
from hudi_index_service.predicate.fold import conjuncts

_REASON, _RULE = "no index narrows the predicate", "no_usable_index"


def or_arm_without_index(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans the slices where nothing narrows the predicate because some arms of an OR have no
    index."""
    predicate = plan.predicate
    if predicate is None or not any(_ors(predicate)):
        return plan
    narrowed = narrowed_slices(plan, predicate)
    if all(narrowed):
        return replace(plan, narrowed=narrowed)
    reason_of = cached_by_layout(partial(_unanswered_or, predicate))

    def planned(each: SlicePlan) -> SlicePlan:
        reason = reason_of(each)
        return each if reason is None else each.declined(reason, "or_arm_without_index")

    slices = tuple(
        each if is_narrowed else planned(each)
        for each, is_narrowed in zip(plan.slices, narrowed, strict=True)
    )
    return replace(plan, slices=slices, narrowed=narrowed)


def _unanswered_or(predicate: Predicate, slice_plan: SlicePlan) -> str | None:
    """Why an OR with some indexed arms is not answered; None if there is no such OR."""
    for each in _ors(predicate):
        missing = [arm for arm in each.operands if not narrows(arm, slice_plan)]
        if len(missing) < len(each.operands):
            # Without literals: search terms must not appear in the log.
            columns = sorted(frozenset[str]().union(*(arm.columns() for arm in missing)))
            return f"an OR has an arm on {', '.join(columns)} that no index answers"
    return None


def _ors(predicate: Predicate) -> Iterator[Or]:
    """The ORs among the predicate's conjuncts, or the predicate itself if it is an OR."""
    return (each for each in conjuncts(predicate) if isinstance(each, Or))


def no_usable_index(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans the slices whose entries cannot narrow the predicate."""
    predicate = plan.predicate
    if predicate is None:
        return plan
    narrowed = plan.narrowed or narrowed_slices(plan, predicate)
    if all(narrowed):
        return plan
    columns = predicate.columns()
    slices = tuple(
        each
        if is_narrowed or each.access is not Access.INDEX
        else each.declined(_unnarrowed(each, columns), _RULE)
        for each, is_narrowed in zip(plan.slices, narrowed, strict=True)
    )
    return replace(plan, slices=slices, narrowed=narrowed)


def _unnarrowed(plan: SlicePlan, columns: Set[str]) -> str:
    """Why no index narrows a predicate on these columns: perhaps since an entry lacks one of
    them."""
    for serving in plan.entries:
        for each in serving.entry.manifest.skipped:
            if each.name in columns:
                return (
                    f"its {serving.index_type.name} entry lacks column {each.name}, which only "
                    "Spark reads in this base file"
                )
    return _REASON
