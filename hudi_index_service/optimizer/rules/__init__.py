"""The rules, in the order in which they are applied. A rule is a function from plan to plan; it
writes its reason into the slices that it changes."""

from collections.abc import Callable

from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexRequired
from hudi_index_service.optimizer.plan import Access, QueryPlan
from hudi_index_service.optimizer.rules.excluded_by_statistics import excluded_by_statistics
from hudi_index_service.optimizer.rules.index_switched_off import index_switched_off
from hudi_index_service.optimizer.rules.no_predicate import no_predicate
from hudi_index_service.optimizer.rules.no_usable_index import no_usable_index
from hudi_index_service.optimizer.rules.too_many_predicates import too_many_predicates

Rule = Callable[[QueryPlan, Settings], QueryPlan]

RULES: tuple[Rule, ...] = (
    index_switched_off,
    no_predicate,
    too_many_predicates,
    excluded_by_statistics,
    no_usable_index,
)


def optimize(plan: QueryPlan, settings: Settings) -> QueryPlan:
    """Applies all rules in order.

    Raises:
        IndexRequired: the caller required the index, and a slice would be read without it.
    """
    for rule in RULES:
        plan = rule(plan, settings)
    if plan.use_index == "require":
        served = (Access.INDEX, Access.SKIP)
        missed = next((each for each in plan.slices if each.access not in served), None)
        if missed is not None:
            raise IndexRequired(
                f"{missed.file_slice.name} cannot be read through an index: {missed.reason}."
            )
    return plan
