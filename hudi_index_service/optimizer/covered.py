"""Queries that ask what indexes cover: for the covered rows alone (`fast`), or for an answer only
if each base file up to an instant is covered.

Of such a query a slice is covered if its base file has an entry that narrows the predicate, whether
or not a scan of it is cheaper: so the same rows are left out whatever costs are estimated. A slice
in which no row can match, by its partition or by its entry, counts as covered. Rows in log files
are those of their slice.
"""

from dataclasses import replace

from hudi_index_service.errors import IndexRequired, NotCovered
from hudi_index_service.optimizer.plan import (
    NOT_COVERED,
    OTHERS,
    PATH_RULES,
    Access,
    QueryPlan,
    SlicePlan,
)

COVERAGE, NO_USABLE_INDEX, OR_ARM = "coverage", "no_usable_index", "or_arm_without_index"
"""The rules by which no entry serves a slice that may have rows."""


def no_index_serves(reason: str) -> IndexRequired:
    """The error of a query that asks what is covered, of which indexes cover nothing."""
    return IndexRequired(
        f"No index can serve the query: {reason}.",
        remedy="Ask without fast and only_if_covered_to, for a scan.",
    )


def covered_only(plan: QueryPlan, every_slice: QueryPlan) -> QueryPlan:
    """The plan of a query that asks what is covered, without uncovered slices if it is fast; the
    same plan of any other query.

    Args:
        plan: The slices that may have rows, those with entries that narrow the predicate planned by
            index.
        every_slice: The plan of all slices before entries were looked for.

    Raises:
        NotCovered: a base file up to the instant asked for is not covered.
        IndexRequired: no entry of any base file narrows the predicate, though there are some.
    """
    uncovered = [each for each in plan.slices if _is_uncovered(each)] if plan.asks_coverage else []
    if not uncovered:
        return plan
    useless = next((each for each in uncovered if each.rejected_entries), None)
    if useless is not None and not _is_answered(plan, every_slice):
        raise no_index_serves(useless.reason)
    if plan.covered_to is not None:
        _require_covered(plan, min(each.file_slice.base_file.instant for each in uncovered))
    if not plan.fast:
        return plan
    slices = (
        each.skipped(f"left out: {each.reason}", NOT_COVERED) if _is_uncovered(each) else each
        for each in plan.slices
    )
    return replace(plan, slices=tuple(slices))


def _is_uncovered(plan: SlicePlan) -> bool:
    return plan.access in OTHERS and plan.rule in (COVERAGE, NO_USABLE_INDEX, OR_ARM)


def _is_answered(plan: QueryPlan, every_slice: QueryPlan) -> bool:
    """Whether an entry of any slice narrows the predicate, or has excluded it."""
    return any(not _is_uncovered(each) for each in plan.slices) or any(
        each.access in (Access.SKIP, Access.LOGS) and each.rule not in PATH_RULES
        for each in every_slice.slices
    )


def _require_covered(plan: QueryPlan, uncovered: str) -> None:
    """Raises NotCovered if an uncovered base file is not newer than the instant asked for.

    Args:
        uncovered: The instant that wrote the first of them.
    """
    assert plan.covered_to is not None
    if uncovered > plan.covered_to:
        return
    instants = {each.instant for each in plan.snapshot.base_files()}
    covered = max((each for each in instants if each < uncovered), default=None)
    so_far = "of no base file" if covered is None else f"of base files up to instant {covered}"
    raise NotCovered(
        f"The table is not covered up to instant {plan.covered_to}: there are entries {so_far}, "
        f"but not of each that instant {uncovered} wrote."
    )
