"""Declines the index for an OR with an unindexed arm, since every row remains a candidate."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from hudi_index_service.config import Settings
from hudi_index_service.optimizer.narrowing import cached_by_layout, narrowed_slices, narrows
from hudi_index_service.optimizer.plan import QueryPlan, SlicePlan
from hudi_index_service.predicate.expression import Or, Predicate
from hudi_index_service.predicate.fold import conjuncts


def or_arm_without_index(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Scans the slices where nothing narrows the predicate because some arms of an OR have no
    index."""
    predicate = plan.predicate
    if predicate is None or not any(_ors(predicate)):
        return plan
    narrowed = narrowed_slices(plan, predicate)
    if all(narrowed):
        return replace(plan, narrowed=narrowed)
    reason_of = cached_by_layout(partial(_reason, predicate))

    def planned(each: SlicePlan) -> SlicePlan:
        reason = reason_of(each)
        return each if reason is None else each.declined(reason, "or_arm_without_index")

    slices = tuple(
        each if is_narrowed else planned(each)
        for each, is_narrowed in zip(plan.slices, narrowed, strict=True)
    )
    return replace(plan, slices=slices, narrowed=narrowed)


def _reason(predicate: Predicate, slice_plan: SlicePlan) -> str | None:
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
