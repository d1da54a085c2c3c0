"""The rules in order of application. A rule is a function from plan to plan that writes its reason
into the slices that it changes."""

from collections.abc import Callable
from dataclasses import replace

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexRequired
from hudi_index_service.optimizer.plan import OTHERS, QueryPlan
from hudi_index_service.optimizer.rules.cheaper_by_cost import cheaper_by_cost
from hudi_index_service.optimizer.rules.corrected_by_history import corrected_by_history
from hudi_index_service.optimizer.rules.most_selective_first import most_selective_first
from hudi_index_service.optimizer.rules.skipping import (
    contradiction,
    excluded_by_statistics,
    implied_predicates,
    partition_pruning,
)
from hudi_index_service.optimizer.rules.whole_table import (
    index_switched_off,
    low_coverage,
    no_predicate,
    small_table,
    too_many_predicates,
)
from hudi_index_service.optimizer.rules.without_narrowing import (
    no_usable_index,
    or_arm_without_index,
)

Rule = Callable[[QueryPlan, Settings], QueryPlan]

WITHOUT_ENTRIES: tuple[Rule, ...] = (
    implied_predicates,
    contradiction,
    partition_pruning,
)
"""Rules that need no entries; no entries are looked up for the slices that they skip."""

WITH_ENTRIES: tuple[Rule, ...] = (
    index_switched_off,
    no_predicate,
    too_many_predicates,
    excluded_by_statistics,
    or_arm_without_index,
    no_usable_index,
    small_table,
    low_coverage,
    most_selective_first,
    cheaper_by_cost,
    corrected_by_history,
)
"""Rules that decline entries, the last three by cost."""

RULES = WITHOUT_ENTRIES + WITH_ENTRIES


def optimize(
    plan: QueryPlan,
    settings: Settings,
    find_entries: Callable[[QueryPlan], QueryPlan],
    exclude: Callable[[QueryPlan], QueryPlan] = lambda plan: plan,
) -> QueryPlan:
    """Applies all rules in order.

    Args:
        plan: The first plan: slices without a base file are merged, all others read by index.
        find_entries: Finds the entries of the slices to be read by index; slices without entries
            are scanned. It gets a plan without the slices that are skipped.
        exclude: Skips slices that cannot match, before entries are found.

    Raises:
        IndexRequired: the caller requires the index, and a slice would be read without it.
    """
    for rule in WITHOUT_ENTRIES:
        plan = rule(plan, settings)
    if plan.uses_index:
        plan = exclude(plan)
    # A query for one value leaves few of a table's thousands of slices.
    every_slice, left = plan, plan.left()
    plan = replace(plan, slices=tuple([plan.slices[number] for number in left]))
    if plan.uses_index:
        plan = find_entries(plan)
    for rule in WITH_ENTRIES:
        plan = rule(plan, settings)
    if plan.use_index == "require":
        unindexed = next((each for each in plan.slices if each.access in OTHERS), None)
        if unindexed is not None:
            raise IndexRequired(
                f"{unindexed.file_slice.name} cannot be read through an index: {unindexed.reason}."
            )
    return plan.with_skipped(every_slice, left)
