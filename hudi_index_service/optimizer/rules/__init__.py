"""The rules, in the order in which they are applied. A rule is a function from plan to plan; it
writes its reason into the slices that it changes."""

from collections.abc import Callable

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexRequired
from hudi_index_service.optimizer.plan import Access, QueryPlan
from hudi_index_service.optimizer.rules.cheaper_by_cost import cheaper_by_cost
from hudi_index_service.optimizer.rules.contradiction import contradiction
from hudi_index_service.optimizer.rules.corrected_by_history import corrected_by_history
from hudi_index_service.optimizer.rules.excluded_by_statistics import excluded_by_statistics
from hudi_index_service.optimizer.rules.implied_predicates import implied_predicates
from hudi_index_service.optimizer.rules.index_switched_off import index_switched_off
from hudi_index_service.optimizer.rules.low_coverage import low_coverage
from hudi_index_service.optimizer.rules.most_selective_first import most_selective_first
from hudi_index_service.optimizer.rules.no_predicate import no_predicate
from hudi_index_service.optimizer.rules.no_usable_index import no_usable_index
from hudi_index_service.optimizer.rules.or_arm_without_index import or_arm_without_index
from hudi_index_service.optimizer.rules.partition_pruning import partition_pruning
from hudi_index_service.optimizer.rules.small_table import small_table
from hudi_index_service.optimizer.rules.too_many_predicates import too_many_predicates

Rule = Callable[[QueryPlan, Settings], QueryPlan]

BEFORE_COVERAGE: tuple[Rule, ...] = (
    implied_predicates,
    contradiction,
    partition_pruning,
)
"""These need no entries: of what they leave out, none is looked for."""

ABOUT_ENTRIES: tuple[Rule, ...] = (
    index_switched_off,
    no_predicate,
    too_many_predicates,
    excluded_by_statistics,
    or_arm_without_index,
    no_usable_index,
    small_table,
    low_coverage,
)
"""These take entries away. Where none is left, nothing remains to be decided."""

BY_COST: tuple[Rule, ...] = (
    most_selective_first,
    cheaper_by_cost,
    corrected_by_history,
)
"""These weigh the entries that are left against a scan."""

AFTER_COVERAGE = ABOUT_ENTRIES + BY_COST

RULES = BEFORE_COVERAGE + AFTER_COVERAGE


def optimize(
    plan: QueryPlan, settings: Settings, cover: Callable[[QueryPlan], QueryPlan]
) -> QueryPlan:
    """Applies all rules in order.

    Args:
        plan: Slices with log files are to be merged, all others read by index.
        cover: Finds the entries of the slices that are to be read by index; without any they are
            scanned.

    Raises:
        IndexRequired: the caller required the index, and a slice would be read without it.
    """
    for rule in BEFORE_COVERAGE:
        plan = rule(plan, settings)
    if plan.count(Access.SKIP) == len(plan.slices):
        return plan
    plan = _decided(cover(plan), settings)
    if plan.use_index == "require":
        served = (Access.INDEX, Access.SKIP)
        missed = next((each for each in plan.slices if each.access not in served), None)
        if missed is not None:
            raise IndexRequired(
                f"{missed.file_slice.name} cannot be read through an index: {missed.reason}."
            )
    return plan


def _decided(plan: QueryPlan, settings: Settings) -> QueryPlan:
    for rule in ABOUT_ENTRIES:
        if not plan.asks_index:
            return plan
        plan = rule(plan, settings)
    if plan.asks_index:
        for rule in BY_COST:
            plan = rule(plan, settings)
    return plan
